"""Games as text: Portable Game Notation (Edwards 1994, PGN standard)."""

from __future__ import annotations

from ranks.chess.pgn.game import PgnGame, SkippedGame
from ranks.chess.pgn.reader import read_games
from ranks.chess.pgn.writer import open_pgn, write_game

__all__ = ["PgnGame", "SkippedGame", "open_pgn", "read_games", "write_game"]
