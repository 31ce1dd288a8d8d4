"""Reads prices from a CSV file of a user, in one of two layouts that the columns tell apart.

- SkyPilot's catalogue: AcceleratorName, AcceleratorCount, Price and SpotPrice of the whole machine. It lists a machine
  once for each region; machines that differ in nothing else count once. A price of 0 means that none is known.
- Ours: provider, gpu, num_gpus, price_usd_per_gpu_hour, spot_usd_per_gpu_hour, date, source.

Rows without a GPU of the catalogue are skipped and counted, and so are machines with a part of a GPU.
"""

from __future__ import annotations

import csv
import datetime
import io
import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from ranks.bounded_file import open_file
from ranks.errors import UserError
from ranks.hardware.catalogue.gpus import Gpu, catalogue, spelled
from ranks.hardware.catalogue.skypilot import gpu_of_row

OURS = ("provider", "gpu", "num_gpus", "price_usd_per_gpu_hour", "spot_usd_per_gpu_hour", "date", "source")
SKYPILOT = ("AcceleratorName", "AcceleratorCount", "Price")
LOWEST, HIGHEST = 0.02, 200.0
"""USD per GPU and hour. A price outside was given in another unit, such as cents or per month."""
MOST_ROWS, MOST_GPUS, LONGEST_TEXT = 500_000, 100_000, 200
DATE = re.compile(r"\d{4}-\d{2}(-\d{2})?", re.ASCII)


@dataclass(frozen=True)
class Price:
    """What a provider asks for one GPU and hour of a machine with `num_gpus` of them. At least one price is known."""

    provider: str
    gpu: Gpu
    num_gpus: int
    usd_per_gpu_hour: float | None
    """On demand."""
    spot_usd_per_gpu_hour: float | None
    """Of a machine that the provider may take back at any time."""
    date: str
    """YYYY-MM-DD or YYYY-MM. Of a file of SkyPilot's: when it was written."""
    source: str


@dataclass(frozen=True)
class PriceFile:
    """The prices of a file, and how many of its rows were skipped."""

    prices: tuple[Price, ...]
    num_skipped: int


@dataclass(frozen=True)
class PriceRow:
    """A row of a file of prices. Its methods raise UserError with the line of the row."""

    asked: str
    line: int
    texts: dict[str, str]

    def text(self, column: str) -> str:
        return self.texts.get(column, "")[:LONGEST_TEXT].strip()

    def count(self, column: str) -> int | None:
        """The number of GPUs of a machine; None for a part of a GPU."""
        count = self._number(column)
        if not 0 < count <= MOST_GPUS:
            self.fail(f"{column} is {self.text(column)}", f"write a number of GPUs from 1 to {MOST_GPUS:,}")
        return int(count) if count == int(count) else None

    def price(self, column: str, num_gpus: int = 1, *, zero_is_unknown: bool = False) -> float | None:
        """The price of a machine with so many GPUs, for one GPU; None where none is given."""
        if not self.text(column):
            return None
        usd = self._number(column) / num_gpus
        if usd == 0 and zero_is_unknown:
            return None
        if usd < 0:
            self.fail(f"{column} is {self.text(column)}, below 0", "leave a price empty where none is known")
        if not LOWEST <= usd <= HIGHEST:
            do = f"check the unit: prices are in USD per hour, from {LOWEST:g} to {HIGHEST:g} for one GPU"
            self.fail(f"{column} is {self.text(column)}, which makes {usd:g} USD per GPU and hour", do)
        return round(usd, 6)

    def date(self, column: str) -> str:
        """YYYY-MM-DD or YYYY-MM."""
        text = self.text(column)
        try:
            if DATE.fullmatch(text):
                datetime.date.fromisoformat(text if len(text) == 10 else f"{text}-01")
                return text
        except ValueError:
            pass
        self.fail(f"{column} is '{text}', not a date", "write it as YYYY-MM-DD or YYYY-MM")

    def _number(self, column: str) -> float:
        try:
            number = float(self.text(column))
        except ValueError:
            number = math.nan
        if not math.isfinite(number):
            self.fail(f"{column} is '{self.text(column)}', not a number", "write it in digits, such as 8 or 1.99")
        return number

    def fail(self, found: str, do: str) -> NoReturn:
        raise UserError(self.asked, f"line {self.line}: {found}", do)


def read_price_file(path: str | Path) -> PriceFile:
    """The prices of a CSV file for the GPUs that the catalogue knows. Raises UserError."""
    path = Path(path)
    asked = f"the prices in {path}"
    with open_file(path, asked) as file, io.TextIOWrapper(file, "utf-8-sig", newline="") as text:
        try:
            return _read(csv.DictReader(text), path, asked)
        except UnicodeDecodeError:
            raise UserError(asked, "bytes that are not UTF-8 text", "save the file as UTF-8 text") from None
        except csv.Error as error:
            raise UserError(asked, f"not a CSV file: {error}", "give a CSV file with a header line") from None


def _read(reader: csv.DictReader[str], path: Path, asked: str) -> PriceFile:
    """The prices of all rows, each different one once."""
    price_of = _layout(reader, path, asked)
    prices, num_rows, num_skipped = dict[Price, None](), 0, 0
    for row in _rows(reader, asked):
        num_rows += 1
        price = price_of(row)
        if price is None or (price.usd_per_gpu_hour is None and price.spot_usd_per_gpu_hour is None):
            num_skipped += 1
        else:
            prices[price] = None
    if not prices:
        found = f"{num_rows:,} rows, none with a price of a GPU that the catalogue knows"
        names = ", ".join(sorted(gpu.name for gpu in catalogue()))
        raise UserError(asked, found, f"give prices of some of these: {names}")
    return PriceFile(tuple(prices), num_skipped)


def _layout(reader: csv.DictReader[str], path: Path, asked: str) -> Callable[[PriceRow], Price | None]:
    """The function that reads a row with the columns of this file. Raises UserError for other columns."""
    columns = set(reader.fieldnames or ())
    if set(OURS) <= columns:
        return _ours
    if set(SKYPILOT) <= columns:
        provider = path.parent.name if path.stem == "vms" else path.stem
        date = datetime.date.fromtimestamp(path.stat().st_mtime).isoformat()
        return lambda row: _skypilot(row, provider, date, f"the file {path.name}")
    listed = ", ".join(sorted(columns)[:12]) or "no column"
    do = f"name the columns {','.join(OURS)}; or give a file of SkyPilot's catalogue, with {','.join(SKYPILOT)}"
    raise UserError(asked, f"other columns: {listed}", do)


def _rows(reader: csv.DictReader[str], asked: str) -> Iterator[PriceRow]:
    for number, texts in enumerate(reader):
        row = PriceRow(asked, reader.line_num, texts)
        if number == MOST_ROWS:
            row.fail(f"more than {MOST_ROWS:,} rows", "give only the rows of the GPUs that you need")
        if None in texts or None in texts.values():
            do = "put a text with a comma in quotes, and write 1.99 rather than 1,99"
            row.fail("more or fewer columns than in the header line", do)
        yield row


def _ours(row: PriceRow) -> Price | None:
    gpus = spelled(row.text("gpu"))
    num_gpus = row.count("num_gpus") if gpus else None
    if num_gpus is None:
        return None
    price, spot = row.price("price_usd_per_gpu_hour"), row.price("spot_usd_per_gpu_hour")
    return Price(row.text("provider"), gpus[0], num_gpus, price, spot, row.date("date"), row.text("source"))


def _skypilot(row: PriceRow, provider: str, date: str, source: str) -> Price | None:
    name = row.text("AcceleratorName")
    num_gpus = row.count("AcceleratorCount") if spelled(name) else None
    gpu = gpu_of_row(name, num_gpus, row.text("InstanceType"), row.texts.get("GpuInfo", "")) if num_gpus else None
    if num_gpus is None or gpu is None:
        return None
    price = row.price("Price", num_gpus, zero_is_unknown=True)
    spot = row.price("SpotPrice", num_gpus, zero_is_unknown=True)
    return Price(provider, gpu, num_gpus, price, spot, date, source)
