"""Settings of prices, features and periods. Imports no torch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ranks.errors import UserError

SYNTHETIC = ("martingale", "mean-reverting", "two-regimes")
SP500 = "sp500"
TRADED = "traded"
"""Feature of a stock: 1 on days on which it is traded, 0 on others."""
STOCK_FEATURES = ("return", "trend", "macd", "rsi", "cci", "adx", "level")
"""log return of the day; close over its simple moving average (SMA) of `trend_days`, less 1; MACD over close; RSI; CCI;
ADX; close over its SMA of `level_days`, less 1, which takes the place of the price itself."""


@dataclass(frozen=True)
class DataConfig:
    """Which prices, and which days for which period. Days are written as 2016-01-04; first and last day count."""

    source: str = SP500
    """sp500 (20 US stocks 1990-2022, shipped with the package), a CSV file, or a synthetic market: martingale,
    mean-reverting, two-regimes."""
    tickers: tuple[str, ...] = ()
    """Only these stocks; by default all."""
    missing: Literal["error", "drop-days", "drop-stocks", "not-traded"] = "error"
    """What to do if a stock has no price on a day: reject the file, drop the day or the stock, or take the stock as not
    traded on that day (listed later, suspended, delisted). Prices are never filled in."""
    train_from: str | None = None
    train_to: str | None = None
    validation_from: str | None = None
    """Optional period between training and test that is backtested during training."""
    validation_to: str | None = None
    test_from: str | None = None
    """Default of the training and test days: for sp500 training 2009-01-02 to 2015-09-30 and test 2016-01-04 to
    2020-05-08; for other prices the first three quarters of the days, and the rest."""
    test_to: str | None = None
    embargo_days: int = 60
    """Unused trading days between two periods; at least the window."""
    synthetic_days: int = 3000
    """Length of a synthetic market."""
    synthetic_stocks: int = 4
    synthetic_seed: int = 0

    def __post_init__(self) -> None:
        if min(self.synthetic_days, self.synthetic_stocks) < 1 or self.embargo_days < 0:
            asked = (
                f"--data.synthetic-days {self.synthetic_days} --data.synthetic-stocks {self.synthetic_stocks} "
                f"--data.embargo-days {self.embargo_days}"
            )
            found = "a number that is too small"
            raise UserError(asked, found, "give 1 or more days and stocks, and an embargo of 0 or more days")


@dataclass(frozen=True)
class FeatureConfig:
    """What a policy observes of each stock and of the market, besides the state of its account."""

    names: tuple[str, ...] = STOCK_FEATURES
    """Any of return, trend, macd, rsi, cci, adx, level, traded. With --data.missing not-traded, `traded` is added."""
    trend_days: int = 30
    macd_fast: int = 12
    macd_slow: int = 26
    rsi_days: int = 30
    cci_days: int = 30
    adx_days: int = 30
    level_days: int = 252
    turbulence: bool = True
    """Observe the turbulence of the market; needs at least two stocks."""
    turbulence_days: int = 252
    """Days before the present one that a day's returns are compared with."""
    clip: float = 5.0
    """Scaled features are clipped at this many standard deviations."""

    def __post_init__(self) -> None:
        for name in self.names:
            if name not in (*STOCK_FEATURES, TRADED):
                known = ", ".join((*STOCK_FEATURES, TRADED))
                raise UserError(f"the feature '{name}'", "no such feature", f"choose from {known}")
        if not self.names or len(set(self.names)) < len(self.names):
            raise UserError(f"the features {self.names}", "no feature, or one of them twice", "name each once")
        days = {name: value for name, value in vars(self).items() if name.endswith("_days")}
        for name, value in days.items():
            if value < 2:
                asked = f"--features.{name.replace('_', '-')} {value}"
                raise UserError(asked, "a window of less than 2 days", "give 2 days or more")
        if not 1 <= self.macd_fast < self.macd_slow:
            asked = f"--features.macd-fast {self.macd_fast} --features.macd-slow {self.macd_slow}"
            raise UserError(asked, "the fast average must be shorter than the slow one", "for example 12 and 26")
        if not self.clip > 0:
            raise UserError(f"--features.clip {self.clip}", "it would leave no feature", "give a number above 0")


@dataclass(frozen=True)
class PeriodsConfig:
    """The settings that turn prices into the periods of a run: which days, which features, which preprocessing."""

    data: DataConfig
    features: FeatureConfig
    window: int
    """Lookback window of the policy, in days."""
    turbulence_exit: float | None = None
    """See `MarketConfig.turbulence_exit`."""
