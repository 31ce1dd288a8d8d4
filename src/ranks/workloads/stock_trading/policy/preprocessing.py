"""Store the preprocessing statistics in a policy's buffers, and preprocess other days with them.

Legend: K columns of the feature table.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from ranks.workloads.stock_trading.data.config import FeatureConfig
from ranks.workloads.stock_trading.data.features import Scaler, features_of
from ranks.workloads.stock_trading.data.market_days import MarketDays, Periods, PreprocessingStats, make_market_days
from ranks.workloads.stock_trading.data.prices import Floats, Prices
from ranks.workloads.stock_trading.policy.trading_policy import TradingPolicy


def set_preprocessing(policy: TradingPolicy, periods: Periods) -> None:
    """Set the policy's buffers, which are saved and exported with its weights, to the statistics of the training
    days."""
    stats = periods.stats
    policy.mean_K.copy_(torch.as_tensor(stats.scaler.mean_K))
    policy.std_K.copy_(torch.as_tensor(stats.scaler.std_K))
    policy.exit_above.fill_(stats.threshold)
    if policy.memory is not None:
        policy.memory.fit(torch.as_tensor(periods.train.table_DK), policy.num_stocks, periods.num_market)


def get_preprocessing(policy: TradingPolicy) -> PreprocessingStats:
    """The statistics from the policy's buffers, bit for bit."""

    def numbers(buffer: Tensor) -> Floats:
        return buffer.cpu().numpy().astype(np.float64)

    scaler = Scaler(numbers(policy.mean_K), numbers(policy.std_K), policy.clip)
    return PreprocessingStats(scaler, float(policy.exit_above))


def market_days_for(policy: TradingPolicy, prices: Prices, rows: range, features: FeatureConfig) -> MarketDays:
    """A period with features scaled by the policy's statistics; nothing is fitted on these prices. Raises UserError if
    the first action of the period has no complete lookback window."""
    return make_market_days(prices, features_of(prices, features), get_preprocessing(policy), rows, policy.window)
