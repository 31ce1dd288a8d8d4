"""Daily prices of several stocks, validated when they are created.

Legend: D days, S stocks.
"""

from __future__ import annotations

import datetime
import functools
import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple, NoReturn

import numpy as np
import numpy.typing as npt

from ranks.errors import UserError

Floats = npt.NDArray[np.float64]
Dates = npt.NDArray[np.datetime64]
Day = str | datetime.date | np.datetime64

EDGE_DAYS = 7
"""A period may start this many calendar days before the first trading day, or end as many after the last."""
SPLIT_MOVE = 0.4
"""A larger change within a day is more often an unadjusted split than a real move."""
ROUNDING = 1e-9
"""Relative tolerance of low <= close <= high, as adjusted prices are rounded products."""


class Move(NamedTuple):
    """A daily change of a close, as a fraction of the close before."""

    ticker: str
    date: np.datetime64
    change: float


@dataclass(frozen=True, eq=False)
class Prices:
    """Prices of S stocks on the same D days. Raises UserError naming source, ticker and date if a price is invalid.

    Arrays are float64[D, S] in one currency; fields that the source lacks are None. `source` names the prices in
    messages; `notes` are warnings about what the reader changed or found odd. With `has_gaps`, all prices of a stock
    are NaN on the days on which it is not traded.
    """

    dates_D: Dates
    """datetime64[D], strictly increasing."""
    tickers: tuple[str, ...]
    close_DS: Floats
    open_DS: Floats | None = None
    high_DS: Floats | None = None
    low_DS: Floats | None = None
    volume_DS: Floats | None = None
    """Shares traded; NaN where unknown."""
    source: str = "prices"
    notes: tuple[str, ...] = ()
    has_gaps: bool = False

    def __post_init__(self) -> None:
        shape = len(self.dates_D), len(self.tickers)
        if 0 in shape:
            self._reject(f"{shape[0]} days of {shape[1]} stocks", "give at least one of each")
        if len(set(self.tickers)) < len(self.tickers):
            twice = next(t for t in self.tickers if self.tickers.count(t) > 1)
            self._reject(f"the ticker {twice} twice", "name each stock once")
        step_D = np.diff(self.dates_D.astype("datetime64[D]")).astype(np.int64)
        if (step_D <= 0).any():
            row = int(np.argmax(step_D <= 0)) + 1
            self._reject(f"{self.dates_D[row]} after {self.dates_D[row - 1]}", "sort the days and give each once")
        for name, values_DS in self.fields().items():
            if values_DS.shape != shape:
                self._reject(
                    f"{name} of shape {values_DS.shape} for {shape[0]} days of {shape[1]} stocks",
                    "give all fields the same shape",
                )
            if name != "volume":
                bad_DS = ~(np.isfinite(values_DS) & (values_DS > 0))
                if self.has_gaps:
                    bad_DS &= ~(np.isnan(values_DS) & np.isnan(self.close_DS))
                self._reject_where(bad_DS, lambda at, n=name, v=values_DS: f"{n} {v[at]:g}")
        if self.high_DS is not None and self.low_DS is not None:
            high_DS, low_DS = self.high_DS, self.low_DS
            self._reject_where(high_DS < low_DS, lambda at: f"high {high_DS[at]:g} below low {low_DS[at]:g}")
            for name, values_DS in (("open", self.open_DS), ("close", self.close_DS)):
                if values_DS is not None:
                    outside_DS = (values_DS > high_DS * (1 + ROUNDING)) | (values_DS < low_DS * (1 - ROUNDING))
                    self._reject_where(
                        outside_DS,
                        lambda at, n=name, v=values_DS: f"{n} {v[at]:g} outside {low_DS[at]:g}..{high_DS[at]:g}",
                    )

    @classmethod
    def of(
        cls,
        dates_D: Dates,
        tickers: tuple[str, ...],
        fields: Mapping[str, Floats],
        source: str,
        *notes: str,
        has_gaps: bool = False,
    ) -> Prices:
        """Create from arrays by name, as `fields` returns them; `close` is required."""
        open_DS, high_DS, low_DS, volume_DS = (fields.get(name) for name in ("open", "high", "low", "volume"))
        return cls(dates_D, tickers, fields["close"], open_DS, high_DS, low_DS, volume_DS, source, notes, has_gaps)

    def _reject(self, found: str, do: str) -> NoReturn:
        raise UserError(f"the prices of {self.source}", f"{self.source}: {found}", do)

    def _reject_where(self, bad_DS: npt.NDArray[np.bool_], describe: Callable[[tuple[int, int]], str]) -> None:
        if bad_DS.any():
            day, stock = (int(i) for i in np.argwhere(bad_DS)[0])
            also = f" ({int(bad_DS.sum())} invalid values in all)" if bad_DS.sum() > 1 else ""
            where = f"{self.tickers[stock]} on {self.dates_D[day]}: {describe((day, stock))}{also}"
            self._reject(where, "correct it, or leave out that stock or that day")

    def fields(self) -> dict[str, Floats]:
        """The arrays that are not None, by name."""
        names = ("open", "high", "low", "close", "volume")
        arrays = (self.open_DS, self.high_DS, self.low_DS, self.close_DS, self.volume_DS)
        return {name: array for name, array in zip(names, arrays, strict=True) if array is not None}

    @property
    def num_days(self) -> int:
        return len(self.dates_D)

    @property
    def num_stocks(self) -> int:
        return len(self.tickers)

    @functools.cached_property
    def sha256(self) -> str:
        """SHA-256 of tickers, days and all arrays; it does not depend on the layout of the file."""
        digest = hashlib.sha256("\n".join(self.tickers).encode())
        digest.update(self.dates_D.astype("datetime64[D]").astype("<i8").tobytes())
        for name, values_DS in self.fields().items():
            digest.update(name.encode() + np.ascontiguousarray(values_DS, "<f8").tobytes())
        return digest.hexdigest()

    @property
    def is_traded_DS(self) -> npt.NDArray[np.bool_]:
        """bool[D, S]: the stock has a price on that day."""
        return np.isfinite(self.close_DS)

    def last_close_DS(self) -> Floats:
        """float64[D, S]: the close, or the last close before a day without trade; NaN before the first day of trade. It
        values holdings. Nothing is traded at a carried price."""
        if not self.has_gaps:
            return self.close_DS
        row_DS = np.maximum.accumulate(np.where(self.is_traded_DS, np.arange(self.num_days)[:, None], 0), axis=0)
        return np.take_along_axis(self.close_DS, row_DS, axis=0)

    def fill_DS(self) -> Floats:
        """float64[D, S]: the fill price of an order given at close t: the open of day t + 1, or its close for
        close-only prices. NaN where nothing is filled: on the last day, and before a day without trade."""
        paid_DS = self.close_DS if self.open_DS is None else self.open_DS
        return np.concatenate([paid_DS[1:], np.full((1, self.num_stocks), np.nan)])

    def rows(self, first: Day | None = None, last: Day | None = None) -> range:
        """Rows of the trading days from `first` to `last`, both included. None: from the first day, to the last day.

        Raises UserError if there are none, or if the period is not within the history.
        """
        begin, end = self.dates_D[0], self.dates_D[-1]
        from_day = begin if first is None else self._day(first)
        to_day = end if last is None else self._day(last)
        asked, edge = f"{from_day} to {to_day} of {self.source}", np.timedelta64(EDGE_DAYS, "D")
        if from_day < begin - edge or to_day > end + edge:
            raise UserError(asked, f"its days are {begin} to {end}", "give a period within them")
        start, stop = np.searchsorted(self.dates_D, from_day), np.searchsorted(self.dates_D, to_day, side="right")
        if start >= stop:
            raise UserError(asked, "no trading day in it", "give a first day before the last day")
        return range(int(start), int(stop))

    def _day(self, day: Day) -> np.datetime64:
        try:
            return np.datetime64(datetime.date.fromisoformat(str(day)), "D")
        except ValueError:
            raise UserError(f"the day '{day}'", "not a calendar day", "write it as 2016-01-04") from None

    def take(self, rows: range) -> Prices:
        """The prices of these rows only."""
        return self._cut(lambda values: values[rows.start : rows.stop], self.dates_D[rows.start : rows.stop])

    def only(self, tickers: tuple[str, ...]) -> Prices:
        """The prices of these stocks only, in this order. Raises UserError if one is missing."""
        for ticker in tickers:
            if ticker not in self.tickers:
                raise UserError(
                    f"the stock {ticker}", f"{self.source} has {', '.join(self.tickers)}", "choose from these"
                )
        places = [self.tickers.index(ticker) for ticker in tickers]
        return self._cut(lambda values: values[:, places], self.dates_D, tickers)

    def _cut(self, cut: Callable[[Floats], Floats], dates_D: Dates, tickers: tuple[str, ...] | None = None) -> Prices:
        kept = {
            name: np.ascontiguousarray(cut(values)) for name, values in self.fields().items()
        }  # sums depend on the memory layout
        return Prices.of(dates_D, tickers or self.tickers, kept, self.source, *self.notes, has_gaps=self.has_gaps)

    def large_moves(self, limit: float = SPLIT_MOVE) -> list[Move]:
        """Closes that changed by more than `limit` within a day, as unadjusted splits do."""
        change_DS = self.close_DS[1:] / self.close_DS[:-1] - 1
        places = np.argwhere(np.abs(change_DS) > limit).tolist()
        return [Move(self.tickers[s], self.dates_D[d + 1], float(change_DS[d, s])) for d, s in places]
