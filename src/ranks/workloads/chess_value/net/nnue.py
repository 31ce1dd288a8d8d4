"""The float net that the engine's quantised net (`ranks.chess.engine.nnue.weights`) is made from.

    accumulator   a = bias + sum of the rows of the active features       one for the mover's view, one for the other's
    inputs        x = clip(a, 0, 1) of the mover, then of the other side
    hidden        h = clip(W_b x + c_b, 0, 1)                             b: the output bucket of the position
    output        logit = w_b h + d_b                                     win probability 1 / (1 + exp(-logit))

The row of a feature is the sum of two: one of its own, and one that its piece and square have in every king bucket
(a factorised feature, as in nnue-pytorch). So a net learns from few positions. Both are added when it is quantised.

Legend: B positions, A active features of a view, F features, S of them in a king bucket, H accumulator width,
K output buckets, O hidden units.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

HIDDEN_LIMIT = 127 / 64
OUTPUT_LIMIT = 127 / 128
"""Bounds of the weights that int8 holds at the engine's scales."""
ACTIVE_AT_START = 30.0
"""Pieces of an early position: the first weights are scaled so that accumulators then lie between 0 and 1."""


class MergedFeatures(NamedTuple):
    """The feature weights as the engine has them."""

    weights_FH: Tensor
    bias_H: Tensor


class NnueNet(nn.Module):
    """Logits of the win probability of the side to move.

    The weights of the hidden and output layers are clamped to what int8 holds, in the forward pass, so training knows
    the bounds of the engine."""

    def __init__(
        self,
        features: int,
        bucket_features: int,
        width: int,
        hidden: int,
        output_buckets: int,
        king_scale: float = 1.0,
    ) -> None:
        """`features`: F, a multiple of `bucket_features`: S. `king_scale`: of weights of one bucket alone."""
        super().__init__()
        self.king_scale = king_scale
        self.features, self.bucket_features = features, bucket_features
        self.width, self.hidden, self.output_buckets = width, hidden, output_buckets
        scale = ACTIVE_AT_START**-0.5 / 2
        self.own_FH = nn.Parameter(torch.zeros(features, width))
        self.shared_SH = nn.Parameter(torch.randn(bucket_features, width) * scale)
        self.bias_H = nn.Parameter(torch.full((width,), 0.5))
        self.hidden_weights_KOI = nn.Parameter(torch.randn(output_buckets, hidden, 2 * width) * (2 * width) ** -0.5)
        self.hidden_bias_KO = nn.Parameter(torch.zeros(output_buckets, hidden))
        self.output_weights_KO = nn.Parameter(torch.randn(output_buckets, hidden) * hidden**-0.5 / 2)
        self.output_bias_K = nn.Parameter(torch.zeros(output_buckets))

    def forward(self, features_B2A: Tensor, bucket_B: Tensor) -> Tensor:
        """[B] logits. features: int64[B, 2, A], the mover's view first, padded with -1. bucket: int64[B]."""
        accumulators_B2H = self.accumulate(features_B2A.flatten(0, 1)).unflatten(0, (-1, 2))
        inputs_BI = accumulators_B2H.clamp(0.0, 1.0).flatten(1)
        hidden_weights_KOI = self.hidden_weights_KOI.clamp(-HIDDEN_LIMIT, HIDDEN_LIMIT)
        hidden_BKO = torch.einsum("bi,koi->bko", inputs_BI, hidden_weights_KOI) + self.hidden_bias_KO
        output_weights_KO = self.output_weights_KO.clamp(-OUTPUT_LIMIT, OUTPUT_LIMIT)
        logit_BK = (hidden_BKO.clamp(0.0, 1.0) * output_weights_KO).sum(2) + self.output_bias_K
        return logit_BK.gather(1, bucket_B[:, None])[:, 0]

    def accumulate(self, features_NA: Tensor) -> Tensor:
        """float[N, H]: the accumulators of N views. features: int64[N, A], padded with -1."""
        weights_FH = self.merged().weights_FH
        padded_FH = torch.cat([weights_FH, weights_FH.new_zeros(1, self.width)])
        index_NA = torch.where(features_NA < 0, self.features, features_NA)
        return nn.functional.embedding_bag(index_NA, padded_FH, mode="sum") + self.bias_H

    def merged(self) -> MergedFeatures:
        """The feature weights with their two parts added."""
        buckets = self.features // self.bucket_features
        return MergedFeatures(self.king_scale * self.own_FH + self.shared_SH.repeat(buckets, 1), self.bias_H)
