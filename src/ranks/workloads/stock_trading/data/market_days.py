"""The days of one period as the market uses them: dates, prices, scaled features, turbulent days.

Legend: D days, S stocks, F features of a stock, M of the market, K = S * F + M columns of the table.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ranks.errors import UserError
from ranks.workloads.stock_trading.data.config import FeatureConfig
from ranks.workloads.stock_trading.data.features import Features, Scaler, as_float32, features_of
from ranks.workloads.stock_trading.data.prices import Dates, Floats, Prices
from ranks.workloads.stock_trading.data.split import Split


@dataclass(frozen=True, eq=False)
class MarketDays:
    """A period of P days, with the lookback window of its first action before it, and no day after it.

    The D = window + P rows are consecutive days. The first action is chosen at the close of row `window` - 1, from the
    rows up to it. Its orders are filled on the next row. So every row from `window` - 1 on has `window` rows of
    features up to and including itself."""

    dates_D: Dates
    tickers: tuple[str, ...]
    close_DS: Floats
    """The last close up to that day; 0 before a stock's first."""
    fill_DS: Floats
    """Fill price of an order given at the close of a row: see `Prices.fill_DS`; NaN where nothing is filled, and on the
    last row."""
    table_DK: npt.NDArray[np.float32]
    """Scaled features: see `Scaler.table_DK`."""
    is_turbulent_D: npt.NDArray[np.bool_]
    """Days after whose close all holdings are sold and nothing is bought."""
    window: int
    is_traded_DS: npt.NDArray[np.bool_] | None = None
    """See `Prices.is_traded_DS`; None if all stocks are traded on all days."""

    @property
    def num_days(self) -> int:
        """P: days of the period."""
        return len(self.dates_D) - self.window


@dataclass(frozen=True, eq=False)
class PreprocessingStats:
    """The statistics of the training days that preprocessing uses; a trained policy stores them."""

    scaler: Scaler
    threshold: float
    """Turbulence above which all holdings are sold, in float32 precision; infinity if that is off."""

    @classmethod
    def fit(cls, features: Features, train: range, clip: float, quantile: float | None) -> PreprocessingStats:
        """Fit on the training days only. Raises UserError: see `Scaler.fit` and `turbulence_threshold`."""
        return cls(Scaler.fit(features, train, clip), turbulence_threshold(features, train, quantile))


@dataclass(frozen=True, eq=False)
class Periods:
    """The periods of a split, and the statistics of the training days that preprocessed all of them."""

    train: MarketDays
    validation: MarketDays | None
    test: MarketDays
    stats: PreprocessingStats
    num_market: int
    """M: the last columns of the tables are features of the market."""


def make_periods(
    prices: Prices, split: Split, config: FeatureConfig, window: int, turbulence_exit: float | None = None
) -> Periods:
    """Compute the periods of a split. Statistics come from its training days only. Raises UserError."""
    features = features_of(prices, config)
    stats = PreprocessingStats.fit(features, split.train, config.clip, turbulence_exit)

    def days(rows: range) -> MarketDays:
        return make_market_days(prices, features, stats, rows, window)

    validation = None if split.validation is None else days(split.validation)
    return Periods(days(split.train), validation, days(split.test), stats, len(features.market_names))


def turbulence_threshold(features: Features, train: range, quantile: float | None) -> float:
    """The quantile of the turbulence over the training days; infinity for None. Raises UserError if the features have
    no turbulence."""
    if quantile is None:
        return float("inf")
    if features.turbulence_D is None:
        do = "turn turbulence on, or the exit off"
        raise UserError(f"an exit above quantile {quantile} of the turbulence", "the turbulence is off", do)
    return float(as_float32(np.quantile(features.turbulence_D[train.start : train.stop], quantile)))


def make_market_days(
    prices: Prices, features: Features, stats: PreprocessingStats, rows: range, window: int
) -> MarketDays:
    """The days of the period `rows`. Raises UserError if its first action has no complete lookback window."""
    start = rows.start - window
    if window < 1 or start < features.first_day:
        found = f"features exist from {prices.dates_D[features.first_day]} on"
        asked = f"a window of {window} days before {prices.dates_D[rows.start]}"
        raise UserError(asked, found, "begin the period later, or use a shorter window of at least 1 day")
    turbulence_D = features.turbulence_D
    is_turbulent_D = np.zeros(prices.num_days, bool) if turbulence_D is None else turbulence_D > stats.threshold
    return _market_days(prices, range(start, rows.stop), stats.scaler.table_DK(features), is_turbulent_D, window)


def days_without_features(prices: Prices, rows: range) -> MarketDays:
    """The days of the period `rows` for accounts that need no features, with a window of 1 day."""
    table_DK, is_turbulent_D = np.zeros((prices.num_days, 0), np.float32), np.zeros(prices.num_days, bool)
    return _market_days(prices, range(rows.start - 1, rows.stop), table_DK, is_turbulent_D, 1)


def _market_days(
    prices: Prices,
    rows: range,
    table_DK: npt.NDArray[np.float32],
    is_turbulent_D: npt.NDArray[np.bool_],
    window: int,
) -> MarketDays:
    """`rows` start with the window."""
    cut = slice(rows.start, rows.stop)
    fill_DS = prices.fill_DS()[cut].copy()
    fill_DS[-1] = np.nan
    return MarketDays(
        prices.dates_D[cut],
        prices.tickers,
        np.nan_to_num(prices.last_close_DS()[cut]),
        fill_DS,
        table_DK[cut],
        is_turbulent_D[cut],
        window,
        prices.is_traded_DS[cut] if prices.has_gaps else None,
    )
