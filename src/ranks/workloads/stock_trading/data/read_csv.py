"""Read prices from a CSV file, normalised or gzip, in a long or a wide layout.

long: one line for each day and stock, with columns `date`, `tic` (or `ticker`, `symbol`), `close`, and optionally
`open`, `high`, `low`, `volume` and an adjusted close. wide: one line for each day, with `date` and one close for each
ticker. Column names are not case-sensitive. Missing prices are never filled in from another day.

Legend: D days, S stocks.
"""

from __future__ import annotations

import contextlib
import csv
import datetime
import functools
import io
import re
from array import array
from collections.abc import Generator, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from ranks.bounded_file import open_file
from ranks.errors import UserError
from ranks.workloads.stock_trading.data.gaps import Missing, without_gaps
from ranks.workloads.stock_trading.data.prices import SPLIT_MOVE, Dates, Floats, Prices

DATE_NAMES = ("date", "datetime", "timestamp", "")
TICKER_NAMES = ("tic", "ticker", "symbol")
ADJUSTED_NAMES = ("adjclose", "adjustedclose")
PRICE_NAMES = ("open", "high", "low", "close")
BAR_NAMES = ("open", "high", "low", "volume", "vol", "price", *ADJUSTED_NAMES)
DAYS_A_YEAR = (225, 270)
"""Range of daily prices: exchanges have 242 (Shanghai) to 261 (every weekday). Metrics assume 252 days a year and would
be wrong for other spacings."""
LONGEST_BREAK_DAYS = 12
"""Maximum calendar days between two trading days without a warning; Shanghai's longest holidays take 11."""
LEAST_DAYS = 60
"""Shortest history whose days a year are checked."""
LAYOUTS = "long (date,tic,open,high,low,close,volume) or wide (date and one close for each ticker)"
NO_NUMBER = ("", "nan", "na", "n/a", "null", "none")
DATE = re.compile(r"(\d{4})([-/]?)(\d\d)\2(\d\d)(?:[ T]00:00(?::00(?:\.0*)?)?)?")
ZONE = re.compile(r"\d\d:\d\d.*([+-]\d\d:?\d\d|Z|[A-Z]{3,4})$")
SHOWN_MOVES = 5
MAX_CELLS = 1 << 27
"""Maximum days times stocks. One field takes 8 bytes a cell."""


def read_csv(path: str | Path, *, missing: Missing = "error") -> Prices:
    """Read and validate the prices of a file. Raises UserError naming file and line, or date and ticker.

    An adjusted close replaces the close, and open, high and low are scaled by the same factor. `Prices.notes` reports
    this, what was dropped, and daily changes that look like unadjusted splits.
    """
    with io.TextIOWrapper(open_file(path, f"the prices in {path}"), "utf-8-sig") as lines:
        file = _File.of(str(path), lines)
        is_long = any(name in file.columns for name in TICKER_NAMES)
        bar = [name for name in file.columns if name in BAR_NAMES]
        if not is_long and ("close" in file.columns or len(bar) > 1):
            found = f"columns {', '.join(file.header)}: prices of one stock, and no ticker column"
            file.reject(1, found, "add a column tic with its ticker on each line")
        table = _long(file) if is_long else _wide(file)
    notes: list[str] = []
    dates_D, tickers, fields = without_gaps(table, missing, partial(file.reject, None), notes)
    adjusted_DS, make = fields.pop("adjusted", None), partial(Prices.of, dates_D, tickers)
    prices = make(fields, file.name, has_gaps=missing == "not-traded")
    if adjusted_DS is not None:
        notes.append("the adjusted close replaces the close, and open, high and low are scaled with it")
        bars = {n: v * (adjusted_DS / prices.close_DS) for n, v in fields.items() if n != "volume"}
        fields = {**fields, **bars, "close": adjusted_DS}
        prices = make(fields, file.name, has_gaps=prices.has_gaps)
    _reject_unless_daily(file, prices)
    notes = [f"{file.name}: {note}" for note in notes]
    return replace(prices, notes=(*notes, *_long_breaks(prices), *_splits(prices)))


@dataclass(frozen=True)
class _File:
    """An open CSV file, read up to its header, and the position of each column of the header."""

    name: str
    columns: dict[str, int]
    header: list[str]
    below: io.TextIOBase
    delimiter: str

    @classmethod
    def of(cls, name: str, below: io.TextIOBase) -> _File:
        """Read the header. Raises UserError."""
        file = cls(name, {}, [], below, ",")
        with file._rejecting():
            first = below.readline().removesuffix("\n")
            delimiter = max(",;\t", key=first.count)
            header = [word.strip() for word in next(csv.reader([first], delimiter=delimiter), [])]
        normalised = ["".join(filter(str.isalnum, word.lower())) or word for word in header]
        columns = {name: position for position, name in enumerate(normalised)}
        file = cls(name, columns, header, below, delimiter)
        known = (*DATE_NAMES, *TICKER_NAMES, *ADJUSTED_NAMES, *PRICE_NAMES, "volume")
        if len(header) < 2 or not any(name in columns for name in DATE_NAMES):
            file.reject(1, f"the header '{first.strip()[:60]}'", f"give {LAYOUTS}")
        if len({word.lower() for word in header}) < len(header) or any(normalised.count(name) > 1 for name in known):
            file.reject(1, "two columns with the same name", "name each column once")
        return file

    @contextlib.contextmanager
    def _rejecting(self, reader: Any = None) -> Generator[None]:
        """Raises UserError for what is no CSV text, on the line of `reader`, or on the first."""
        try:
            yield
        except UnicodeDecodeError:
            self.reject(None, "bytes that are not UTF-8 text", "save it as CSV in UTF-8")
        except csv.Error as error:
            self.reject(1 + reader.line_num if reader is not None else 1, str(error), f"give {LAYOUTS}")

    def reject(self, line: int | None, found: str, do: str) -> NoReturn:
        where = self.name if line is None else f"{self.name}, line {line}"
        raise UserError(f"the prices in {self.name}", f"{where}: {found}", do)

    def position(self, names: tuple[str, ...]) -> int | None:
        """The position of the first column with one of several names."""
        return next((self.columns[name] for name in names if name in self.columns), None)

    def date_position(self) -> int:
        position = self.position(DATE_NAMES)
        assert position is not None, "a file without a date column is rejected when it is opened"
        return position

    def lines(self) -> Iterator[tuple[int, list[str]]]:
        """(line number from 1, words) below the header; blank lines are skipped. To be called once."""
        reader = csv.reader(self.below, delimiter=self.delimiter)
        with self._rejecting(reader):
            for words in filter(any, reader):
                line = 1 + reader.line_num
                if len(words) != len(self.header):
                    found = f"{len(words)} columns, where the header has {len(self.header)}"
                    self.reject(line, found, "give all columns on each line")
                yield line, words

    @functools.cached_property
    def _known_days(self) -> dict[str, int]:
        return {}

    def day(self, line: int, word: str) -> int:
        """The ordinal of a calendar day. Times of day and time zones are rejected."""
        known = self._known_days.get(word)
        return known if known is not None else self._known_days.setdefault(word, self._parse_day(line, word.strip()))

    def _parse_day(self, line: int, word: str) -> int:
        if ZONE.search(word):
            self.reject(
                line, f"a time zone in the date '{word}'", "write the calendar day of the exchange, as 2016-01-04"
            )
        match = DATE.fullmatch(word)
        if match is None and re.match(r"\d{4}-?\d\d-?\d\d[ T]\d", word):
            self.reject(line, f"a time of day in the date '{word}'", "give one line a day, as 2016-01-04")
        if match is None:
            self._not_a_date(line, word)
        try:
            return datetime.date(*(int(match[i]) for i in (1, 3, 4))).toordinal()
        except ValueError:
            self._not_a_date(line, word)

    def _not_a_date(self, line: int, word: str) -> NoReturn:
        self.reject(line, f"'{word[:40]}' is not a date", "write dates as 2016-01-04")

    def number(self, line: int, word: str) -> float:
        """The number in a cell; NaN if it is empty."""
        try:
            return float(word if "_" not in word else "no number")
        except ValueError:
            if word.strip().lower() in NO_NUMBER:
                return np.nan
            do = "write numbers with a decimal point and without thousands separators"
            self.reject(line, f"'{word[:20]}' is not a number", do)


def _dates(ordinals: list[int]) -> Dates:
    epoch = datetime.date(1970, 1, 1).toordinal()
    return (np.array(ordinals, dtype=np.int64) - epoch).astype("datetime64[D]")


def _require_order(file: _File, line: int, word: str, day: int, before: int | None, whose: str = "") -> None:
    if before is not None and day <= before:
        known = datetime.date.fromordinal(before)
        found = f"{whose}{word.strip()} a second time" if day == before else f"{whose}{word.strip()} after {known}"
        file.reject(line, found, "sort the lines by date and give each day once")


def _check_size(file: _File, num_days: int, num_stocks: int) -> None:
    if num_days * num_stocks > MAX_CELLS:
        found = f"{num_days:,} days of {num_stocks:,} stocks, and {MAX_CELLS:,} prices of a kind are the limit"
        file.reject(None, found, "check the columns of dates and tickers, or give fewer stocks")


def _wide(file: _File) -> tuple[Dates, tuple[str, ...], dict[str, Floats]]:
    date_at = file.date_position()
    stocks = [position for position in range(len(file.header)) if position != date_at]
    if not all(file.header[position] for position in stocks):
        file.reject(1, "a column without a name", "write each ticker in the header")
    days: list[int] = []
    closes = array("d")
    for line, words in file.lines():
        day = file.day(line, words[date_at])
        _require_order(file, line, words[date_at], day, days[-1] if days else None)
        days.append(day)
        closes.extend(file.number(line, words[position]) for position in stocks)
        _check_size(file, len(days), len(stocks))
    tickers = tuple(file.header[position] for position in stocks)
    return _dates(days), tickers, {"close": np.array(closes).reshape(len(days), len(tickers))}


def _long(file: _File) -> tuple[Dates, tuple[str, ...], dict[str, Floats]]:
    date_at, ticker_at = file.date_position(), file.position(TICKER_NAMES)
    positions = {name: file.position((name,)) for name in (*PRICE_NAMES, "volume")}
    positions["adjusted"] = file.position(ADJUSTED_NAMES)
    if positions["close"] is None:
        positions["close"] = positions.pop("adjusted")
    known = {name: position for name, position in positions.items() if position is not None}
    if "close" not in known or ticker_at is None:
        file.reject(1, "no column 'close'", f"give {LAYOUTS}")
    days, stocks, values = array("q"), array("q"), array("d")
    number_of: dict[str, int] = {}
    last_day: dict[str, int] = {}
    for line, words in file.lines():
        ticker, day = words[ticker_at].strip(), file.day(line, words[date_at])
        if not ticker:
            file.reject(line, "a line without a ticker", "write the ticker of its stock")
        _require_order(file, line, words[date_at], day, last_day.get(ticker), f"{ticker} on ")
        last_day[ticker] = day
        days.append(day)
        stocks.append(number_of.setdefault(ticker, len(number_of)))
        values.extend(file.number(line, words[position]) for position in known.values())
        _check_size(file, len(days), 1)
    all_days, row_of = np.unique(np.array(days, dtype=np.int64), return_inverse=True)
    _check_size(file, len(all_days), len(number_of))
    table = np.array(values).reshape(len(days), len(known))
    grids: dict[str, Floats] = {}
    for position, name in enumerate(known):
        grids[name] = np.full((len(all_days), len(number_of)), np.nan)
        grids[name][row_of, stocks] = table[:, position]
    return _dates(all_days.tolist()), tuple(number_of), grids


def _reject_unless_daily(file: _File, prices: Prices) -> None:
    span = int((prices.dates_D[-1] - prices.dates_D[0]).astype(np.int64))
    least, most = DAYS_A_YEAR
    if prices.num_days >= LEAST_DAYS and not least <= (a_year := prices.num_days / span * 365.25) <= most:
        found = f"{a_year:.0f} days a year from {prices.dates_D[0]} to {prices.dates_D[-1]}; exchanges have about 252"
        file.reject(None, found, "give one line for each trading day; all metrics assume them")


def _long_breaks(prices: Prices) -> list[str]:
    step_D = np.diff(prices.dates_D).astype("timedelta64[D]").astype(np.int64)
    if not len(step_D) or step_D.max() <= LONGEST_BREAK_DAYS:
        return []
    at = int(step_D.argmax())
    days = f"from {prices.dates_D[at]} to {prices.dates_D[at + 1]}"
    return [f"{prices.source}: no day {days}; the change in between counts as the return of one day"]


def _splits(prices: Prices) -> list[str]:
    moves = prices.large_moves()
    if not moves:
        return []
    shown = ", ".join(f"{move.ticker} {move.change:+.0%} on {move.date}" for move in moves[:SHOWN_MOVES])
    more = f" and {len(moves) - SHOWN_MOVES} more" if len(moves) > SHOWN_MOVES else ""
    return [f"{prices.source}: changes of more than {SPLIT_MOVE:.0%} within a day, unadjusted splits? {shown}{more}"]
