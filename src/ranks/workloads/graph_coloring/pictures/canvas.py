"""What every picture here is drawn on."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

from ranks.errors import UserError

INK, PAPER, FAINT, ALARM = "#2b2f36", "#ffffff", "#d9dce1", "#d00000"


def blank(asked: str, inches: tuple[float, float]) -> Any:
    """An empty matplotlib figure; `asked`: what it is needed for. Raises UserError without matplotlib."""
    try:
        figures: Any = import_module("matplotlib.figure")
    except ImportError:
        raise UserError(
            asked, "the package matplotlib is not installed", "pip install 'ranks[graph-coloring]'"
        ) from None
    return figures.Figure(figsize=inches, dpi=150, facecolor=PAPER, layout="constrained")


def save(figure: Any, path: Path, asked: str) -> None:
    """Write a PNG. Raises UserError where that cannot be."""
    try:
        figure.savefig(path, format="png")
    except OSError as error:
        raise UserError(asked, error.strerror or str(error), "give a path that can be written") from None


def readable(colour: str) -> str:
    """Dark or light ink, whichever is read better on a colour '#rrggbb'."""
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return INK if 0.299 * red + 0.587 * green + 0.114 * blue > 140 else PAPER
