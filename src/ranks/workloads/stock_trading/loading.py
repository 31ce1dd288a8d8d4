"""The prices and periods that a config names."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ranks.workloads.stock_trading.config import MADE, SHIPPED, Config, DataConfig
from ranks.workloads.stock_trading.data import sp500, synthetic
from ranks.workloads.stock_trading.data.features import history_days
from ranks.workloads.stock_trading.data.prices import Prices
from ranks.workloads.stock_trading.data.read_csv import read_csv
from ranks.workloads.stock_trading.data.split import Split, split_by_dates
from ranks.workloads.stock_trading.market.days import Periods, periods_of

PAPER = ("2009-01-02", "2015-09-30"), ("2016-01-04", "2020-05-08")
"""Training and test of sp500 where no days are given."""
TRAIN_SHARE = 0.75


def prices_of(cfg: DataConfig) -> Prices:
    """Raises UserError where there is no such source, or it is damaged."""
    if cfg.source in MADE:
        make = dict(zip(MADE, (synthetic.martingale, synthetic.mean_reverting, synthetic.two_regimes), strict=True))
        prices = make[cfg.source](cfg.made_days, cfg.made_stocks, cfg.made_seed)
    else:
        prices = sp500.stocks() if cfg.source == SHIPPED else read_csv(cfg.source, missing=cfg.missing)
    return prices.only(cfg.tickers) if cfg.tickers else prices


def resolved(cfg: Config, prices: Prices) -> Config:
    """The config with its stocks and both periods named, so that it means the same whatever its source holds later.
    An end that is not given is that of the default: `PAPER` of sp500, else three quarters of the days, and the rest.

    Raises UserError where the history is too short for that.
    """
    d = cfg.data
    train, test = PAPER if d.source == SHIPPED else _quarters(cfg, prices)
    periods = {
        "train_from": d.train_from or train[0],
        "train_to": d.train_to or train[1],
        "test_from": d.test_from or test[0],
        "test_to": d.test_to or test[1],
    }
    return replace(cfg, data=replace(d, tickers=prices.tickers, **periods))


def _quarters(cfg: Config, prices: Prices) -> tuple[tuple[str, str], tuple[str, str]]:
    first, num = first_day(cfg), prices.num_days
    edge = first + int((num - first) * TRAIN_SHARE)
    train, test = range(first, edge), range(edge + cfg.data.embargo_days, num)
    Split(train, None, test).check(cfg.data.embargo_days, cfg.model.window)
    (a, b), (c, d) = ((str(prices.dates_D[rows[0]]), str(prices.dates_D[rows[-1]])) for rows in (train, test))
    return (a, b), (c, d)


def split_of(cfg: Config, prices: Prices) -> Split:
    """Of a config's periods, named or not. Raises UserError where they overlap, or lie too close together."""
    d = resolved(cfg, prices).data
    has_validation = d.validation_from is not None or d.validation_to is not None
    validation = (d.validation_from, d.validation_to) if has_validation else None
    spans = (d.train_from, d.train_to), (d.test_from, d.test_to)
    return split_by_dates(prices, *spans, validation, embargo=d.embargo_days, window=cfg.model.window)


def rows_of_test(cfg: Config, prices: Prices) -> range:
    """Rows of the test of a resolved config, in any prices of its stocks. Raises UserError where it begins less than
    the embargo after the training's last day."""
    d = cfg.data
    test = prices.rows(d.test_from, d.test_to)
    after = int(np.searchsorted(prices.dates_D, np.datetime64(str(d.train_to)), side="right"))
    if after:
        Split(range(after), None, test).check(d.embargo_days, cfg.model.window)
    return test


def first_day(cfg: Config) -> int:
    """The first row of a period that has all its features and a window before it."""
    return history_days(cfg.features) + cfg.model.window


def periods_in(prices: Prices, cfg: Config) -> Periods:
    """The periods of a config, features included; everything fitted comes from its training days."""
    return periods_of(prices, split_of(cfg, prices), cfg.features, cfg.market, cfg.model.window)


def load(cfg: Config) -> Periods:
    """`periods_in` of the config's own prices."""
    return periods_in(prices_of(cfg.data), cfg)
