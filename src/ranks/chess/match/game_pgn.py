"""A finished game as PGN, with a comment {score/depth time} for each move, as in cutechess."""

from __future__ import annotations

from typing import TextIO

from ranks.chess.match.game import Conditions, GameRecord, Turn
from ranks.chess.pgn import PgnGame, write_game


def write_record(stream: TextIO, record: GameRecord, event: str, date: str, conditions: Conditions) -> None:
    """Append a game and flush the stream, so that a crash loses no finished game. date:
    2026.11.20."""
    first = len(record.opening.moves)
    comments = {first + number: turn_comment(turn) for number, turn in enumerate(record.turns, 1)}
    last = first + len(record.turns)
    comments[last] = f"{comments[last]}, {record.reason}" if last in comments else record.reason
    headers = {
        "Event": event,
        "Date": date,
        "Round": record.round,
        "White": record.white,
        "Black": record.black,
        "Opening": record.opening.name,
        "PlyCount": str(last),
        "Termination": "rules infraction" if record.forfeited else "normal",
        "TimeControl": str(conditions.time_control or "-"),
    }
    if record.reason.endswith("loses on time"):
        headers["Termination"] = "time forfeit"
    moves = (*record.opening.moves, *(turn.choice.move for turn in record.turns))
    write_game(stream, PgnGame(headers, record.opening.fen, moves, comments, record.result))
    stream.flush()


def turn_comment(turn: Turn) -> str:
    """`+0.35/12 0.52s`: score in pawns for the mover, depth, seconds; `+M3/9`: mate in three."""
    choice = turn.choice
    if choice.mate_in is not None:
        score = f"{'+' if choice.mate_in > 0 else '-'}M{abs(choice.mate_in)}"
    elif choice.score_cp is not None:
        score = f"{choice.score_cp / 100:+.2f}"
    else:
        return f"{turn.elapsed_s:.3f}s"
    return f"{score}/{choice.depth} {turn.elapsed_s:.3f}s"
