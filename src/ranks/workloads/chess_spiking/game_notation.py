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
    """A game as PGN. A comment gives the root's value after each full search, for the side that moved, and the weights
    where they have changed."""
    plies, comments = len(game.moves), dict[int, str]()
    before = (game.weights[0], *game.weights[:-1])
    for ply, (value, old, new) in enumerate(zip(game.values, before, game.weights, strict=True), 1):
        said = [f"{value:+.2f}"] if value is not None else []
        said += [f"weights {new}"] if new != old else []
        said += [ending_of(game)] if ply == plies else []
        if said:
            comments[ply] = ", ".join(said)
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
