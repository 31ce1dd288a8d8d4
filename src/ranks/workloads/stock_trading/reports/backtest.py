"""`ranks stock-trading backtest`: trade a period with a policy or a baseline, and write its trades and metrics."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ranks.errors import OtherFormat, UserError, nearest
from ranks.workloads.stock_trading.config import Config
from ranks.workloads.stock_trading.data import sp500
from ranks.workloads.stock_trading.data.config import DataConfig, PeriodsConfig
from ranks.workloads.stock_trading.data.periods import get_test_rows, load_prices, resolve_dates
from ranks.workloads.stock_trading.data.prices import Prices
from ranks.workloads.stock_trading.market.baselines import BASELINES, buy_and_hold
from ranks.workloads.stock_trading.market.config import MarketConfig
from ranks.workloads.stock_trading.market.ledger import Ledger
from ranks.workloads.stock_trading.reports.results import metrics_table, print_warnings, write_results

if TYPE_CHECKING:
    from ranks.workloads.stock_trading.policy.trading_policy import TradingPolicy
    from ranks.workloads.stock_trading.runs.trained_run import TrainedRun

INDEX = "index without dividends"
NOT_ADVICE = "Past prices; no investment advice."


def backtest(
    what: str,
    /,
    *,
    data: str | None = None,
    from_: str | None = None,
    to: str | None = None,
    out: Path | None = None,
    runs_dir: Path = Path("runs"),
) -> int:
    """Backtest a trained policy or a baseline strategy with costs, and print its performance metrics.

    Args:
        what: A run's name or folder, or a baseline: buy-and-hold, equal-weight, momentum, min-variance, random.
        data: Prices to trade instead of the run's: sp500, or a CSV file with the run's stocks in any order.
        from_: First day, for example 2016-01-04; by default the first test day of the run.
        to: Last day; by default the last test day of the run, or the last day of the prices if `from` is later.
        out: Write trades.csv, equity.csv and metrics.json into this folder.
        runs_dir: The folder of the runs.

    A policy cannot be backtested on its training days. Returns 0.
    """
    trained = None if what in BASELINES else _trained(what, runs_dir)
    cfg = trained.cfg if trained else Config()
    cfg = cfg if data is None else replace(cfg, data=replace(cfg.data, source=data))
    prices = load_prices(cfg.data)
    config = with_test_period(resolve_dates(cfg.periods, prices), from_, to, str(prices.dates_D[-1]))
    print_warnings(prices)
    if trained:
        ledger = policy_ledger(trained.policy, replace(cfg.periods, data=config), cfg.market, prices)
    else:
        ledger = BASELINES[what](prices, prices.rows(config.test_from, config.test_to), cfg.market)
    print(f"{what}: {ledger.dates_T[1]} to {ledger.dates_T[-1]}, {len(ledger.dates_T) - 1} days. {NOT_ADVICE}")
    for line in metrics_table({what: ledger}):
        print(line)
    if out is not None:
        source = {"what": what, "weights_sha256": trained.sha256 if trained else None}
        for path in write_results(out, ledger, source):
            print(path)
    return 0


def _trained(what: str, runs_dir: Path) -> TrainedRun:
    from ranks.workloads.stock_trading.runs.trained_run import load_run

    try:
        return load_run(what, runs_dir)
    except OtherFormat:
        raise
    except UserError as error:
        raise UserError(f"a backtest of {what}", error.found, nearest(what, list(BASELINES), error.do)) from None


def with_test_period(config: DataConfig, first: str | None, last: str | None, end: str) -> DataConfig:
    """The config with another test period. A day that is None stays, except that a period that starts after the old one
    extends to the last day `end` of the prices."""
    first, known = first or config.test_from, config.test_to
    is_later = first is not None and known is not None and first > known
    return replace(config, test_from=first, test_to=last or (end if is_later else known))


def policy_ledger(policy: TradingPolicy, config: PeriodsConfig, market: MarketConfig, prices: Prices) -> Ledger:
    """Backtest a policy over the test period of a config with resolved dates. Raises UserError if the period overlaps
    the training days or the embargo."""
    import torch

    from ranks.workloads.stock_trading.policy.backtest import backtest as backtest_policy
    from ranks.workloads.stock_trading.policy.preprocessing import market_days_for

    rows = get_test_rows(config.data, config.window, prices)
    days = market_days_for(policy, prices, rows, config.features)
    return backtest_policy(policy, days, market, torch.device("cpu"))


def index_ledger(prices: Prices, rows: range, market: MarketConfig) -> Ledger | None:
    """Buy and hold the S&P 500 index over the same days without costs; None if the index lacks some of the days."""
    index = sp500.index()
    traded_T = prices.dates_D[rows.start - 1 : rows.stop]  # with the day of the first action
    start = int(np.searchsorted(index.dates_D, traded_T[0])) + 1
    index_rows = range(start, start + len(rows))
    if not np.array_equal(index.dates_D[start - 1 : index_rows.stop], traded_T):
        return None
    return buy_and_hold(index, index_rows, replace(market, commission_bps=0.0, slippage_bps=0.0))
