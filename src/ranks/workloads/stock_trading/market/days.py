"""The days of one period as a market sees them, and nothing of any day after it.

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
from ranks.workloads.stock_trading.market.config import MarketConfig


@dataclass(frozen=True, eq=False)
class Days:
    """A period of P days, with the days before it that its first decision looks back on.

    The D = window + P rows are consecutive days. The first decision is made at the close of row `window` - 1, from the
    `window` rows up to it; orders are filled on the rows after it. So every row has its numbers, and `window` rows lie
    at and before each row that a decision is made on.
    """

    dates_D: Dates
    tickers: tuple[str, ...]
    close_DS: Floats
    fill_DS: Floats
    """What an order given at the close of a row is filled at: see `Prices.fill_DS`; NaN on the last row."""
    table_DK: npt.NDArray[np.float32]
    """Scaled features: see `Scaler.table_DK`."""
    is_turbulent_D: npt.NDArray[np.bool_]
    """Days after whose close all is sold and nothing bought."""
    window: int

    @property
    def num_days(self) -> int:
        """P: days of the period."""
        return len(self.dates_D) - self.window


@dataclass(frozen=True, eq=False)
class Fitted:
    """What the training days fixed for good; a trained policy carries it."""

    scaler: Scaler
    threshold: float
    """Turbulence above which all is sold, as float32 holds it; infinity where that is off."""

    @classmethod
    def of(cls, features: Features, train: range, clip: float, quantile: float | None) -> Fitted:
        """From the training days alone. Raises UserError: see `Scaler.fit` and `turbulence_threshold`."""
        return cls(Scaler.fit(features, train, clip), turbulence_threshold(features, train, quantile))


@dataclass(frozen=True, eq=False)
class Periods:
    """The periods of a split, and what was fitted on the training days for all of them."""

    train: Days
    validation: Days | None
    test: Days
    fitted: Fitted


def periods_of(prices: Prices, split: Split, features: FeatureConfig, config: MarketConfig, window: int) -> Periods:
    """The periods of a split; what is fitted comes from its training days. Raises UserError."""
    known = features_of(prices, features)
    fitted = Fitted.of(known, split.train, features.clip, config.turbulence_exit)

    def days(rows: range) -> Days:
        return days_of(prices, known, fitted, rows, window)

    validation = None if split.validation is None else days(split.validation)
    return Periods(days(split.train), validation, days(split.test), fitted)


def turbulence_threshold(features: Features, train: range, quantile: float | None) -> float:
    """The quantile of the turbulence over the training days; infinity without one. Raises UserError where the
    turbulence is not known."""
    if quantile is None:
        return float("inf")
    if features.turbulence_D is None:
        do = "turn the turbulence on, or the exit off"
        raise UserError(f"an exit above quantile {quantile} of the turbulence", "the turbulence is off", do)
    return float(as_float32(np.quantile(features.turbulence_D[train.start : train.stop], quantile)))


def days_of(prices: Prices, features: Features, fitted: Fitted, rows: range, window: int) -> Days:
    """The days of a period given by its rows. Raises UserError where its first decision has no whole window."""
    start = rows.start - window
    if window < 1 or start < features.first_day:
        found = f"features are known from {prices.dates_D[features.first_day]} on"
        asked = f"a window of {window} days before {prices.dates_D[rows.start]}"
        raise UserError(asked, found, "begin the period later, or take a shorter window (1 day at least)")
    cut = slice(start, rows.stop)
    fill_DS = prices.fill_DS()[cut].copy()
    fill_DS[-1] = np.nan
    turbulence_D = features.turbulence_D
    is_turbulent_D = np.zeros(prices.num_days, bool) if turbulence_D is None else turbulence_D > fitted.threshold
    table_DK = fitted.scaler.table_DK(features)[cut]
    return Days(
        prices.dates_D[cut], prices.tickers, prices.close_DS[cut], fill_DS, table_DK, is_turbulent_D[cut], window
    )
