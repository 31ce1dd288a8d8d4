"""What an animal's video looks like: camera, light and coat.

Test animals draw every value of camera, light and coat from a range of its own, which train and validation animals
never have. The ranges do not overlap.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

RANGES: dict[str, tuple[tuple[float, float], tuple[float, float]]] = {
    # value: (train and validation, test)
    "zoom": ((0.54, 0.60), (0.605, 0.64)),
    "rotation": ((0.0, 4.4), (4.5, 6.2)),
    "offset": ((0.0, 0.04), (0.045, 0.07)),
    "noise": ((2.0, 4.0), (4.2, 5.5)),
    "blur": ((0.35, 0.65), (0.70, 0.90)),
    "contrast": ((0.90, 1.15), (0.75, 0.88)),
    "background": ((28.0, 55.0), (57.0, 68.0)),
    "brightness": ((0.85, 1.00), (1.01, 1.08)),
    "slope": ((0.0, 0.18), (0.20, 0.30)),
    "slope_angle": ((0.0, 4.0), (4.1, 6.2)),
    "flicker": ((0.0, 0.015), (0.016, 0.025)),
    "belly": ((95.0, 132.0), (134.0, 146.0)),
    "paws": ((65.0, 90.0), (92.0, 105.0)),
    "texture": ((0.02, 0.07), (0.075, 0.10)),
    "width": ((0.94, 1.06), (1.07, 1.12)),
}
"""Names as the fields of `AnimalLook`."""


@dataclass(frozen=True)
class AnimalLook:
    """Camera, light and coat of one animal. Lengths are shares of the picture's side, greys 0 to 255."""

    zoom: float
    """Side of a body unit."""
    rotation: float
    """Radians."""
    offset: float
    offset_angle: float
    noise: float
    """Standard deviation of the camera's noise, grey levels."""
    blur: float
    """Standard deviation, pixels of a picture of 64 x 64."""
    contrast: float
    background: float
    brightness: float
    slope: float
    """Change of light from the centre to the edge."""
    slope_angle: float
    flicker: float
    """Slow change of light in time."""
    belly: float
    paws: float
    """How much brighter than the belly the paws are."""
    texture: float
    """Of the coat: relative standard deviation."""
    width: float
    """Of the trunk, over the mean."""


def draw_look(generator: np.random.Generator, *, is_test: bool) -> AnimalLook:
    """The look of one animal."""
    values = {name: float(generator.uniform(*ranges[is_test])) for name, ranges in RANGES.items()}
    return AnimalLook(**values, offset_angle=float(generator.uniform(0, 2 * np.pi)))
