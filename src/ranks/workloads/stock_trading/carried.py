"""What a policy carries of its training days, and the days of other periods seen through it.

Legend: K columns of the market's table.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from ranks.workloads.stock_trading.config import Config
from ranks.workloads.stock_trading.data.features import Scaler, features_of
from ranks.workloads.stock_trading.data.prices import Floats, Prices
from ranks.workloads.stock_trading.market.days import Days, Fitted, days_of
from ranks.workloads.stock_trading.policy import TradingPolicy


def carry(policy: TradingPolicy, fitted: Fitted) -> None:
    """Write what was fitted into the policy's buffers, which are saved and exported with its weights."""
    policy.mean_K.copy_(torch.as_tensor(fitted.scaler.mean_K))
    policy.std_K.copy_(torch.as_tensor(fitted.scaler.std_K))
    policy.exit_above.fill_(fitted.threshold)


def fitted_of(policy: TradingPolicy) -> Fitted:
    """What it carries, to the last bit."""

    def numbers(buffer: Tensor) -> Floats:
        return buffer.cpu().numpy().astype(np.float64)

    return Fitted(Scaler(numbers(policy.mean_K), numbers(policy.std_K), policy.clip), float(policy.exit_above))


def days_for(policy: TradingPolicy, prices: Prices, rows: range, cfg: Config) -> Days:
    """A period as the policy sees it: nothing is fitted on it, nor on any other days of these prices. Raises UserError
    where its first decision has no whole window."""
    return days_of(prices, features_of(prices, cfg.features), fitted_of(policy), rows, cfg.model.window)
