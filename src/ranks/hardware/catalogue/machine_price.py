"""What a machine with certain GPUs costs an hour, by the dated prices of the catalogue: an estimate."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ranks.hardware.catalogue.gpus import find
from ranks.hardware.catalogue.price_file import Price


@dataclass(frozen=True)
class MachinePrice:
    """USD an hour, on demand: by the lowest and by the highest prices of such GPUs."""

    low: float
    high: float
    gpus: str
    """Such as '8 x H100 SXM'."""
    dates: str
    """Of the prices: 2026-09-20, or '2026-09-20 to 2026-11-09'."""


def counted(names: Sequence[str]) -> str:
    """['L4', 'L4', 'T4'] -> '2 x L4 and 1 x T4'."""
    return " and ".join(f"{count} x {name}" for name, count in Counter(names).items())


def machine_price(names: Sequence[str], prices: Iterable[Price]) -> MachinePrice | None:
    """The price of a machine with GPUs that the driver calls so. None where one is unknown or has no price."""
    gpus = [gpu for name in names if (gpu := find(name)) is not None]
    offers = {gpu: [price for price in prices if price.gpu == gpu and price.usd_per_gpu_hour] for gpu in gpus}
    if not gpus or len(gpus) < len(names) or not all(offers.values()):
        return None
    usd = {gpu: [price.usd_per_gpu_hour or 0.0 for price in found] for gpu, found in offers.items()}
    dates = sorted({price.date for found in offers.values() for price in found})
    return MachinePrice(
        sum(min(usd[gpu]) for gpu in gpus),
        sum(max(usd[gpu]) for gpu in gpus),
        counted([gpu.name for gpu in gpus]),
        dates[0] if len(dates) == 1 else f"{dates[0]} to {dates[-1]}",
    )
