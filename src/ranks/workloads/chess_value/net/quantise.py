"""From a float net to the integers of the engine."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ranks.chess.engine.nnue.features import MAX_ACTIVE
from ranks.chess.engine.nnue.weights import FEATURE_SCALE, OUTPUT_SCALE, WEIGHT_SCALE, NnueWeights
from ranks.workloads.chess_value.net.nnue import NnueNet

MAX_FEATURE = 32767 // (MAX_ACTIVE + 1)
"""The largest integer of a feature weight: the sum of 32 and the bias stays in int16."""
INT8 = 127
INT32 = 2**31 - 1


def quantise(model: NnueNet) -> NnueWeights:
    """The integers of a net. Weights beyond what their type holds are clipped."""
    with torch.no_grad():
        merged = model.merged()
        return NnueWeights(
            feature_weights_FH=_rounded(merged.weights_FH, FEATURE_SCALE, MAX_FEATURE).astype(np.int16),
            feature_bias_H=_rounded(merged.bias_H, FEATURE_SCALE, MAX_FEATURE).astype(np.int16),
            hidden_weights_BOI=_rounded(model.hidden_weights_KOI, WEIGHT_SCALE, INT8).astype(np.int8),
            hidden_bias_BO=_rounded(model.hidden_bias_KO, FEATURE_SCALE * WEIGHT_SCALE, INT32).astype(np.int32),
            output_weights_BO=_rounded(model.output_weights_KO, OUTPUT_SCALE, INT8).astype(np.int8),
            output_bias_B=_rounded(model.output_bias_K, FEATURE_SCALE * OUTPUT_SCALE, INT32).astype(np.int32),
        )


def _rounded(weights: Tensor, scale: int, limit: int) -> NDArray[np.float64]:
    scaled = np.rint(weights.detach().double().cpu().numpy() * scale)
    return np.ascontiguousarray(np.clip(scaled, -limit, limit))
