"""The layers above the accumulators, in integers. `weights.py` has the formulas.

The hidden weights are kept as int16 here, because the processor multiplies pairs of int16 into int32 (on x86 with
AVX2: 16 products an instruction).

Legend: H accumulator width, I = 2H hidden inputs, B output buckets, O hidden units.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import types
from numpy.typing import NDArray

from ranks.chess.core.alphabeta_state import Number
from ranks.chess.engine.nnue.accumulator import Accumulators
from ranks.chess.engine.nnue.weights import (
    ENGINE_CP_PER_LOGIT,
    FEATURE_SCALE,
    HIDDEN_SHIFT,
    HIDDEN_UNITS,
    OUTPUT_SCALE,
    WIDTH_MULTIPLE,
    NnueWeights,
    weight_shapes,
)
from ranks.jit import helper


class NetArrays(NamedTuple):
    """The weights as the kernels read them: the hidden weights are int16."""

    feature_weights_FH: NDArray[np.int16]
    feature_bias_H: NDArray[np.int16]
    hidden_weights_BOI: NDArray[np.int16]
    hidden_bias_BO: NDArray[np.int32]
    output_weights_BO: NDArray[np.int8]
    output_bias_B: NDArray[np.int32]


NET_ARRAYS = types.NamedTuple(
    [
        types.Array(types.int16, 2, "C"),
        types.Array(types.int16, 1, "C"),
        types.Array(types.int16, 3, "C"),
        types.Array(types.int32, 2, "C"),
        types.Array(types.int8, 2, "C"),
        types.Array(types.int32, 1, "C"),
    ],
    NetArrays,
)
"""The Numba type of a NetArrays argument."""


def net_arrays(weights: NnueWeights) -> NetArrays:
    """The weights of a net for the kernels."""
    return NetArrays(**weights._replace(hidden_weights_BOI=weights.hidden_weights_BOI.astype(np.int16))._asdict())


def no_net() -> NetArrays:
    """The arrays of the smallest net, all zero: for a search that evaluates with tables."""
    return net_arrays(
        NnueWeights(**{name: np.zeros(shape, kind) for name, (kind, shape) in weight_shapes(WIDTH_MULTIPLE).items()})
    )


@helper
def propagate(
    net: NetArrays, sums: Accumulators, level: int, mover: Number, inputs_I: NDArray[np.int16], bucket: Number
) -> Number:
    """The score in centipawns for the side to move (`mover`, 0 white), from the accumulators of a level.

    `inputs_I` is room for the hidden inputs."""
    width = len(net.feature_bias_H)
    zero, most = np.int16(0), np.int16(FEATURE_SCALE)
    for h in range(width):
        inputs_I[h] = min(max(sums[level, mover, h], zero), most)
    for h in range(width):
        inputs_I[width + h] = min(max(sums[level, 1 - mover, h], zero), most)
    total = np.int64(net.output_bias_B[bucket])
    for unit in range(HIDDEN_UNITS):
        hidden = np.int32(0)
        for i in range(2 * width):
            hidden = np.int32(hidden + np.int32(inputs_I[i]) * np.int32(net.hidden_weights_BOI[bucket, unit, i]))
        activation = (np.int64(hidden) + np.int64(net.hidden_bias_BO[bucket, unit])) >> HIDDEN_SHIFT
        total += min(max(activation, 0), FEATURE_SCALE) * np.int64(net.output_weights_BO[bucket, unit])
    return total * ENGINE_CP_PER_LOGIT // (FEATURE_SCALE * OUTPUT_SCALE)
