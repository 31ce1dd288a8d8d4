"""A policy together with the inputs from its market, as the collector and the PPO loss call it.

Legend: D days, P inputs of the market, N windows of an account's sequence, H size of the features, T steps, B accounts.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import torch
from torch import Tensor, nn

from ranks.rl.policies.distributions import DiagonalGaussian
from ranks.rl.pytree import State, Tree
from ranks.workloads.stock_trading.policy.trading_policy import MarketInputs, TradingPolicy


class MarketPolicy:
    """Create a new one after each update: it extracts the features of all days once, on the first call of `act`.

    `inputs`: `policy.read(table_DK)`. With a stride of 1 each day has a window of exactly `window` days, so that an
    action does not depend on the first day of the table."""

    def __init__(self, policy: TradingPolicy, inputs: MarketInputs) -> None:
        self.policy, self.inputs = policy, inputs
        self._features_DH: Tensor | None = None

    def eval(self) -> Any:
        return self.policy.eval()

    def modules(self) -> Iterator[nn.Module]:
        return self.policy.modules()

    def start_state(self, num_rows: int) -> State:
        return self.policy.start_state(num_rows)

    def act(self, obs: Tree, state: State) -> tuple[DiagonalGaussian, Tensor, State]:
        """(distribution of the actions, value [B], next state) of one day. `obs` comes from `Market.observe`."""
        if self._features_DH is None:
            with torch.no_grad():
                self._features_DH = self.policy.extract_features(self.inputs.rows_P)
        named = cast("dict[str, Tensor]", obs)
        features_BH = self._features_DH.index_select(0, self._feature_row(named["day"]))
        step, value_1B, state = self.policy.decide(features_BH[None], named["account"][None], state, None)
        return DiagonalGaussian(step.mean_A[0], step.log_std_A[0]), value_1B[0], state

    def unroll(self, obs: Tree, state: State, first_TB: Tensor | None) -> tuple[DiagonalGaussian, Tensor]:
        """(distribution, value [T, B]) of whole sequences, with gradients of the whole policy. Without recurrent
        state, of any days of any accounts."""
        named = cast("dict[str, Tensor]", obs)
        features_TBH = self.features(named["day"], is_consecutive=first_TB is None)
        distribution, value_TB, _ = self.policy.decide(features_TBH, named["account"], state, first_TB)
        return distribution, value_TB

    def features(self, day_TB: Tensor, is_consecutive: bool) -> Tensor:
        """[T, B, H]: the features of these days, with gradients.

        They are extracted from all inputs, or only from those of these days where these are fewer. With a stride above
        1 that needs consecutive days of each account.
        """
        row_TB = self._feature_row(day_TB)
        if self.inputs.stride > 1:
            return self._of_windows(row_TB, is_consecutive)
        row_R = row_TB.flatten()
        if len(row_R) < len(self.inputs.rows_P):
            features_RH = self.policy.extract_features(self.inputs.rows_P.index_select(0, row_R))
        else:
            features_RH = self.policy.extract_features(self.inputs.rows_P).index_select(0, row_R)
        return features_RH.unflatten(0, row_TB.shape)

    def _of_windows(self, row_TB: Tensor, is_consecutive: bool) -> Tensor:
        """`features` where `stride` days share an input: a window of the first LSTM."""
        (num_steps, num), stride, windows_PKW = row_TB.shape, self.inputs.stride, self.inputs.rows_P
        num_each = -(-(num_steps - 1) // stride) + 1
        if not is_consecutive or num * num_each >= len(windows_PKW):
            features_DH = self.policy.extract_features(windows_PKW)
            return features_DH.index_select(0, row_TB.flatten()).view(num_steps, num, -1)
        # the windows of each account, one account after the other, then the place of each day among their features
        first_B = torch.div(row_TB[0], stride, rounding_mode="floor")
        offset_N = torch.arange(num_each, device=row_TB.device)
        window_BN = (first_B[:, None] + offset_N).clamp(max=len(windows_PKW) - 1)
        features_RH = self.policy.extract_features(windows_PKW.index_select(0, window_BN.flatten()))
        account_B = torch.arange(num, device=row_TB.device) * (num_each * stride)
        place_TB = row_TB - first_B * stride + account_B
        return features_RH.index_select(0, place_TB.flatten()).view(num_steps, num, -1)

    def _feature_row(self, day: Tensor) -> Tensor:
        """The row of these days among the features of all inputs, which start `window` - 1 days into the table."""
        return day - (self.policy.window - 1)
