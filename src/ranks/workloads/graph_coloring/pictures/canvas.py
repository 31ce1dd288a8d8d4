"""Colours, empty figures and saving: what the drawings and the plots share."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

from ranks.errors import UserError

INK, PAPER, GRID, CONFLICT = "#2b2f36", "#ffffff", "#d9dce1", "#d00000"
"""Colours of text and lines, the background, grid lines, and edges in conflict."""
FORMATS = ("png", "svg")


def check_picture(path: Path, asked: str) -> str:
    """The format of a picture, from the extension of its path; one of FORMATS.

    Raises UserError for another extension, and if matplotlib is not installed. `asked`: what the
    user asked for, for the message.
    """
    extension = path.suffix.lower().removeprefix(".")
    if extension not in FORMATS:
        found = f"the extension '{path.suffix}' is not supported" if extension else "the path has no extension"
        raise UserError(asked, found, "give a path with .png or .svg")
    _figure_module(asked)
    return extension


def new_figure(asked: str, inches: tuple[float, float]) -> Any:
    """An empty matplotlib figure. Raises UserError if matplotlib is not installed."""
    return _figure_module(asked).Figure(figsize=inches, dpi=150, facecolor=PAPER, layout="constrained")


def _figure_module(asked: str) -> Any:
    try:
        return import_module("matplotlib.figure")
    except ImportError:
        raise UserError(
            asked, "the package matplotlib is not installed", "pip install 'ranks[graph-coloring]'"
        ) from None


def save(figure: Any, path: Path, asked: str) -> None:
    """Write a figure in the format of the path's extension. Raises UserError if it cannot."""
    try:
        figure.savefig(path, format=check_picture(path, asked))
    except OSError as error:
        raise UserError(asked, error.strerror or str(error), "give a path that can be written") from None


def text_colour(background: str) -> str:
    """Dark or light text, whichever has more contrast on a background '#rrggbb'."""
    red, green, blue = (int(background[i : i + 2], 16) for i in (1, 3, 5))
    return INK if 0.299 * red + 0.587 * green + 0.114 * blue > 140 else PAPER
