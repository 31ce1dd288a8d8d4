"""What every picture here is drawn on."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

from ranks.errors import UserError

INK, PAPER, FAINT, ALARM = "#2b2f36", "#ffffff", "#d9dce1", "#d00000"


FORMATS = ("png", "svg")


def check_picture(path: Path, asked: str) -> str:
    """The format that a picture's ending names, one of FORMATS. Raises UserError, also without matplotlib."""
    ending = path.suffix.lower().removeprefix(".")
    if ending not in FORMATS:
        found = f"the ending '{path.suffix}'" if ending else "no ending"
        raise UserError(asked, f"{found}, which names no picture that can be drawn", "give a path with .png or .svg")
    _figures(asked)
    return ending


def blank(asked: str, inches: tuple[float, float]) -> Any:
    """An empty matplotlib figure; `asked`: what it is needed for. Raises UserError without matplotlib."""
    return _figures(asked).Figure(figsize=inches, dpi=150, facecolor=PAPER, layout="constrained")


def _figures(asked: str) -> Any:
    try:
        return import_module("matplotlib.figure")
    except ImportError:
        raise UserError(
            asked, "the package matplotlib is not installed", "pip install 'ranks[graph-coloring]'"
        ) from None


def save(figure: Any, path: Path, asked: str) -> None:
    """Write a picture in the format that its ending names. Raises UserError where that cannot be."""
    try:
        figure.savefig(path, format=check_picture(path, asked))
    except OSError as error:
        raise UserError(asked, error.strerror or str(error), "give a path that can be written") from None


def readable(colour: str) -> str:
    """Dark or light ink, whichever is read better on a colour '#rrggbb'."""
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return INK if 0.299 * red + 0.587 * green + 0.114 * blue > 140 else PAPER
