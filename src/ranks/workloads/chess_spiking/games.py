"""Games of self-play in chess notation."""

from __future__ import annotations

import io
from collections.abc import Sequence

from ranks.chess.core.rules import START
from ranks.chess.match.game import COLOURS, REASONS
from ranks.chess.pgn import PgnGame, write_game
from ranks.chess.san import format_line
from ranks.selfplay.replay.game_moves import PlayedGame


def notation(moves: Sequence[int]) -> list[str]:
    """Each move of a game in standard algebraic notation."""
    return format_line(START, moves)


def format_pgn(game: PlayedGame, event: str) -> str:
    """A game as PGN. A comment gives the root's value after each full search, for the side that moved."""
    comments = {ply: f"{value:+.2f}" for ply, value in enumerate(game.values, 1) if value is not None}
    plies, reason = len(game.moves), ending_of(game)
    comments[plies] = f"{comments[plies]}, {reason}" if plies in comments else reason
    headers = {
        "Event": f"self-play of {event}",
        "Round": f"{game.slot}.{game.number}",
        "White": f"{event}, weights {game.weights_text}",
        "Black": f"{event}, weights {game.weights_text}",
        "Slot": str(game.slot),
        "Number": str(game.number),
        "Iteration": str(game.iteration),
        "Weights": game.weights_text,
        "PlyCount": str(plies),
        "Termination": "adjudication" if game.ending == "most plies" else "normal",
    }
    stream = io.StringIO()
    write_game(stream, PgnGame(headers, None, game.moves, comments, game.result))
    return stream.getvalue().removesuffix("\n")


def ending_of(game: PlayedGame) -> str:
    """How a game ended, as cutechess writes it."""
    mover = COLOURS[(len(game.moves) - 1) % 2]
    if game.ending == "resigned":
        return f"{mover} resigns"
    if game.ending == "most plies":
        return f"Draw by length: {len(game.moves)} plies"
    outcome = PgnGame(moves=game.moves).board().outcome()
    assert outcome is not None, f"game {game.slot}.{game.number} is not over"
    return REASONS.get(outcome.reason) or f"{mover} mates"
