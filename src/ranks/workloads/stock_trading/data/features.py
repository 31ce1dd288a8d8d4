"""Features of each stock and of the market, day by day. A feature uses that day and the days before it only.

Legend: D days, S stocks, F features of a stock, M of the market, K = S * F + M columns of the table.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ranks.errors import UserError
from ranks.workloads.stock_trading.data import indicators
from ranks.workloads.stock_trading.data.config import TRADED, FeatureConfig
from ranks.workloads.stock_trading.data.prices import Floats, Prices
from ranks.workloads.stock_trading.data.turbulence import turbulence

CONSTANT = {"rsi": 50.0}
"""Features of a constant price that are not 0."""


@dataclass(frozen=True, eq=False)
class Features:
    """Features before scaling, float64. `market_DM` is log(1 + `turbulence_D`); None and no column without turbulence.
    All features are finite from row `first_day` on; before it some are NaN."""

    names: tuple[str, ...]
    market_names: tuple[str, ...]
    stock_DSF: Floats
    market_DM: Floats
    turbulence_D: Floats | None
    first_day: int

    @property
    def flat_DK(self) -> Floats:
        """float64[D, K]: the features of the first stock, of the second, ..., then of the market; before scaling."""
        return np.concatenate([self.stock_DSF.reshape(len(self.stock_DSF), -1), self.market_DM], 1)


def history_days(config: FeatureConfig) -> int:
    """The longest lookback of the features in days: as many days lie before the first day with all features."""
    c = config
    longest = {"return": 1, "trend": c.trend_days, "level": c.level_days, "macd": c.macd_slow, "rsi": c.rsi_days}
    longest |= {"cci": c.cci_days, "adx": 2 * c.adx_days, TRADED: 0}
    turbulent = c.turbulence_days + 1 if c.turbulence else 0
    return max(turbulent, *(longest[name] for name in c.names))


def features_of(prices: Prices, config: FeatureConfig) -> Features:
    """Compute the features of every day. Raises UserError if the history is shorter than the longest window.

    The feature of the market is log(1 + turbulence). For close-only prices see `indicators`. All features are ratios:
    they do not change if all prices of a stock are multiplied by a number, as a later split does.

    A suspended stock has the features of its last price. A stock without enough history of its own has the features of
    a constant price, `CONSTANT`.
    """
    stock_DSF = np.stack([_stock_feature(name, prices, config) for name in config.names], -1)
    turbulence_D = turbulence(prices.close_DS, config.turbulence_days) if config.turbulence else None
    market_DM = np.zeros((prices.num_days, 0)) if turbulence_D is None else np.log1p(turbulence_D)[:, None]
    is_known_DS = np.asarray(np.isfinite(stock_DSF).all(2))
    is_known_D = np.asarray(is_known_DS.any(1) & np.isfinite(market_DM).all(1))
    if not is_known_D.any():
        found = f"{prices.num_days} days of {prices.source}, which are too few for the windows"
        raise UserError("features of the prices", found, "give a longer history, or shorten the windows")
    first_day = int(np.argmax(is_known_D))
    assert is_known_D[first_day:].all(), "a feature is undefined after its first day"
    constant_F = np.array([CONSTANT.get(name, 0.0) for name in config.names])
    stock_DSF[first_day:] = np.where(np.isnan(stock_DSF[first_day:]), constant_F, stock_DSF[first_day:])
    market_names = () if turbulence_D is None else ("turbulence",)
    return Features(config.names, market_names, stock_DSF, market_DM, turbulence_D, first_day)


def _stock_feature(name: str, prices: Prices, config: FeatureConfig) -> Floats:
    """float64[D, S]: one feature, computed from the first day of each stock on; NaN until its window is full."""
    is_traded_DS, last_close_DS = prices.is_traded_DS, prices.last_close_DS()
    if name == TRADED:
        return is_traded_DS.astype(np.float64)
    high_DS, low_DS = (
        last_close_DS if bars_DS is None else np.where(is_traded_DS, bars_DS, last_close_DS)
        for bars_DS in (prices.high_DS, prices.low_DS)
    )
    make: dict[str, Callable[[Floats, Floats, Floats], Floats]] = {
        "return": lambda high, low, close: indicators.log_return(close),
        "trend": lambda high, low, close: indicators.trend(close, config.trend_days),
        "level": lambda high, low, close: indicators.trend(close, config.level_days),
        "macd": lambda high, low, close: indicators.macd(close, config.macd_fast, config.macd_slow) / close,
        "rsi": lambda high, low, close: indicators.rsi(close, config.rsi_days),
        "cci": lambda high, low, close: indicators.cci(high, low, close, config.cci_days),
        "adx": lambda high, low, close: indicators.adx(high, low, close, config.adx_days),
    }
    if is_traded_DS[0].all():
        return make[name](high_DS, low_DS, last_close_DS)
    out_DS, first_S = np.full_like(last_close_DS, np.nan), is_traded_DS.argmax(0)
    for first in np.unique(first_S).tolist():
        same_S = first_S == first
        with contextlib.suppress(UserError):  # a stock that is too young for a value
            high, low, close = (values_DS[first:, same_S] for values_DS in (high_DS, low_DS, last_close_DS))
            out_DS[first:, same_S] = make[name](high, low, close)
    return out_DS


@dataclass(frozen=True, eq=False)
class Scaler:
    """Standardise features with the mean and standard deviation of the training days, then clip them.

    A feature has one mean and one deviation over all stocks. float64[K] arrays hold values that float32 can represent,
    so that a weights file stores them exactly. `clip` is in standard deviations.
    """

    mean_K: Floats
    std_K: Floats
    clip: float

    @classmethod
    def fit(cls, features: Features, train: range, clip: float) -> Scaler:
        """Fit on the rows `train` only. Raises UserError if features are missing on some of them."""
        if train.start < features.first_day:
            found = f"features exist from day {features.first_day} on, the training begins with day {train.start}"
            raise UserError("a scaler fitted on the training days", found, "begin the training later")
        days = slice(train.start, train.stop)
        stock_DSF, market_DM = features.stock_DSF[days], features.market_DM[days]
        each = np.ones((stock_DSF.shape[1], 1))
        mean_SF, std_SF = each * stock_DSF.mean((0, 1)), each * stock_DSF.std((0, 1))
        mean_K = as_float32(np.concatenate([mean_SF.ravel(), market_DM.mean(0)]))
        std_K = as_float32(np.concatenate([std_SF.ravel(), market_DM.std(0)]))
        return cls(mean_K, np.where(std_K > 0, std_K, 1.0), clip)

    def table_DK(self, features: Features) -> npt.NDArray[np.float32]:
        """float32[D, K]: scaled and clipped features; 0 for a feature that is constant in training."""
        return np.clip((features.flat_DK - self.mean_K) / self.std_K, -self.clip, self.clip).astype(np.float32)


def as_float32(values: npt.ArrayLike) -> Floats:
    """float64 values rounded to float32 precision."""
    return np.asarray(values, np.float32).astype(np.float64)
