"""The quantised weights of the net, their scales, and their file.

    accumulator   a_H = feature_bias_H + sum of feature_weights_FH over the active features        one for each view
    inputs        x_I = clip(a_H, 0, FEATURE_SCALE) of the side to move, then of the other side    I = 2H
    hidden        h_O = clip((hidden_bias_BO + hidden_weights_BOI x_I) >> HIDDEN_SHIFT, 0, FEATURE_SCALE)
    output        y = (output_bias_B + output_weights_BO h_O) / (FEATURE_SCALE * OUTPUT_SCALE)
                  centipawns = y * ENGINE_CP_PER_LOGIT

B is the output bucket of the position. In the float net an activation of 1.0 is the integer FEATURE_SCALE, and the
output is a logit: a win has the probability 1 / (1 + exp(-y)).

| array            | integer = float x                | bound of the float               |
|------------------|----------------------------------|----------------------------------|
| feature_weights  | FEATURE_SCALE                    | a_H fits in int16, see `_reach`  |
| feature_bias     | FEATURE_SCALE                    | the same                         |
| hidden_weights   | WEIGHT_SCALE                     | +-127 / 64 = 1.98                |
| hidden_bias      | FEATURE_SCALE * WEIGHT_SCALE     |                                  |
| output_weights   | OUTPUT_SCALE                     | +-127 / 128 = 0.99               |
| output_bias      | FEATURE_SCALE * OUTPUT_SCALE     |                                  |

Legend: F features, H accumulator width, B output buckets, O hidden units, I hidden inputs, K king buckets, S squares.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np
import safetensors
import safetensors.numpy
from numpy.typing import NDArray

from ranks.bounded_file import open_file
from ranks.chess.engine.nnue.features import (
    MAX_ACTIVE,
    NUM_FEATURES,
    NUM_KING_BUCKETS,
    NUM_OUTPUT_BUCKETS,
    NUM_PIECES,
)
from ranks.errors import UserError

FEATURE_SCALE = 127
"""The integer of an activation of 1.0, in the accumulator and in the hidden layer."""
WEIGHT_SCALE = 64
HIDDEN_SHIFT = 6
"""log2(WEIGHT_SCALE): from sums of the hidden layer to activations."""
OUTPUT_SCALE = 128
ENGINE_CP_PER_LOGIT = 640
"""Centipawns of one logit: a pawn then counts about 100, as in the engine's tables and in the margins of its pruning.
With 400, the unit of the labels, in which Stockfish has counted a pawn as 58 since its version 15.1, the same net is
some 50 Elo weaker."""
HIDDEN_UNITS = 16
WIDTH_MULTIPLE = 16
"""The accumulator width is a multiple of this: the number of int16 in a vector register."""
MAX_WIDTH = 2048


class NnueWeights(NamedTuple):
    """The integers of a net; all arrays are C-contiguous."""

    feature_weights_FH: NDArray[np.int16]
    feature_bias_H: NDArray[np.int16]
    hidden_weights_BOI: NDArray[np.int8]
    hidden_bias_BO: NDArray[np.int32]
    output_weights_BO: NDArray[np.int8]
    output_bias_B: NDArray[np.int32]

    @property
    def width(self) -> int:
        """H: the width of one accumulator."""
        return len(self.feature_bias_H)


def weight_shapes(width: int) -> dict[str, tuple[str, tuple[int, ...]]]:
    """The type and shape of each array of a net with accumulators of this width."""
    return {
        "feature_weights_FH": ("int16", (NUM_FEATURES, width)),
        "feature_bias_H": ("int16", (width,)),
        "hidden_weights_BOI": ("int8", (NUM_OUTPUT_BUCKETS, HIDDEN_UNITS, 2 * width)),
        "hidden_bias_BO": ("int32", (NUM_OUTPUT_BUCKETS, HIDDEN_UNITS)),
        "output_weights_BO": ("int8", (NUM_OUTPUT_BUCKETS, HIDDEN_UNITS)),
        "output_bias_B": ("int32", (NUM_OUTPUT_BUCKETS,)),
    }


def random_weights(width: int, seed: int) -> NnueWeights:
    """Weights of the size that training gives, for tests and measurements of speed."""
    generator = np.random.Generator(np.random.PCG64(seed))
    spread = {"feature_weights_FH": 12, "feature_bias_H": 30, "hidden_weights_BOI": 12, "hidden_bias_BO": 2000}
    spread |= {"output_weights_BO": 40, "output_bias_B": 2000}
    return NnueWeights(
        **{
            name: np.rint(generator.normal(0, spread[name], shape).clip(-4 * spread[name], 4 * spread[name]))
            .clip(np.iinfo(kind).min, np.iinfo(kind).max)
            .astype(kind)
            for name, (kind, shape) in weight_shapes(width).items()
        }
    )


def to_bytes(weights: NnueWeights) -> bytes:
    """The content of a file of weights, in the format of safetensors. Raises ValueError for wrong shapes or types."""
    problem = wrong_with(weights._asdict())
    if problem:
        raise ValueError(problem)
    return safetensors.numpy.save({name: np.ascontiguousarray(array) for name, array in weights._asdict().items()})


def from_bytes(content: bytes) -> NnueWeights:
    """The weights in a file's content. Raises ValueError: damaged, other arrays, wrong shapes or types."""
    try:
        arrays = safetensors.numpy.load(content)
    except (safetensors.SafetensorError, KeyError, ValueError) as error:
        raise ValueError(f"not a readable safetensors file ({error})") from None
    problem = wrong_with(arrays)
    if problem:
        raise ValueError(problem)
    return NnueWeights(**{name: np.ascontiguousarray(arrays[name]) for name in NnueWeights._fields})


def save_weights(path: Path, weights: NnueWeights) -> None:
    """Write a file of weights. Raises ValueError for wrong shapes or types, OSError where it cannot be written."""
    path.write_bytes(to_bytes(weights))


def load_weights(path: Path, asked: str | None = None) -> NnueWeights:
    """Read a file of weights. Raises UserError: missing, damaged, other arrays, wrong shapes or types, weights whose
    sums do not fit in the accumulator.

    `asked`: the first line of the message, by default that the file was to be read."""
    asked = asked or f"the weights of a net in {path}"
    with open_file(path, asked, has_lines=False) as file:
        content = file.read()
    try:
        return from_bytes(content)
    except ValueError as error:
        do = "give a file of weights that this version of ranks has written, or train the net again"
        raise UserError(asked, f"{path}: {error}", do) from None


def wrong_with(arrays: Mapping[str, NDArray[np.generic]]) -> str | None:
    """What is wrong with the names, types or shapes of a net's arrays, or with the size of its feature weights."""
    if set(arrays) != set(NnueWeights._fields):
        return f"the arrays are {', '.join(sorted(arrays)) or 'none'}, not {', '.join(NnueWeights._fields)}"
    width = arrays["feature_bias_H"].size
    if not 0 < width <= MAX_WIDTH or width % WIDTH_MULTIPLE:
        return f"an accumulator width of {width}, not a multiple of {WIDTH_MULTIPLE} up to {MAX_WIDTH}"
    for name, (kind, shape) in weight_shapes(width).items():
        found = arrays[name]
        if found.dtype != kind or found.shape != shape:
            return f"{name} is {found.dtype}{list(found.shape)}, not {kind}{list(shape)}"
    for sign in (1, -1):
        reach = sign * _reach(arrays["feature_weights_FH"], arrays["feature_bias_H"], sign)
        if not -(2**15) <= reach < 2**15:
            return f"feature weights and a bias whose sum reaches {reach}, and the accumulator is int16"
    return None


def _reach(feature_weights_FH: NDArray[np.generic], feature_bias_H: NDArray[np.generic], sign: int) -> int:
    """The largest accumulator, times `sign`, of any set of at most MAX_ACTIVE pieces, each on a square of its own.

    A bound for all positions: it does not ask which pieces a game can have."""
    weights_FH = sign * feature_weights_FH.astype(np.int32)
    of_square_KSH = weights_FH.reshape(NUM_KING_BUCKETS, NUM_PIECES, 64, -1).max(axis=1).clip(min=0)
    largest_KH = np.sort(of_square_KSH, axis=1)[:, -MAX_ACTIVE:].sum(axis=1)
    return int((largest_KH + sign * feature_bias_H.astype(np.int32)).max())
