"""Draws the mouse: poses and a look become grey frames, as a camera below a glass floor sees them.

Legend: N frames, H = W pixels, S texels.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ranks.workloads.video_behavior.renderer.kinematics import Poses
from ranks.workloads.video_behavior.renderer.looks import AnimalLook
from ranks.workloads.video_behavior.renderer.shapes import Ellipse, Floats, blur, draw

MIDDLE_GREY = 90.0
"""Contrast is changed around this grey."""
TEXELS = 64
TAIL_DISCS = 9
FRONT_PAW, HIND_PAW = (0.20, 0.155), (-0.20, 0.225)
"""Places of the paws: ahead of the centre, and to the side."""
AT_MOUTH = (0.20, 0.20)
"""Where a hind paw is that is drawn in all the way."""


@dataclass(frozen=True)
class Scene:
    """What stays the same in all frames of an animal."""

    look: AnimalLook
    size: int
    floor_HW: Floats
    coat_SS: Floats
    light_HW: Floats


def make_scene(look: AnimalLook, size: int, generator: np.random.Generator) -> Scene:
    """The floor, the coat's texture and the light of an animal, for pictures of `size` x `size`."""
    axis = (np.arange(size, dtype=np.float32) + 0.5) / size * 2 - 1
    x_HW, y_HW = np.meshgrid(axis, axis)
    slope_HW = look.slope * (np.cos(look.slope_angle) * x_HW + np.sin(look.slope_angle) * y_HW)
    light_HW = look.brightness * (1 + slope_HW - 0.10 * (x_HW**2 + y_HW**2))
    blotches = _smooth_field(size, size / 10, generator)
    grain = _smooth_field(size, size / 60, generator)
    floor_HW = look.background * (1 + 0.10 * blotches + 0.05 * grain)
    coat_SS = 1 + look.texture * _smooth_field(TEXELS, 2.0, generator)
    return Scene(look, size, floor_HW.astype(np.float32), coat_SS.astype(np.float32), light_HW.astype(np.float32))


def draw_frames(
    scene: Scene, poses: Poses, flicker_N: NDArray[Any], generator: np.random.Generator, contrast: float, noise: float
) -> NDArray[np.uint8]:
    """uint8[N, H, W]: the frames of some poses. `contrast` and `noise` multiply those of the look."""
    look, size = scene.look, scene.size
    frames_NHW = np.repeat(scene.floor_HW[None], len(poses.x_N), axis=0)
    for shape, is_coat in mouse(poses, look, size):
        texture = scene.coat_SS if is_coat else None
        draw(frames_NHW, shape, 0.9 * size / 64, texture, TEXELS / (1.1 * look.zoom * size))
    frames_NHW *= scene.light_HW
    frames_NHW *= (1 + look.flicker * flicker_N).astype(np.float32)[:, None, None]
    frames_NHW = blur(frames_NHW, look.blur * size / 64)
    frames_NHW -= MIDDLE_GREY
    frames_NHW *= look.contrast * contrast
    frames_NHW += MIDDLE_GREY
    frames_NHW += np.float32(look.noise * noise) * generator.standard_normal(frames_NHW.shape, dtype=np.float32)
    return np.clip(np.rint(frames_NHW), 0, 255).astype(np.uint8)


def mouse(poses: Poses, look: AnimalLook, size: int) -> list[tuple[Ellipse, bool]]:
    """The parts of the mouse from the back to the front, each with whether it has the texture of the coat."""
    body = _Body(poses, look, size)
    belly = look.belly
    bend_N = 0.35 * poses.head_N
    neck = 0.34 * np.cos(bend_N) * poses.stretch_N, 0.34 * np.sin(bend_N)
    turn_N = bend_N + poses.head_N

    def ahead(distance: float, aside: float = 0.0) -> tuple[NDArray[Any], NDArray[Any]]:
        """A place on the head, seen from the neck."""
        cos, sin = np.cos(turn_N), np.sin(turn_N)
        return neck[0] + distance * cos - aside * sin, neck[1] + distance * sin + aside * cos

    wide_N = look.width * poses.breath_N / poses.stretch_N
    parts = [(part, False) for part in _tail(body, poses, belly)]
    parts += [(body.ellipse(*ahead(0.03, side * 0.10), turn_N, 0.06, 0.055, belly * 1.15), False) for side in (-1, 1)]
    rump = body.ellipse(-0.16, 0.0, 0.0, 0.30 * poses.stretch_N, 0.235 * wide_N, belly)
    chest = body.ellipse(
        0.13 * np.cos(bend_N), 0.13 * np.sin(bend_N), bend_N, 0.27 * poses.stretch_N, 0.175 * wide_N, belly * 1.06
    )
    head = body.ellipse(*ahead(0.11), turn_N, 0.17, 0.115, belly * 1.10)
    parts += [(replace(part, shading=0.35), True) for part in (rump, chest, head)]
    parts.append((body.ellipse(*ahead(0.24), turn_N, 0.08, 0.05, belly * 1.25), False))
    parts.append((body.ellipse(*ahead(0.30), turn_N, 0.025, 0.025, belly + look.paws), False))
    return parts + [(part, False) for part in _paws(body, poses, bend_N, look)]


@dataclass(frozen=True)
class _Body:
    """Places on the body -> pixels."""

    poses: Poses
    look: AnimalLook
    size: int

    def ellipse(self, forward: Any, left: Any, turn: Any, long: Any, wide: Any, grey: Any) -> Ellipse:
        """An ellipse in body units, at a place on the trunk; single values hold for all frames."""
        poses, look = self.poses, self.look
        unit = look.zoom * self.size
        heading_N = poses.heading_N + look.rotation
        cos, sin = np.cos(heading_N), np.sin(heading_N)
        x_N = poses.x_N * np.cos(look.rotation) - poses.y_N * np.sin(look.rotation)
        y_N = poses.x_N * np.sin(look.rotation) + poses.y_N * np.cos(look.rotation)
        shift = look.offset * self.size
        centre = (self.size - 1) / 2
        ones = np.ones(len(x_N))
        angle_N = heading_N + turn
        return Ellipse(
            x_N=centre + shift * np.cos(look.offset_angle) + unit * (x_N + forward * cos - left * sin),
            y_N=centre + shift * np.sin(look.offset_angle) + unit * (y_N + forward * sin + left * cos),
            ux_N=np.cos(angle_N),
            uy_N=np.sin(angle_N),
            long_N=unit * long * ones,
            wide_N=unit * wide * ones,
            grey_N=grey * ones,
        )


def _tail(body: _Body, poses: Poses, belly: float) -> list[Ellipse]:
    """Discs along an arc behind the rump, thinner towards the tip."""
    forward, left = np.full_like(poses.x_N, -0.44), np.zeros_like(poses.x_N)
    discs: list[Ellipse] = []
    for i in range(TAIL_DISCS):
        angle_N = np.pi + poses.tail_N * i / TAIL_DISCS
        forward, left = forward + 0.055 * np.cos(angle_N), left + 0.055 * np.sin(angle_N)
        radius = 0.034 - 0.002 * i
        discs.append(body.ellipse(forward, left, angle_N, 0.045, radius, belly * 1.12))
    return discs


def _paws(body: _Body, poses: Poses, bend_N: NDArray[Any], look: AnimalLook) -> list[Ellipse]:
    """Front paws first. A paw in the air is farther from the glass: darker and a little smaller."""
    shapes: list[Ellipse] = []
    for paw, (side, is_hind) in enumerate([(1, False), (-1, False), (1, True), (-1, True)]):
        forward, aside = HIND_PAW if is_hind else FRONT_PAW
        u_N = forward + poses.paw_forward_NP[:, paw]
        v_N = np.full_like(u_N, side * aside * look.width)
        drawn_in_N = poses.raise_N * (poses.side_N == side) if is_hind else np.zeros_like(u_N)
        u_N = u_N + drawn_in_N * (AT_MOUTH[0] - u_N)
        v_N = v_N + drawn_in_N * (side * AT_MOUTH[1] - v_N)
        if not is_hind:  # front paws hang at the chest, which bends with the head
            u_N, v_N = u_N * np.cos(bend_N) - v_N * np.sin(bend_N), u_N * np.sin(bend_N) + v_N * np.cos(bend_N)
        lift_N = np.maximum(poses.paw_lift_NP[:, paw], 0.5 * drawn_in_N)
        long, wide = (0.085, 0.045) if is_hind else (0.055, 0.042)
        grey_N = look.belly + look.paws * (1 - 0.55 * lift_N)
        turn_N = side * (0.25 + 0.6 * drawn_in_N) if is_hind else bend_N
        small_N = 1 - 0.15 * lift_N
        shapes.append(body.ellipse(u_N, v_N, turn_N, long * small_N, wide * small_N, grey_N))
    return shapes


def _smooth_field(size: int, scale: float, generator: np.random.Generator) -> NDArray[np.float64]:
    """float64[size, size]: periodic smooth noise of variance 1."""
    wave = np.fft.fftfreq(size)
    kernel = np.exp(-2 * (np.pi * scale) ** 2 * (wave[:, None] ** 2 + wave[None, :] ** 2))
    field = np.fft.ifft2(np.fft.fft2(generator.standard_normal((size, size))) * kernel).real
    return (field - field.mean()) / field.std()
