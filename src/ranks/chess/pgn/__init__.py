"""Games as text: portable game notation (Edwards 1994, "Standard: Portable Game Notation Specification")."""

from __future__ import annotations

from ranks.chess.pgn.game import Damage, Game
from ranks.chess.pgn.reader import read_games
from ranks.chess.pgn.writer import appended, write_game

__all__ = ["Damage", "Game", "appended", "read_games", "write_game"]
