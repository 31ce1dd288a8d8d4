"""The prices and periods that a config names."""

from __future__ import annotations

from ranks.workloads.stock_trading.config import MADE, SHIPPED, Config, DataConfig
from ranks.workloads.stock_trading.data import sp500, synthetic
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


def split_of(cfg: Config, prices: Prices) -> Split:
    """Raises UserError where the periods overlap, or lie too close together."""
    d = cfg.data
    embargo, window = d.embargo_days, cfg.model.window
    given = (d.train_from, d.train_to, d.validation_from, d.validation_to, d.test_from, d.test_to)
    if any(day is not None for day in given):
        has_validation = d.validation_from is not None or d.validation_to is not None
        validation = (d.validation_from, d.validation_to) if has_validation else None
        return split_by_dates(
            prices, (d.train_from, d.train_to), (d.test_from, d.test_to), validation, embargo=embargo, window=window
        )
    if d.source == SHIPPED:
        return split_by_dates(prices, *PAPER, embargo=embargo, window=window)
    first = first_day(cfg)
    edge = first + int((prices.num_days - first) * TRAIN_SHARE)
    return Split(range(first, edge), None, range(edge + d.embargo_days, prices.num_days)).check(
        embargo=embargo, window=window
    )


def first_day(cfg: Config) -> int:
    """The first row of a period that has all its features and a window before it."""
    f = cfg.features
    longest = max(f.trend_days, f.macd_slow, f.rsi_days, f.cci_days, 2 * f.adx_days, f.level_days)
    return max(longest, f.turbulence_days if f.turbulence else 0) + cfg.model.window + 1


def load(cfg: Config) -> Periods:
    """The periods of a config, features included; everything fitted comes from its training days."""
    prices = prices_of(cfg.data)
    return periods_of(prices, split_of(cfg, prices), cfg.features, cfg.market, cfg.model.window)
