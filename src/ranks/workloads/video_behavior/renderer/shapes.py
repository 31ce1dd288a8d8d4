"""Soft-edged ellipses, drawn into a block of frames at once.

Legend: N frames, H, W pixels; h, w pixels of the box that holds a shape in all frames of the block.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]


@dataclass(frozen=True)
class Ellipse:
    """One ellipse in N frames. Pixels; the axis (ux, uy) is a unit vector."""

    x_N: NDArray[Any]
    y_N: NDArray[Any]
    ux_N: NDArray[Any]
    uy_N: NDArray[Any]
    long_N: NDArray[Any]
    """Half of the axis along (ux, uy)."""
    wide_N: NDArray[Any]
    """Half of the other axis."""
    grey_N: NDArray[Any]
    shading: float = 0.0
    """How much darker the edge is than the centre."""


@dataclass(frozen=True)
class Box:
    """The pixels that a shape can touch in any frame of the block."""

    rows: slice
    columns: slice
    dx_NW: Floats
    dy_NH: Floats


def box_of(shape: Ellipse, height: int, width: int, margin: float) -> Box | None:
    """The box of an ellipse; None where it lies outside of the picture."""
    reach = np.maximum(shape.long_N, shape.wide_N) + margin
    rows = _span(shape.y_N - reach, shape.y_N + reach, height)
    columns = _span(shape.x_N - reach, shape.x_N + reach, width)
    if rows.start >= rows.stop or columns.start >= columns.stop:
        return None
    dx = np.arange(columns.start, columns.stop, dtype=np.float32) - shape.x_N.astype(np.float32)[:, None]
    dy = np.arange(rows.start, rows.stop, dtype=np.float32) - shape.y_N.astype(np.float32)[:, None]
    return Box(rows, columns, dx, dy)


def draw(
    frames_NHW: Floats, shape: Ellipse, softness: float, texture_SS: Floats | None = None, scale: float = 1.0
) -> None:
    """Draw an ellipse over the frames, in place. `softness`: width of its edge in pixels.

    `texture_SS`: factors of the grey in the coordinates of the ellipse, whose centre is the centre of the texture;
    `scale`: texels a pixel.
    """
    box = box_of(shape, frames_NHW.shape[1], frames_NHW.shape[2], softness)
    if box is None:
        return
    part_Nhw = frames_NHW[:, box.rows, box.columns]
    ux, uy = _column(shape.ux_N), _column(shape.uy_N)
    long, wide = _column(shape.long_N), _column(shape.wide_N)
    dx, dy = box.dx_NW[:, None, :], box.dy_NH[:, :, None]

    # 1 - q is positive inside: q = (along / long)^2 + (across / wide)^2, as a polynomial in dx and dy
    inverse_long, inverse_wide = 1 / long**2, 1 / wide**2
    inside = (-2 * ux * uy * (inverse_long - inverse_wide) * dy) * dx
    inside -= (ux * ux * inverse_long + uy * uy * inverse_wide) * dx * dx
    inside += 1 - (uy * uy * inverse_long + ux * ux * inverse_wide) * dy * dy
    grey = _column(shape.grey_N)
    if shape.shading:
        grey = grey * (1 - shape.shading + shape.shading * np.clip(inside, 0, 1))
    if texture_SS is not None:
        size = len(texture_SS)
        along = (ux * scale * dx + (uy * scale * dy + size / 2)).astype(np.int32)
        across = (-uy * scale * dx + (ux * scale * dy + size / 2)).astype(np.int32)
        grey = grey * texture_SS.ravel()[(across & (size - 1)) * size + (along & (size - 1))]
    inside *= np.minimum(long, wide) / (2 * softness)
    inside += 0.5
    np.clip(inside, 0, 1, out=inside)
    inside *= grey - part_Nhw
    part_Nhw += inside


def blur(frames_NHW: Floats, sigma: float) -> Floats:
    """Gaussian blur of each frame; the edge is repeated."""
    half = max(1, round(2.5 * sigma))
    kernel = np.exp(-0.5 * (np.arange(-half, half + 1) / sigma) ** 2)
    kernel = (kernel / kernel.sum()).astype(np.float32)
    for axis in (1, 2):
        size = frames_NHW.shape[axis]
        pad = [(0, 0), (0, 0), (0, 0)]
        pad[axis] = (half, half)
        padded = np.pad(frames_NHW, pad, mode="edge")
        frames_NHW = kernel[half] * np.take(padded, range(half, half + size), axis)
        for k in range(half):
            before = padded[(slice(None),) * axis + (slice(k, k + size),)]
            after = padded[(slice(None),) * axis + (slice(2 * half - k, 2 * half - k + size),)]
            frames_NHW += kernel[k] * (before + after)
    return frames_NHW


def _column(values_N: NDArray[Any]) -> Floats:
    return values_N.astype(np.float32)[:, None, None]


def _span(low_N: NDArray[Any], high_N: NDArray[Any], size: int) -> slice:
    return slice(max(0, int(low_N.min())), min(size, int(high_N.max()) + 2))
