"""Rental prices of GPUs: those that ranks ships, each with source and date, and those of a user's CSV file."""

from __future__ import annotations

import datetime
import functools
import statistics
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from ranks.hardware.catalogue.gpus import Gpu
from ranks.hardware.catalogue.price_file import Price, read_price_file

FILE = Path(__file__).with_name("prices.csv")
DAYS_IN_DAYS = 60
"""An age below so many days is given in days."""


@dataclass(frozen=True)
class Offers:
    """The offers for one GPU, on demand or spot."""

    cheapest: Price
    cheapest_usd_per_gpu_hour: float
    median_usd_per_gpu_hour: float
    num_offers: int
    is_same_count: bool
    """Whether these machines have the number of GPUs asked for. Otherwise they are of other sizes."""


@dataclass(frozen=True)
class PricesOfGpu:
    """The offers for one GPU; None where nobody offers it."""

    on_demand: Offers | None
    spot: Offers | None


@functools.cache
def known_prices() -> tuple[Price, ...]:
    """The prices that ranks ships. They grow old: print their `age`."""
    return read_prices(FILE)


def read_prices(path: str | Path) -> tuple[Price, ...]:
    """The prices of a CSV file for the GPUs that the catalogue knows. Raises UserError. See price_file.py."""
    return read_price_file(path).prices


def prices_of(gpu: Gpu, num_gpus: int, prices: Iterable[Price]) -> PricesOfGpu:
    """The cheapest and the median price of a GPU in machines with `num_gpus`, else in machines of any size."""
    of_gpu = [price for price in prices if price.gpu == gpu]
    return PricesOfGpu(
        _offers(of_gpu, num_gpus, lambda price: price.usd_per_gpu_hour),
        _offers(of_gpu, num_gpus, lambda price: price.spot_usd_per_gpu_hour),
    )


def _offers(prices: list[Price], num_gpus: int, usd_of: Callable[[Price], float | None]) -> Offers | None:
    priced = [(usd, price) for price in prices if (usd := usd_of(price)) is not None]
    of_count = [(usd, price) for usd, price in priced if price.num_gpus == num_gpus]
    chosen = of_count or priced
    if not chosen:
        return None
    usd, cheapest = min(chosen, key=lambda offer: offer[0])
    return Offers(cheapest, usd, statistics.median(usd for usd, _ in chosen), len(chosen), bool(of_count))


def age(price: Price, today: datetime.date) -> str:
    """How old a price is, in words: '12 days old', '3 months old', '2 years old'."""
    has_day = price.date.count("-") == 2
    date = datetime.date.fromisoformat(price.date if has_day else f"{price.date}-01")
    days = (today - date).days
    if days < 0:
        return f"dated {price.date}, in the future"
    if has_day and days < DAYS_IN_DAYS:
        return "of today" if days == 0 else _counted(days, "day")
    months = 12 * (today.year - date.year) + today.month - date.month - (today.day < date.day)
    if months == 0:
        return "of this month"
    return _counted(months, "month") if months < 24 else _counted(months // 12, "year")


def _counted(number: int, unit: str) -> str:
    return f"{number} {unit}{'s' if number > 1 else ''} old"
