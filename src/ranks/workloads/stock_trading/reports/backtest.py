"""`ranks stock-trading backtest`: a policy, or a rule, through a period, with its books."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from ranks.errors import UserError, nearest
from ranks.workloads.stock_trading.config import Config
from ranks.workloads.stock_trading.data import sp500
from ranks.workloads.stock_trading.data.prices import Prices
from ranks.workloads.stock_trading.loading import prices_of, split_of
from ranks.workloads.stock_trading.market import baselines
from ranks.workloads.stock_trading.market.days import periods_of
from ranks.workloads.stock_trading.market.ledger import Ledger
from ranks.workloads.stock_trading.one_account import backtest as backtest_policy
from ranks.workloads.stock_trading.reports.books import books_lines, write_books
from ranks.workloads.stock_trading.reports.saved import Trained, load_run

RULES = baselines.BASELINES
INDEX = "index"
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
    """Trade a period with a trained policy or a rule, costs included, and print what came of it.

    Args:
        what: A run's name or folder, or one of buy-and-hold, equal-weight, momentum, min-variance, random.
        data: Other prices than the run's: sp500, or a CSV file. Of a run they need the same stocks.
        from_: First day, such as 2016-01-04; without it the test period of the run.
        to: Last day.
        out: Write trades.csv, equity.csv and metrics.json into this folder.
        runs_dir: Where run folders stand.

    A policy's period may not reach into its training days. Returns 0.
    """
    trained = None if what in RULES else _trained(what, runs_dir)
    cfg = with_period(trained.cfg if trained else Config(), data, from_, to)
    ledger = ledger_of(cfg, trained) if trained else rule_ledger(what, cfg)
    print(f"{what}: {ledger.dates_T[1]} to {ledger.dates_T[-1]}, {len(ledger.dates_T) - 1} days. {NOT_ADVICE}")
    for line in books_lines({what: ledger}):
        print(line)
    if out is not None:
        facts = {"what": what, "weights_sha256": trained.sha256 if trained else None}
        for path in write_books(out, ledger, facts):
            print(path)
    return 0


def _trained(what: str, runs_dir: Path) -> Trained:
    try:
        return load_run(what, runs_dir)
    except UserError as error:
        raise UserError(f"a backtest of {what}", error.found, nearest(what, list(RULES), error.do)) from None


def with_period(cfg: Config, data: str | None, first: str | None, last: str | None) -> Config:
    """The config with other prices, or another test period."""
    d = cfg.data if data is None else replace(cfg.data, source=data)
    if first is None and last is None:
        return replace(cfg, data=d)
    prices = prices_of(d)
    train = split_of(replace(cfg, data=d), prices).train
    begin, end = prices.dates_D[train.start], prices.dates_D[train.stop - 1]
    period = replace(d, train_from=str(begin), train_to=str(end), test_from=first, test_to=last)
    return replace(cfg, data=replace(period, validation_from=None, validation_to=None))


def ledger_of(cfg: Config, trained: Trained) -> Ledger:
    """The books of a policy over the test period of a config. Raises UserError for other stocks than it learned."""
    prices = prices_of(cfg.data)
    if prices.num_stocks != trained.policy.num_stocks:
        found = f"{prices.source} has {prices.num_stocks} stocks, it learned {trained.policy.num_stocks}"
        raise UserError(f"a backtest of {trained.name}", found, "choose as many with --data, in the same order")
    periods = periods_of(prices, split_of(cfg, prices), cfg.features, cfg.market, cfg.model.window)
    return backtest_policy(trained.policy, periods.test, cfg, torch.device("cpu"))


def rule_ledger(name: str, cfg: Config) -> Ledger:
    """The books of a rule over the test period of a config."""
    prices = prices_of(cfg.data)
    return RULES[name](prices, split_of(cfg, prices).test, cfg.market)


def index_ledger(cfg: Config, dates: range, prices: Prices) -> Ledger | None:
    """The index bought and kept over the same days without costs; none where its days are not known."""
    index = sp500.index()
    traded_T = prices.dates_D[dates.start - 1 : dates.stop]  # with the day of the first decision
    start = int(np.searchsorted(index.dates_D, traded_T[0])) + 1
    rows = range(start, start + len(dates))
    if not np.array_equal(index.dates_D[start - 1 : rows.stop], traded_T):
        return None
    return baselines.buy_and_hold(index, rows, replace(cfg.market, cost_bps=0.0, slippage_bps=0.0))
