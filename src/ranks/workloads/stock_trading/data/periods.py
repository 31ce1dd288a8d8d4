"""Load the prices that a config names, and cut them into its training, validation and test periods."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ranks.workloads.stock_trading.data import sp500, synthetic
from ranks.workloads.stock_trading.data.config import SP500, SYNTHETIC, DataConfig, FeatureConfig, PeriodsConfig
from ranks.workloads.stock_trading.data.features import history_days
from ranks.workloads.stock_trading.data.market_days import Periods, make_periods
from ranks.workloads.stock_trading.data.prices import Prices
from ranks.workloads.stock_trading.data.read_csv import read_csv
from ranks.workloads.stock_trading.data.split import Split, split_by_dates

SP500_PERIODS = ("2009-01-02", "2015-09-30"), ("2016-01-04", "2020-05-08")
"""Default training and test period of sp500."""
TRAIN_FRACTION = 0.75


def load_prices(config: DataConfig) -> Prices:
    """Read or generate the prices of the config's stocks. Raises UserError if the source is missing or damaged."""
    if config.source in SYNTHETIC:
        generators = (synthetic.martingale, synthetic.mean_reverting, synthetic.two_regimes)
        generate = dict(zip(SYNTHETIC, generators, strict=True))[config.source]
        prices = generate(config.synthetic_days, config.synthetic_stocks, config.synthetic_seed)
    else:
        prices = sp500.stocks() if config.source == SP500 else read_csv(config.source, missing=config.missing)
    return prices.only(config.tickers) if config.tickers else prices


def resolve_dates(config: PeriodsConfig, prices: Prices) -> DataConfig:
    """The data config with its tickers and all four dates filled in.

    It then means the same periods when its source gets more days or stocks. Dates that are not given are the defaults:
    `SP500_PERIODS`, or for other prices three quarters of the days and the rest. Raises UserError if the history is too
    short for that.
    """
    d = config.data
    train, test = SP500_PERIODS if d.source == SP500 else _three_quarters(config, prices)
    dates = {
        "train_from": d.train_from or train[0],
        "train_to": d.train_to or train[1],
        "test_from": d.test_from or test[0],
        "test_to": d.test_to or test[1],
    }
    return replace(d, tickers=prices.tickers, **dates)


def _three_quarters(config: PeriodsConfig, prices: Prices) -> tuple[tuple[str, str], tuple[str, str]]:
    embargo, num_days = config.data.embargo_days, prices.num_days
    first = first_usable_row(config.features, config.window)
    edge = first + int((num_days - first) * TRAIN_FRACTION)
    train, test = range(first, edge), range(edge + embargo, num_days)
    Split(train, None, test).check(embargo, config.window)
    (a, b), (c, d) = ((str(prices.dates_D[rows[0]]), str(prices.dates_D[rows[-1]])) for rows in (train, test))
    return (a, b), (c, d)


def split_periods(config: PeriodsConfig, prices: Prices) -> Split:
    """Rows of the config's periods, given or default. Raises UserError if they overlap or violate the embargo."""
    d = resolve_dates(config, prices)
    has_validation = d.validation_from is not None or d.validation_to is not None
    validation = (d.validation_from, d.validation_to) if has_validation else None
    spans = (d.train_from, d.train_to), (d.test_from, d.test_to)
    return split_by_dates(prices, *spans, validation, embargo=d.embargo_days, window=config.window)


def get_test_rows(config: DataConfig, window: int, prices: Prices) -> range:
    """Rows of the test period of a config with resolved dates, in any prices of its stocks.

    Raises UserError if the test starts less than the embargo after the last training day.
    """
    test = prices.rows(config.test_from, config.test_to)
    after = int(np.searchsorted(prices.dates_D, np.datetime64(str(config.train_to)), side="right"))
    if after:
        Split(range(after), None, test).check(config.embargo_days, window)
    return test


def first_usable_row(features: FeatureConfig, window: int) -> int:
    """The first row that a period can start on, with all features and a lookback window before it."""
    return history_days(features) + window


def prepare_periods(config: PeriodsConfig, prices: Prices) -> Periods:
    """The periods of a config with features and preprocessing. Statistics come from its training days only."""
    split = split_periods(config, prices)
    return make_periods(prices, split, config.features, config.window, config.turbulence_exit)


def load_periods(config: PeriodsConfig) -> Periods:
    """`prepare_periods` of the config's own prices."""
    return prepare_periods(config, load_prices(config.data))
