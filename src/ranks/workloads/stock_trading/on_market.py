"""A policy beside the market's table that it reads: what a collector acts with, and what PPO's loss calls.

Legend: D days, K columns of the table, P passes of the reader, W days of one, N passes of an account's sequence, H
hidden, T steps, B accounts.
"""

from __future__ import annotations

from typing import Any, cast

import torch
from torch import Tensor

from ranks.rl.distributions import DiagonalGaussian
from ranks.rl.pytree import State, Tree
from ranks.workloads.stock_trading.policy import TradingPolicy


class OnMarket:
    """Made anew after each update: while eval_mode, the table is read once, at the first step.

    `stride`: days that share a pass of the reader, the policy's own where it is not given. With 1 each day has a pass
    of exactly `window` days, so that what is done on it does not depend on where the table begins.
    """

    def __init__(self, policy: TradingPolicy, table_DK: Tensor, stride: int | None = None) -> None:
        self.policy, self.stride = policy, stride or policy.stride
        self.passes_PKW = policy.passes(table_DK, self.stride)
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
                self._features_DH = self.policy.read(self.passes_PKW)
        named = cast("dict[str, Tensor]", obs)
        features_BH = self._features_DH.index_select(0, self._row(named["day"]))
        found, value_1B, state = self.policy.decide(features_BH[None], named["account"][None], state, None)
        return DiagonalGaussian(found.mean_A[0], found.log_std_A[0]), value_1B[0], state

    def unroll(self, obs: Tree, state: State, first_TB: Tensor | None) -> tuple[DiagonalGaussian, Tensor]:
        """Whole sequences, with gradients of all three LSTMs."""
        named = cast("dict[str, Tensor]", obs)
        features_TBH = self._features(named["day"], follow_each_other=first_TB is None)
        distribution, value_TB, _ = self.policy.decide(features_TBH, named["account"], state, first_TB)
        return distribution, value_TB

    def _row(self, day: Tensor) -> Tensor:
        """Where the features of these days stand among those of all passes."""
        return day - (self.policy.window - 1)

    def _features(self, day_TB: Tensor, follow_each_other: bool) -> Tensor:
        """[T, B, H]. Where each account's days follow each other, only the passes that speak of them are made, unless
        that would be more than all there are."""
        (horizon, num), stride, num_passes = day_TB.shape, self.stride, len(self.passes_PKW)
        row_TB = self._row(day_TB)
        num_each = -(-(horizon - 1) // stride) + 1
        if not follow_each_other or num * num_each >= num_passes:
            features_DH = self.policy.read(self.passes_PKW)
            return features_DH.index_select(0, row_TB.flatten()).view(horizon, num, -1)
        first_B = torch.div(row_TB[0], stride, rounding_mode="floor")
        offset_N = torch.arange(num_each, device=day_TB.device)
        pass_BN = (first_B[:, None] + offset_N).clamp(max=num_passes - 1)
        features_RH = self.policy.read(self.passes_PKW.index_select(0, pass_BN.flatten()))
        account_B = torch.arange(num, device=day_TB.device) * (num_each * stride)
        place_TB = row_TB - first_B * stride + account_B
        return features_RH.index_select(0, place_TB.flatten()).view(horizon, num, -1)
