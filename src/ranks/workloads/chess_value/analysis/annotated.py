"""An analysed game as PGN, and as lines of text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from ranks.chess.pgn import PgnGame
from ranks.workloads.chess_value.analysis.game import MISTAKES, AnalysedGame, MoveScore, WhiteScore

EVALUATION = re.compile(r"\[%eval [^\]]*\] ?")
GLYPHS = {"mistake": 2, "blunder": 4, "inaccuracy": 6}
"""Numeric annotation glyphs: ?, ?? and ?!."""


def annotated(analysed: AnalysedGame, annotator: str) -> PgnGame:
    """The game with a comment after each move: `[%eval 0.35,12]` (pawns for white, depth) or `[%eval #-3]`, as Lichess
    and most GUIs read it, then the mistake, which also has its glyph (?!, ?, ??). Comments of the game follow, without
    evaluations of others."""
    comments = {ply: EVALUATION.sub("", text).strip() for ply, text in analysed.game.comments.items()}
    for ply, move in enumerate(analysed.moves, 1):
        comments[ply] = " ".join(filter(None, [evaluation(move.after), move.comment, comments.get(ply, "")]))
    comments = {ply: text for ply, text in comments.items() if text}
    glyphs = {ply: GLYPHS[move.mistake] for ply, move in enumerate(analysed.moves, 1) if move.mistake is not None}
    headers = {**analysed.game.headers, "Annotator": annotator}
    return replace(analysed.game, headers=headers, comments=comments, glyphs=glyphs)


def evaluation(score: WhiteScore) -> str:
    """`[%eval 0.35,12]`; empty where the rules end the game."""
    if score.best is None:
        return ""
    value = f"#{score.mate_in}" if score.mate_in is not None else f"{(score.cp or 0) / 100:.2f}"
    return f"[%eval {value}{f',{score.depth}' if score.depth else ''}]"


def summary(analysed: AnalysedGame) -> Iterator[str]:
    """A line for each side, then one for each mistake."""
    for by_white, side in ((True, "white"), (False, "black")):
        moves = [move for move in analysed.moves if move.by_white is by_white]
        counts = [(sum(move.mistake == name for move in moves), name) for _, name in MISTAKES]
        listed = ", ".join(f"{count} {plural(name, count)}" for count, name in counts)
        mean = sum(move.loss for move in moves) / max(len(moves), 1)
        yield f"{side}: {len(moves)} {plural('move', len(moves))}, {listed}; mean loss {mean:.1%} of win probability"
    for move in analysed.moves:
        if move.mistake is not None:
            yield mistake_line(move)


def mistake_line(move: MoveScore) -> str:
    """'12. Qh5 (+0.30 to -2.10) Blunder: ...'."""
    return f"{move.number} {move.san} ({move.before.text} to {move.after.text}) {move.comment}"


def plural(name: str, count: int) -> str:
    """'inaccuracies'."""
    if count == 1:
        return name
    return f"{name[:-1]}ies" if name.endswith("y") else f"{name}s"
