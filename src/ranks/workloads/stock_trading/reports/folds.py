"""The folds of a walk forward, and what came of them: accounts that go from fold to fold, measured side by side.

Legend: T days.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np

from ranks.workloads.stock_trading.config import SHIPPED, Config
from ranks.workloads.stock_trading.data import split
from ranks.workloads.stock_trading.data.prices import Dates, Floats, Prices
from ranks.workloads.stock_trading.loading import first_day
from ranks.workloads.stock_trading.market.config import MarketConfig
from ranks.workloads.stock_trading.market.ledger import Ledger
from ranks.workloads.stock_trading.market.metrics import summary
from ranks.workloads.stock_trading.reports.books import measures_lines, plain, told
from ranks.workloads.stock_trading.reports.intervals import measures_over_seeds

Key = TypeVar("Key")
FIRST = "1993-01-04"
"""Of sp500: with the three years before it, every feature and benchmark has its history."""


@dataclass(frozen=True, eq=False)
class Fold:
    """`cfg` names the days of both periods; any `ranks train stock-trading` with them is a training of this fold."""

    number: int
    cfg: Config
    test: range

    @property
    def days(self) -> str:
        """Both periods in words."""
        d = self.cfg.data
        return f"trained on {d.train_from} to {d.train_to}, traded {d.test_from} to {d.test_to}, {len(self.test)} days"


def folds_of(cfg: Config, prices: Prices, num: int, first: str | None, last: str | None) -> list[Fold]:
    """The later half of the days from `first` to `last`, cut into `num` tests; each fold trains on all days before its
    own, but for the embargo. Raises UserError where the history is too short."""
    if first is None and cfg.data.source == SHIPPED:
        first = FIRST
    rows = prices.rows(first, last)
    if first is None:
        rows = range(min(first_day(cfg), rows.stop), rows.stop)

    def day(row: int) -> str:
        return str(prices.dates_D[row])

    folds: list[Fold] = []
    parts = split.walk_forward(rows, num, embargo=cfg.data.embargo_days, window=cfg.model.window)
    for number, part in enumerate(parts, start=1):
        train = {"train_from": day(part.train[0]), "train_to": day(part.train[-1])}
        test = {"test_from": day(part.test[0]), "test_to": day(part.test[-1])}
        folds.append(Fold(number, replace(cfg, data=replace(cfg.data, **train, **test)), part.test))
    return folds


@dataclass(frozen=True, eq=False)
class Course:
    """An account through one fold or several. float64[T]: values at each day's close over the first of them; money that
    changed hands, and fees, in the same unit."""

    dates_T: Dates
    value_T: Floats
    notional_T: Floats
    fee_T: Floats

    @classmethod
    def of(cls, ledgers: Sequence[Ledger], config: MarketConfig) -> Course:
        """Folds that follow each other. Each was traded afresh, from the same cash. Here an account sells all that it
        holds at the close of a fold's last day, at the market's costs, brings the money to the next fold and buys there
        what that fold's books say, in proportion."""
        before, parts = 1.0, list[tuple[Dates, Floats, Floats, Floats]]()
        for number, ledger in enumerate(ledgers, start=1):
            if parts and ledger.dates_T[0] != parts[-1][0][-1]:
                raise ValueError(f"a fold from {ledger.dates_T[0]} on after one that ends on {parts[-1][0][-1]}")
            rows, unit = slice(1 if parts else 0, None), before / ledger.value_T[0]
            value_T, notional_T, fee_T = (unit * of[rows] for of in (ledger.value_T, ledger.notional_T, ledger.fee_T))
            if number < len(ledgers):
                sold = unit * float((ledger.shares_TS[-1] * ledger.close_TS[-1]).sum()) * (1 - config.slippage)
                notional_T[-1] += sold
                fee_T[-1] += sold * config.fee
                value_T[-1] = unit * ledger.cash_T[-1] + sold * (1 - config.fee)
            parts.append((ledger.dates_T[rows], value_T, notional_T, fee_T))
            before = float(value_T[-1])
        dates, *numbers = zip(*parts, strict=True)
        return cls(np.concatenate(dates), *(np.concatenate(column) for column in numbers))

    def measures(self) -> dict[str, float]:
        """By name, as `metrics.summary` gives them."""
        return summary(self.value_T, self.notional_T, self.fee_T)


def courses(folds: Sequence[Mapping[Key, Ledger]], config: MarketConfig) -> dict[Key, Course]:
    """Through all of the folds, for each account."""
    return {key: Course.of([fold[key] for fold in folds], config) for key in folds[0]}


@dataclass(frozen=True, eq=False)
class Part:
    """One fold, or all of them: the policy by seed, and beside it what it has to beat, on the same days."""

    policy: Mapping[int, Course]
    beside: Mapping[str, Course]

    def over_seeds(self) -> dict[str, dict[str, float]]:
        """Of each measure: see `intervals.over_seeds`."""
        return measures_over_seeds([course.measures() for course in self.policy.values()])

    def lines(self) -> list[str]:
        """A table: the policy's mean over its seeds, that mean's interval, the interquartile mean, and the others."""
        found, num = self.over_seeds(), len(self.policy)
        rows = {f"policy, mean of {num} seeds" if num > 1 else "policy": "mean"}
        if num > 1:
            rows |= {"  95 % interval from": "low", "  to": "high", "  interquartile mean": "iqm"}
        policy = {row: {name: values[key] for name, values in found.items()} for row, key in rows.items()}
        return measures_lines(policy | {name: course.measures() for name, course in self.beside.items()})

    def facts(self) -> dict[str, Any]:
        """For JSON: every measure of every seed, over the seeds, and of the others."""
        return {
            "policy": {seed: plain(course.measures()) for seed, course in self.policy.items()},
            "over_seeds": {name: plain(values) for name, values in self.over_seeds().items()},
            "beside": {name: plain(course.measures()) for name, course in self.beside.items()},
        }

    def mean(self, measure: str) -> float:
        """The policy's, over its seeds."""
        return float(np.mean([course.measures()[measure] for course in self.policy.values()]))

    def short_of(self, measure: str) -> dict[str, float]:
        """Whom the policy, in the mean over its seeds, does not beat by a measure, and what they reach."""
        mine = self.mean(measure)
        others = {name: course.measures()[measure] for name, course in self.beside.items()}
        return {name: value for name, value in others.items() if not mine > value}


def verdict(whole: Part, folds: Sequence[Part]) -> str:
    """One sentence on where the policy does not beat the market: by return, as who holds cash risks little, and by
    Sharpe ratio."""
    says: list[str] = []
    for measure, called in (("return", "return"), ("sharpe", "Sharpe ratio")):
        short, mine = whole.short_of(measure), told(measure, whole.mean(measure))
        of = ", ".join(f"{name} ({told(measure, value)})" for name, value in short.items())
        times = Counter(name for fold in folds for name in fold.short_of(measure))
        single = [f"{name} ({times[name]})" for name in whole.beside if times[name] and name not in short]
        also = f", in single folds also of {', '.join(single)}" if single else ""
        says.append(f"by {called} ({mine}) it falls short of {of or 'none over all folds'}{also}")
    return f"Where the policy does not beat the market: {'; '.join(says)}; one history proves no skill."
