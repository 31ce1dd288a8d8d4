"""The folds of a walk-forward test, and accounts that trade one fold after the other.

Legend: T days.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np

from ranks.workloads.stock_trading.data import split
from ranks.workloads.stock_trading.data.config import SP500, DataConfig, PeriodsConfig
from ranks.workloads.stock_trading.data.periods import first_usable_row
from ranks.workloads.stock_trading.data.prices import Dates, Floats, Prices
from ranks.workloads.stock_trading.market.config import MarketConfig
from ranks.workloads.stock_trading.market.ledger import Ledger
from ranks.workloads.stock_trading.market.metrics import summary
from ranks.workloads.stock_trading.reports.intervals import metrics_over_seeds
from ranks.workloads.stock_trading.reports.results import format_metric, format_table, without_nan

Key = TypeVar("Key")
SP500_FIRST_DAY = "1993-01-04"
"""Default first day of sp500: the three years before it are enough history for all features and baselines."""


@dataclass(frozen=True, eq=False)
class Fold:
    """`data` has the days of both periods; every `ranks train stock-trading` with it is a training of this fold."""

    number: int
    data: DataConfig
    test: range

    @property
    def description(self) -> str:
        """Both periods as text."""
        d = self.data
        return f"train {d.train_from} to {d.train_to}, test {d.test_from} to {d.test_to}, {len(self.test)} days"


def make_folds(config: PeriodsConfig, prices: Prices, num: int, first: str | None, last: str | None) -> list[Fold]:
    """The folds of an anchored walk-forward test over the days from `first` to `last`: see `split.walk_forward`. Raises
    UserError if the history is too short."""
    if first is None and config.data.source == SP500:
        first = SP500_FIRST_DAY
    rows = prices.rows(first, last)
    if first is None:
        rows = range(min(first_usable_row(config.features, config.window), rows.stop), rows.stop)

    def day(row: int) -> str:
        return str(prices.dates_D[row])

    folds: list[Fold] = []
    splits = split.walk_forward(rows, num, embargo=config.data.embargo_days, window=config.window)
    for number, fold in enumerate(splits, start=1):
        train = {"train_from": day(fold.train[0]), "train_to": day(fold.train[-1])}
        test = {"test_from": day(fold.test[0]), "test_to": day(fold.test[-1])}
        folds.append(Fold(number, replace(config.data, **train, **test), fold.test))
    return folds


@dataclass(frozen=True, eq=False)
class EquityCurve:
    """An account over one fold or several. float64[T]: value at each close, relative to the first value; traded value
    and commissions of each day in the same unit; number of trades of each day."""

    dates_T: Dates
    value_T: Floats
    notional_T: Floats
    commission_T: Floats
    trades_T: Floats

    @classmethod
    def of(cls, ledgers: Sequence[Ledger], config: MarketConfig) -> EquityCurve:
        """Join the ledgers of consecutive folds into one account.

        Each fold was traded from the same initial cash. The joined account sells all holdings at the close of the last
        day of a fold, with commission and slippage; those of stocks suspended on that day count as sold at their last
        price. It starts the next fold with that cash and trades as the ledger of
        that fold, in proportion.
        """
        before, parts = 1.0, list[tuple[Dates, Floats, Floats, Floats, Floats]]()
        for number, ledger in enumerate(ledgers, start=1):
            if parts and ledger.dates_T[0] != parts[-1][0][-1]:
                raise ValueError(f"a fold from {ledger.dates_T[0]} on after one that ends on {parts[-1][0][-1]}")
            rows, unit = slice(1 if parts else 0, None), before / ledger.value_T[0]
            value_T, notional_T, commission_T = (
                unit * column[rows] for column in (ledger.value_T, ledger.notional_T, ledger.commission_T)
            )
            trades_T = ledger.trades_T[rows]
            if number < len(ledgers):
                trades_T[-1] += (ledger.shares_TS[-1] > 0).sum()
                sold = unit * float((ledger.shares_TS[-1] * ledger.close_TS[-1]).sum()) * (1 - config.slippage)
                notional_T[-1] += sold
                commission_T[-1] += sold * config.commission
                value_T[-1] = unit * ledger.cash_T[-1] + sold * (1 - config.commission)
            parts.append((ledger.dates_T[rows], value_T, notional_T, commission_T, trades_T))
            before = float(value_T[-1])
        dates, *numbers = zip(*parts, strict=True)
        return cls(np.concatenate(dates), *(np.concatenate(column) for column in numbers))

    def metrics(self) -> dict[str, float]:
        """The performance metrics by name: see `metrics.summary`."""
        return summary(self.value_T, self.notional_T, self.commission_T, self.trades_T)


def join_folds(folds: Sequence[Mapping[Key, Ledger]], config: MarketConfig) -> dict[Key, EquityCurve]:
    """For each account, its equity curve over all folds."""
    return {key: EquityCurve.of([fold[key] for fold in folds], config) for key in folds[0]}


@dataclass(frozen=True, eq=False)
class Comparison:
    """The policy by seed and the baselines by name, on the same days: of one fold, or of all."""

    policy: Mapping[int, EquityCurve]
    baselines: Mapping[str, EquityCurve]

    def over_seeds(self) -> dict[str, dict[str, float]]:
        """For each metric of the policy: see `intervals.over_seeds`."""
        return metrics_over_seeds([curve.metrics() for curve in self.policy.values()])

    def lines(self) -> list[str]:
        """A text table: the policy's mean over seeds, its interval, its interquartile mean, and the baselines."""
        statistics, num = self.over_seeds(), len(self.policy)
        rows = {f"policy, mean of {num} seeds" if num > 1 else "policy": "mean"}
        if num > 1:
            rows |= {"  95 % interval from": "low", "  to": "high", "  interquartile mean": "iqm"}
        policy = {row: {name: values[key] for name, values in statistics.items()} for row, key in rows.items()}
        return format_table(policy | {name: curve.metrics() for name, curve in self.baselines.items()})

    def to_json(self) -> dict[str, Any]:
        """Every metric of every seed, over the seeds, and of the baselines."""
        return {
            "policy": {seed: without_nan(curve.metrics()) for seed, curve in self.policy.items()},
            "over_seeds": {name: without_nan(values) for name, values in self.over_seeds().items()},
            "baselines": {name: without_nan(curve.metrics()) for name, curve in self.baselines.items()},
        }

    def mean(self, metric: str) -> float:
        """The policy's mean over its seeds."""
        return float(np.mean([curve.metrics()[metric] for curve in self.policy.values()]))

    def not_beaten(self, metric: str) -> dict[str, float]:
        """The baselines that the policy's mean does not exceed, with their values."""
        mine = self.mean(metric)
        others = {name: curve.metrics()[metric] for name, curve in self.baselines.items()}
        return {name: value for name, value in others.items() if not mine > value}


def verdict(whole: Comparison, folds: Sequence[Comparison]) -> str:
    """One sentence that names the baselines that the policy does not beat, by return and by Sharpe ratio. The Sharpe
    ratio is there because a policy that holds cash has little risk."""
    parts: list[str] = []
    for metric, label in (("return", "return"), ("sharpe", "Sharpe ratio")):
        better, mine = whole.not_beaten(metric), format_metric(metric, whole.mean(metric))
        listed = ", ".join(f"{name} ({format_metric(metric, value)})" for name, value in better.items())
        times = Counter(name for fold in folds for name in fold.not_beaten(metric))
        single = [f"{name} ({times[name]})" for name in whole.baselines if times[name] and name not in better]
        also = f", in single folds also of {', '.join(single)}" if single else ""
        parts.append(f"by {label} ({mine}) it falls short of {listed or 'none over all folds'}{also}")
    return f"Where the policy does not beat the market: {'; '.join(parts)}; one history is no proof of skill."
