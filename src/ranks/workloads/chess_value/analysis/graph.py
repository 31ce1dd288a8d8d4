"""The evaluation graph of a game: the win probability of white after each move, with the mistakes."""

from __future__ import annotations

import textwrap
from pathlib import Path

from ranks.watch.report.figures import INK, panels, percent, save
from ranks.workloads.chess_value.analysis.game import AnalysedGame, MoveScore

COLORS = {"inaccuracy": "#e6b422", "mistake": "#e07b00", "blunder": "#c0392b"}
WHITE, BLACK = "#f4f4f4", "#5a5a5a"
TITLE_CHARACTERS = 100
MOST_LABELS = 12
"""Blunders, or where there are few of them mistakes, that are named in the picture: those that lost most."""


def draw_game(analysed: AnalysedGame, searched: str, path: Path) -> None:
    """Write the picture as a PNG. `searched`: the player and its limit, for the title."""
    figure, (panel,) = panels(1, 1, inches=(10, 4.2))
    board_number = _first_number(analysed)
    at = [board_number + ply / 2 for ply in range(len(analysed.scores))]
    win = [score.win for score in analysed.scores]
    panel.fill_between(at, 0, win, color=WHITE, linewidth=0)
    panel.fill_between(at, win, 1, color=BLACK, linewidth=0)
    panel.plot(at, win, color=INK, linewidth=1.4)
    panel.axhline(0.5, color="#999999", linewidth=0.7, linestyle=":")
    for name, color in COLORS.items():
        marked = [ply for ply, move in enumerate(analysed.moves, 1) if move.mistake == name]
        if marked:
            x, y = [at[ply] for ply in marked], [win[ply] for ply in marked]
            panel.scatter(x, y, s=34, color=color, edgecolor="white", zorder=3, label=f"{name} ({len(marked)})")
    named = sorted((move.loss, ply) for ply, move in enumerate(analysed.moves, 1) if move.mistake)[-MOST_LABELS:]
    for _, ply in named:
        _name(panel, analysed.moves[ply - 1], at[ply], win[ply])
    percent(panel, "win probability of white")
    panel.set_xlim(at[0], max(at[-1], at[0] + 0.5))
    panel.set_xlabel("move")
    title = textwrap.fill(f"{analysed.title}  ({searched})", TITLE_CHARACTERS)
    panel.set_title(title, loc="left", fontsize=9, parse_math=False)  # a name may hold dollar signs
    if named:
        panel.legend(fontsize=7, loc="upper left", bbox_to_anchor=(1, 1))
    save(figure, path)


def _name(panel: object, move: MoveScore, x: float, y: float) -> None:
    """Write a move next to its point, on the side where there is room."""
    above = y < 0.5
    panel.annotate(  # pyright: ignore[reportAttributeAccessIssue]
        f"{move.number} {move.san}",
        (x, y),
        (0, 9 if above else -9),
        textcoords="offset points",
        ha="center",
        va="bottom" if above else "top",
        fontsize=7,
        bbox={"boxstyle": "round,pad=0.15", "facecolor": "white", "edgecolor": "#bbbbbb", "alpha": 0.9},
    )


def _first_number(analysed: AnalysedGame) -> float:
    """Where the game begins on the axis: 1 for move 1 of white, half a move later for black."""
    if not analysed.moves:
        return 1.0
    first = analysed.moves[0]
    return float(first.number.rstrip(".")) + (0.0 if first.by_white else 0.5)
