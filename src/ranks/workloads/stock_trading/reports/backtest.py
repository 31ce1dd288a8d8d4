"""`ranks stock-trading backtest`: a policy, or a rule, through a period, with its books."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from ranks.errors import UserError, nearest
from ranks.workloads.stock_trading.carried import days_for
from ranks.workloads.stock_trading.config import Config, DataConfig
from ranks.workloads.stock_trading.data import sp500
from ranks.workloads.stock_trading.data.prices import Prices
from ranks.workloads.stock_trading.loading import prices_of, resolved, rows_of_test
from ranks.workloads.stock_trading.market import baselines
from ranks.workloads.stock_trading.market.ledger import Ledger
from ranks.workloads.stock_trading.one_account import backtest as backtest_policy
from ranks.workloads.stock_trading.reports.books import books_lines, say_notes, write_books
from ranks.workloads.stock_trading.reports.saved import Trained, load_run

RULES = baselines.BASELINES
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
    """Trade a period with a trained policy or a rule, costs included, and print what came of it.

    Args:
        what: A run's name or folder, or one of buy-and-hold, equal-weight, momentum, min-variance, random.
        data: Other prices than the run's: sp500, or a CSV file. Of a run they need the same stocks, in any order.
        from_: First day, such as 2016-01-04; without it that of the run's test.
        to: Last day; without it that of the run's test, or the last of all where the first lies after that.
        out: Write trades.csv, equity.csv and metrics.json into this folder.
        runs_dir: Where run folders stand.

    A policy's period may not reach into its training days. Returns 0.
    """
    trained = None if what in RULES else _trained(what, runs_dir)
    cfg = trained.cfg if trained else Config()
    cfg = cfg if data is None else replace(cfg, data=replace(cfg.data, source=data))
    prices = prices_of(cfg.data)
    cfg = resolved(cfg, prices)
    cfg = replace(cfg, data=moved(cfg.data, from_, to, str(prices.dates_D[-1])))
    say_notes(prices)
    ledger = ledger_of(trained, cfg, prices) if trained else rule_ledger(what, cfg, prices)
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


def moved(data: DataConfig, first: str | None, last: str | None, end: str) -> DataConfig:
    """With another test. It keeps an end that is not named; one that begins after the run's ends with the prices."""
    first, known = first or data.test_from, data.test_to
    is_later = first is not None and known is not None and first > known
    return replace(data, test_from=first, test_to=last or (end if is_later else known))


def ledger_of(trained: Trained, cfg: Config, prices: Prices) -> Ledger:
    """The books of a policy over the test period of a config. Raises UserError where that lies too close to the days it
    was trained on."""
    days = days_for(trained.policy, prices, rows_of_test(cfg, prices), cfg)
    return backtest_policy(trained.policy, days, cfg, torch.device("cpu"))


def rule_ledger(name: str, cfg: Config, prices: Prices) -> Ledger:
    """The books of a rule over the test period of a config; it was trained on nothing, so that may be any."""
    return RULES[name](prices, prices.rows(cfg.data.test_from, cfg.data.test_to), cfg.market)


def index_ledger(cfg: Config, dates: range, prices: Prices) -> Ledger | None:
    """The index bought and kept over the same days without costs; none where its days are not known."""
    index = sp500.index()
    traded_T = prices.dates_D[dates.start - 1 : dates.stop]  # with the day of the first decision
    start = int(np.searchsorted(index.dates_D, traded_T[0])) + 1
    rows = range(start, start + len(dates))
    if not np.array_equal(index.dates_D[start - 1 : rows.stop], traded_T):
        return None
    return baselines.buy_and_hold(index, rows, replace(cfg.market, cost_bps=0.0, slippage_bps=0.0))
