"""What a policy is told of each day: features of each stock and of the market, each from the days up to it alone.

Legend: D days, S stocks, F features of a stock, M of the market, K = S * F + M columns of the table.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ranks.errors import UserError
from ranks.workloads.stock_trading.data import indicators
from ranks.workloads.stock_trading.data.config import FeatureConfig
from ranks.workloads.stock_trading.data.prices import Floats, Prices
from ranks.workloads.stock_trading.data.turbulence import turbulence


@dataclass(frozen=True, eq=False)
class Features:
    """`stock_DSF`, `market_DM`: float64, before scaling. `turbulence_D`: what `market_DM` is the logarithm of, None
    where it was not asked for. From `first_day` on all of them are numbers; before it some are NaN."""

    names: tuple[str, ...]
    market_names: tuple[str, ...]
    stock_DSF: Floats
    market_DM: Floats
    turbulence_D: Floats | None
    first_day: int


def features_of(prices: Prices, config: FeatureConfig) -> Features:
    """The features of every day. Raises UserError where the history is shorter than the longest window.

    The market's feature is log(1 + turbulence). Close-only prices: see `indicators`.
    """
    close_DS = prices.close_DS
    high_DS = close_DS if prices.high_DS is None else prices.high_DS
    low_DS = close_DS if prices.low_DS is None else prices.low_DS
    make: dict[str, Callable[[], Floats]] = {
        "return": lambda: indicators.log_return(close_DS),
        "trend": lambda: indicators.trend(close_DS, config.trend_days),
        "level": lambda: indicators.trend(close_DS, config.level_days),
        "macd": lambda: indicators.macd(close_DS, config.macd_fast, config.macd_slow) / close_DS,
        "rsi": lambda: indicators.rsi(close_DS, config.rsi_days),
        "cci": lambda: indicators.cci(high_DS, low_DS, close_DS, config.cci_days),
        "adx": lambda: indicators.adx(high_DS, low_DS, close_DS, config.adx_days),
    }
    stock_DSF = np.stack([make[name]() for name in config.names], -1)
    turbulence_D = turbulence(close_DS, config.turbulence_days) if config.turbulence else None
    market_DM = np.zeros((prices.num_days, 0)) if turbulence_D is None else np.log1p(turbulence_D)[:, None]
    flat_DK = np.concatenate([stock_DSF.reshape(prices.num_days, -1), market_DM], 1)
    is_known_D = np.asarray(np.isfinite(flat_DK).all(1))
    if not is_known_D.any():
        found = f"the {prices.num_days} days of {prices.source} are fewer than the windows take"
        raise UserError("features of the prices", found, "give a longer history, or shorten the windows")
    first_day = int(np.argmax(is_known_D))
    assert is_known_D[first_day:].all(), "a feature that is undefined after its first day"
    market_names = () if turbulence_D is None else ("turbulence",)
    return Features(config.names, market_names, stock_DSF, market_DM, turbulence_D, first_day)


@dataclass(frozen=True, eq=False)
class Scaler:
    """Mean and standard deviation of each feature over the training days, all stocks together; frozen after that.

    `mean_F`, `std_F` for the stocks, `mean_M`, `std_M` for the market; `clip` in standard deviations.
    """

    mean_F: Floats
    std_F: Floats
    mean_M: Floats
    std_M: Floats
    clip: float

    @classmethod
    def fit(cls, features: Features, train: range, clip: float) -> Scaler:
        """From the training days alone. Raises UserError where features are not known on all of them."""
        if train.start < features.first_day:
            found = f"features are known from day {features.first_day} on, the training begins with day {train.start}"
            raise UserError("a scaler of the training days", found, "begin the training later")
        days = slice(train.start, train.stop)
        stock_DSF, market_DM = features.stock_DSF[days], features.market_DM[days]
        return cls(stock_DSF.mean((0, 1)), _spread(stock_DSF, (0, 1)), market_DM.mean(0), _spread(market_DM, 0), clip)

    def table_DK(self, features: Features) -> npt.NDArray[np.float32]:
        """float32[D, S * F + M], clipped: all features of the first stock, of the second, ..., then the market's."""
        stock_DSF = (features.stock_DSF - self.mean_F) / self.std_F
        market_DM = (features.market_DM - self.mean_M) / self.std_M
        flat_DK = np.concatenate([stock_DSF.reshape(len(stock_DSF), -1), market_DM], 1)
        return np.clip(flat_DK, -self.clip, self.clip).astype(np.float32)


def _spread(values: Floats, axes: int | tuple[int, int]) -> Floats:
    """Standard deviations; 1 for a feature that never changes."""
    std = values.std(axes)
    return np.where(std > 0, std, 1.0)
