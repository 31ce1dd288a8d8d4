"""Training, validation and test periods with an embargo between them, and walk-forward splits.

A period is a range of rows: the days on which orders are filled and the account is valued. The first action of a
period is chosen at the close of the day before it.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

from ranks.errors import UserError
from ranks.workloads.stock_trading.data.prices import Day, Prices

Span = tuple[Day | None, Day | None]
"""First and last day, both included; None: from the first day, to the last day."""


@dataclass(frozen=True)
class Split:
    """Rows of the prices: training, then optional validation, then test."""

    train: range
    validation: range | None
    test: range

    def check(self, embargo: int, window: int) -> Split:
        """Return the split itself. Raises UserError if a period is empty, or if a period starts less than `embargo`
        days after the end of the one before. Without the embargo, its first windows would hold training days."""
        if embargo < window:
            found = f"windows of {window} days"
            raise UserError(f"an embargo of {embargo} days", found, "make it at least as long as the window")
        periods = {"training": self.train, "validation": self.validation, "test": self.test}
        given = [(name, rows) for name, rows in periods.items() if rows is not None]
        for name, rows in given:
            if not len(rows):
                found = "no day is left after features, window and embargo"
                raise UserError(f"a {name} period", found, "give a longer history, at least two years")
        for (before, earlier), (after, later) in itertools.pairwise(given):
            asked = f"{before} and {after} with an embargo of {embargo} days"
            if later.start < earlier.stop:
                found = f"the {after} period begins within or before the {before} period"
                do = "move one of them: --data.train-to, --data.test-from, or --from of a backtest"
                raise UserError(asked, found, do)
            if later.start - earlier.stop < embargo:
                found = f"{later.start - earlier.stop} trading days lie between them"
                raise UserError(asked, found, f"end the {before} earlier, or begin the {after} later")
        return self


def split_by_dates(
    prices: Prices, train: Span, test: Span, validation: Span | None = None, *, embargo: int, window: int
) -> Split:
    """The split with periods given by dates. Raises UserError: see `Split.check` and `Prices.rows`."""
    middle = None if validation is None else prices.rows(*validation)
    return Split(prices.rows(*train), middle, prices.rows(*test)).check(embargo, window)


def walk_forward(rows: range, folds: int, *, embargo: int, window: int) -> list[Split]:
    """Anchored walk-forward splits. The later half of `rows` is cut into `folds` consecutive tests of equal length, up
    to one day. Each fold trains on all days before its test, minus an embargo.

    Raises UserError if no day is left to train on or to test on.
    """
    asked = f"a walk-forward test with {folds} folds over {len(rows)} days, embargo {embargo}"
    num_test = round(len(rows) / 2)
    if folds < 1 or num_test < folds:
        raise UserError(asked, f"{num_test} days to test on", "give a longer history, or fewer folds")
    edges = [rows.stop - num_test + num_test * fold // folds for fold in range(folds + 1)]
    splits: list[Split] = []
    for start, stop in itertools.pairwise(edges):
        train = range(rows.start, start - embargo)
        if not len(train):
            raise UserError(asked, "no day is left to train on", "give a longer history, or fewer folds")
        splits.append(Split(train, None, range(start, stop)).check(embargo, window))
    return splits
