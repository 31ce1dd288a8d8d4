"""The likelihood of a pool's results as a function of strengths, first move and draws.

The model and the legend are in bradley_terry.py: K pairings, G = 2 games of a pair, F free
parameters, N players; 3 = points of white in halves.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ranks.rating.crosstable import Crosstable
from ranks.rating.davidson import log_slopes, outcome_probabilities
from ranks.rating.elo import ELO_PER_NAT

Floats = np.ndarray[Any, np.dtype[np.float64]]


@dataclass(frozen=True)
class PoolModel:
    """The likelihood of one pool's pairs of games, as a function of the free parameters x_F."""

    strength_NF: Floats
    """strengths in nats = strength_NF @ x_F[:-2] + offset_N."""
    offset_N: Floats
    design_KGF: Floats
    """advantage of white in nats = design_KGF @ x_F[:-1] + offset_KG."""
    offset_KG: Floats
    start: float
    """The strength, in nats, from which the search for the maximum starts: the mean of the
    anchors."""

    @classmethod
    def of(cls, table: Crosstable, anchors: Mapping[str, float]) -> PoolModel:
        """Anchors have no parameter. Without anchors the strengths are centred at 0."""
        names, pairings = table.players, list(table.pairings)
        if anchors:
            strength_NF = np.eye(len(names))[:, [row for row, name in enumerate(names) if name not in anchors]]
        else:
            strength_NF = (np.eye(len(names)) - 1 / len(names))[:, 1:]
        offset_N = np.array([anchors.get(name, 0.0) for name in names]) / ELO_PER_NAT
        difference_KN = np.zeros((len(pairings), len(names)))
        for k, (first, second) in enumerate(pairings):
            difference_KN[k, names.index(first)], difference_KN[k, names.index(second)] = 1, -1
        difference_KGN = np.stack([difference_KN, -difference_KN], 1)
        first_move_KG1 = np.ones((len(pairings), 2, 1))
        design_KGF = np.concatenate([difference_KGN @ strength_NF, first_move_KG1], -1)
        start = float(np.mean(list(anchors.values()) or [0.0])) / ELO_PER_NAT
        return cls(strength_NF, offset_N, design_KGF, difference_KGN @ offset_N, start)

    def chances(self, x_F: Floats) -> Floats:
        """float64[K, G, 3]: the probability of each result, for the player with white."""
        return outcome_probabilities(self.design_KGF @ x_F[:-1] + self.offset_KG, math.exp(x_F[-1]))

    def game_slopes(self, x_F: Floats) -> Floats:
        """float64[K, G, 3, F]: the derivatives of log P of a game's result by the parameters."""
        by_advantage_KG3, by_log_nu_KG3 = log_slopes(self.chances(x_F))
        by_strength_KG3F = by_advantage_KG3[..., None] * self.design_KGF[:, :, None, :]
        return np.concatenate([by_strength_KG3F, by_log_nu_KG3[..., None]], -1)

    @staticmethod
    def pair_slopes(slope_KG3F: Floats) -> Floats:
        """float64[K, 3, 3, F]: the same for pairs, by first's points with white and with black."""
        return slope_KG3F[:, 0, :, None] + slope_KG3F[:, 1, None, ::-1]

    def log_likelihood(self, pairs_K33: Floats, x_F: Floats) -> float:
        """The log-likelihood of all pairs."""
        games_KG3 = np.stack([pairs_K33.sum(2), pairs_K33.sum(1)[:, ::-1]], 1)
        played_KG3 = games_KG3 > 0
        return float((games_KG3[played_KG3] * np.log(self.chances(x_F)[played_KG3])).sum())

    def gradient(self, pairs_K33: Floats, slope_KG3F: Floats) -> Floats:
        """float64[F]: the gradient of `log_likelihood`."""
        return np.einsum("kab,kabf->f", pairs_K33, self.pair_slopes(slope_KG3F))

    def expected_information(self, num_K: Floats, x_F: Floats, slope_KG3F: Floats) -> Floats:
        """float64[F, F]: the expected information of num_K pairs in each pairing."""
        weight_KG3 = num_K[:, None, None] * self.chances(x_F)
        return np.einsum("kgo,kgoe,kgof->ef", weight_KG3, slope_KG3F, slope_KG3F)
