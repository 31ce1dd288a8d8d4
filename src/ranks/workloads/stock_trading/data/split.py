"""Which days are for training, for validation and for the test, and the days between them that nobody uses.

A period is a range of rows: the days on which orders are filled and the account is valued. The first decision of a
period is made at the close of the day before it.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

from ranks.errors import UserError
from ranks.workloads.stock_trading.data.prices import Day, Prices

Span = tuple[Day | None, Day | None]
"""First and last day, both counted; None: from the beginning, to the end."""


@dataclass(frozen=True)
class Split:
    """Rows of the prices. Training comes first, then validation where there is one, then the test."""

    train: range
    validation: range | None
    test: range

    def check(self, embargo: int, window: int) -> Split:
        """Itself. Raises UserError where a period is empty, or a later one begins less than `embargo` days after an
        earlier one has ended, so that its first windows would hold days that were trained on."""
        if embargo < window:
            found = f"windows of {window} days"
            raise UserError(f"an embargo of {embargo} days", found, "make it as long as the window, at least")
        periods = {"training": self.train, "validation": self.validation, "test": self.test}
        there = [(name, rows) for name, rows in periods.items() if rows is not None]
        for name, rows in there:
            if not len(rows):
                found = "no day is left for it, features, windows and embargo taken off"
                raise UserError(f"a {name} period", found, "give a longer history, at least two years")
        for (before, earlier), (after, later) in itertools.pairwise(there):
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
    """The periods between given days. Raises UserError: see `Split.check` and `Prices.rows`."""
    middle = None if validation is None else prices.rows(*validation)
    return Split(prices.rows(*train), middle, prices.rows(*test)).check(embargo, window)


def walk_forward(rows: range, folds: int, *, embargo: int, window: int) -> list[Split]:
    """`folds` splits of a period: its later half is cut into as many tests that follow each other, equal but for a day,
    and each is preceded by an embargo, and all the days before to train on.

    Raises UserError where no day is left to train on, or to test on.
    """
    asked = f"a walk forward of {folds} folds over {len(rows)} days, embargo {embargo}"
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
