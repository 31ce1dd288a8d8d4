"""A policy beside the market's table that it reads: what a collector acts with, and what PPO's loss calls.

Legend: D days, K columns of the table, H hidden, T steps, B accounts.
"""

from __future__ import annotations

from typing import Any, cast

import torch
from torch import Tensor

from ranks.experience.distributions import DiagonalGaussian
from ranks.experience.trees import State, Tree
from ranks.workloads.stock_trading.policy import TradingPolicy


class OnMarket:
    """Made anew after each update: while acting, the table is read once, at the first step."""

    def __init__(self, policy: TradingPolicy, table_DK: Tensor) -> None:
        self.policy, self.table_DK = policy, table_DK
        self._features_DH: Tensor | None = None

    @property
    def training(self) -> bool:
        return self.policy.training

    def eval(self) -> Any:
        return self.policy.eval()

    def train(self, mode: bool = True) -> Any:
        return self.policy.train(mode)

    def start_state(self, num_rows: int) -> State:
        return self.policy.start_state(num_rows)

    def act(self, obs: Tree, state: State) -> tuple[DiagonalGaussian, Tensor, State]:
        """One day. `obs`: what `Market.observe` gives."""
        if self._features_DH is None:
            with torch.no_grad():
                self._features_DH = self.policy.read(self.table_DK)
        named = cast("dict[str, Tensor]", obs)
        features_BH = self._features_DH.index_select(0, named["day"])
        found, value_1B, state = self.policy.decide(features_BH[None], named["account"][None], state, None)
        return DiagonalGaussian(found.mean_A[0], found.log_std_A[0]), value_1B[0], state

    def unroll(self, obs: Tree, state: State, first_TB: Tensor | None) -> tuple[DiagonalGaussian, Tensor]:
        """Whole sequences, with gradients of all three LSTMs."""
        named = cast("dict[str, Tensor]", obs)
        day_TB = named["day"]
        features_DH = self.policy.read(self.table_DK)
        features_TBH = features_DH.index_select(0, day_TB.flatten()).view(*day_TB.shape, -1)
        distribution, value_TB, _ = self.policy.decide(features_TBH, named["account"], state, first_TB)
        return distribution, value_TB
