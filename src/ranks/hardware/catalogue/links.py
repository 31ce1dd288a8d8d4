"""How long an all-reduce takes on GPUs that are not here, from published measurements.

`links.csv` holds bus bandwidths as nccl-tests define them: bytes / seconds * 2(n-1)/n, with GB = 1e9 bytes. For 8 H200
and 8 B200 they are known by size. For others only that of large tensors is known, and small tensors reach far less: 8
B200 reach 846 GB/s at 16 GiB and 326 GB/s at 32 MiB. So their curve is the time at full bandwidth plus an overhead:

    seconds = ideal + overhead(ideal) * latency(n, link) / latency(8, NVLink)

`overhead` is what 8 H200 (8 B200 for other numbers of B200) took beyond the ideal time. `latency` is the one that NCCL
itself calculates with for its ring with the LL protocol (tuning.cc, June 2026).
"""

from __future__ import annotations

import csv
import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from ranks.errors import UserError
from ranks.hardware.catalogue.gpus import Gpu
from ranks.hardware.links.curve import AllReduceCurve, Link

FILE = Path(__file__).with_name("links.csv")
MEASURED, DERIVED = 0.25, 0.4
"""Uncertainties: of a number of GPUs that was measured, and of one that was derived from another or from a bound."""
MOST_GPUS = 8
"""Of one machine. Larger numbers need a row of their own, because their network decides."""
BASE_S, NVLINK_STEP_S, PCIE_STEP_S, NETWORK_STEP_S = 6.6e-6, 0.6e-6, 1.0e-6, 2.7e-6
PCIE_SHARES = {4: 0.56, 8: 0.44}
"""What 4 and 8 RTX 5090 reach of PCIe 5 x16: 35 and 28 of 63 GB/s (nccl#1639)."""
KIB, MIB = 1 << 10, 1 << 20
SIZES = (32 * KIB, MIB, 4 * MIB, 16 * MIB, 32 * MIB, 64 * MIB, 256 * MIB, 1024 * MIB)
LARGE = 16 * 1024 * MIB
HOST_LATENCY_S, HOST_BYTES_PER_S = 0.15e-3, 10e6 / 3.15e-3
"""gloo over loopback with 2 ranks: 4 bytes take 0.1 to 0.19 ms, 10 MB take 3.3 ms."""
ETHERNET_LATENCY_S = 0.2e-3
ETHERNET_SHARES = {1.0: 0.96, 10.0: 0.85, 100.0: 0.6, 400.0: 0.4}
"""What all-reduces reach of an Ethernet of so many Gbit/s. Up to 1 Gbit/s it was measured with gloo: 10 MB between 2
ranks take 832 ms at 0.1 Gbit/s and 80 to 83 ms at 1 Gbit/s. Above 1 Gbit/s it is an estimate: one TCP connection no
longer fills the link."""
SMALL_SIZES = (4, 4 * KIB, 64 * KIB, MIB, 16 * MIB, 256 * MIB)


@dataclass(frozen=True)
class Bandwidth:
    """A row of links.csv."""

    num_gpus: int
    num_bytes: int
    busbw_gbs: float
    source: str

    def seconds(self, num_gpus: int) -> float:
        """The time of an all-reduce of so many GPUs with this bandwidth."""
        return _ideal_s(self.num_bytes, num_gpus, self.busbw_gbs)


@functools.cache
def bandwidths(gpu_name: str) -> tuple[Bandwidth, ...]:
    """The published bandwidths of a GPU by number of GPUs and size; empty where there are none."""
    with FILE.open(encoding="utf-8", newline="") as file:
        rows = [
            Bandwidth(int(row["num_gpus"]), int(row["num_bytes"]), float(row["busbw_gbs"]), row["source"])
            for row in csv.DictReader(file)
            if row["gpu"] == gpu_name
        ]
    return tuple(sorted(rows, key=lambda row: (row.num_gpus, row.num_bytes)))


def catalogued_link(gpu: Gpu, num_gpus: int) -> Link | None:
    """The link between `num_gpus` of these GPUs in one machine; None where nothing is known.

    An A100 PCIe or H100 PCIe is taken to have no NVLink bridge.
    """
    num_gpus = max(num_gpus, 2)
    rows = _rows(gpu, num_gpus)
    if not rows:
        return None
    is_derived = rows[0].num_gpus != num_gpus or any(row.source.startswith("derived") for row in rows)
    source = f"catalogue: {'; '.join(dict.fromkeys(row.source for row in rows))}"
    if rows[0].num_gpus != num_gpus:
        source += f" (for {rows[0].num_gpus} GPUs)"
    curve = _curve(gpu, num_gpus, rows)
    return Link(f"{gpu.link}, {num_gpus}x {gpu.name}", (curve,), _host(), source, DERIVED if is_derived else MEASURED)


def link_of_cards(cards: Sequence[Gpu]) -> Link | None:
    """The link between these cards in one machine; None where nothing is known.

    Cards of several kinds meet over PCIe alone, and a ring is as fast as its slowest card. One with NVLink and one of
    another kind are in different machines.
    """
    kinds = list(dict.fromkeys(cards))
    links = [link for gpu in kinds if (link := catalogued_link(gpu, len(cards))) is not None]
    if len(kinds) == 1:
        return links[0] if links else None
    if len(links) < len(kinds) or not all(gpu.link.startswith("PCIe") for gpu in kinds):
        return None
    slowest = max(links, key=lambda link: link.all_reduce_s(len(cards), LARGE))
    source = f"{slowest.source}, the slowest card of {' and '.join(gpu.name for gpu in kinds)}"
    return replace(slowest, source=source, uncertainty=max(slowest.uncertainty, DERIVED))


def network_link(gbit_per_s: float) -> Link:
    """The link between nodes by the stated rate of their Ethernet, for gloo or NCCL over TCP. Raises UserError."""
    if not 1e-3 <= gbit_per_s <= 1e5:
        do = "give the rate of the network in Gbit/s, such as 10"
        raise UserError(f"a network of {gbit_per_s:g} Gbit/s", "not a rate from 0.001 to 100,000", do)
    rates = np.log(list(ETHERNET_SHARES))
    share = float(np.interp(math.log(gbit_per_s), rates, list(ETHERNET_SHARES.values())))
    curve = _straight_curve(ETHERNET_LATENCY_S, gbit_per_s * 1e9 / 8 * share)
    source = f"catalogue: derived from Ethernet of {gbit_per_s:g} Gbit/s, {share:.0%} of it used"
    return Link(f"Ethernet of {gbit_per_s:g} Gbit/s", (curve,), curve, source, DERIVED)


def _rows(gpu: Gpu, num_gpus: int) -> list[Bandwidth]:
    """The bandwidths of the nearest number of GPUs, by size; of PCIe where none was measured."""
    of_gpu = bandwidths(gpu.name)
    if num_gpus > MOST_GPUS:
        return [row for row in of_gpu if row.num_gpus == num_gpus]
    of_gpu = [row for row in of_gpu if row.num_gpus <= MOST_GPUS]
    if of_gpu:
        nearest = min((row.num_gpus for row in of_gpu), key=lambda number: abs(math.log(number / num_gpus)))
        return [row for row in of_gpu if row.num_gpus == nearest]
    if not gpu.link.startswith("PCIe"):
        return []
    share = PCIE_SHARES[4 if num_gpus <= 5 else 8]
    return [Bandwidth(num_gpus, LARGE, gpu.link_gbs * share, f"derived from {gpu.link} x16, {share:.0%} of it used")]


def _curve(gpu: Gpu, num_gpus: int, rows: list[Bandwidth]) -> AllReduceCurve:
    """The rows as times, and below the smallest row the modelled times, at most as long as that of the row."""
    peak_gbs = max(row.busbw_gbs for row in rows)
    sizes = [size for size in SIZES if size < rows[0].num_bytes]
    ratio = _latency_s(num_gpus, gpu.link) / _latency_s(8, "NVLink")
    seconds = [_modelled_s(_ideal_s(size, num_gpus, peak_gbs), gpu.name, ratio) for size in sizes]
    seconds = [min(time, rows[0].seconds(num_gpus)) for time in seconds]
    sizes += [row.num_bytes for row in rows]
    seconds += [row.seconds(num_gpus) for row in rows]
    return AllReduceCurve(num_gpus, tuple(sizes), tuple(seconds))


def _modelled_s(ideal_s: float, gpu_name: str, ratio: float) -> float:
    """The time of an all-reduce that would take `ideal_s` at full bandwidth."""
    known = [row for row in bandwidths(gpu_name) if row.num_gpus == 8]
    if len(known) < len(SIZES):
        known = [row for row in bandwidths("H200 SXM") if row.num_gpus == 8]
    peak_gbs = max(row.busbw_gbs for row in known)
    ideals = [_ideal_s(row.num_bytes, 8, peak_gbs) for row in known]
    overheads = [row.seconds(8) - ideal for row, ideal in zip(known, ideals, strict=True)]
    return ideal_s + ratio * float(np.interp(math.log(ideal_s), np.log(ideals), overheads))


def _latency_s(num_gpus: int, link: str) -> float:
    """What NCCL takes as the time of the smallest all-reduce."""
    step_s = PCIE_STEP_S if link.startswith("PCIe") else NETWORK_STEP_S if num_gpus > MOST_GPUS else NVLINK_STEP_S
    return BASE_S + 2 * (num_gpus - 1) * step_s


def _ideal_s(num_bytes: int, num_gpus: int, busbw_gbs: float) -> float:
    return num_bytes * 2 * (num_gpus - 1) / num_gpus / (busbw_gbs * 1e9)


def _host() -> AllReduceCurve:
    """Small values between the processes of one machine."""
    return _straight_curve(HOST_LATENCY_S, HOST_BYTES_PER_S)


def _straight_curve(latency_s: float, bytes_per_s: float) -> AllReduceCurve:
    """Two ranks that take a latency plus a time in proportion to the size."""
    return AllReduceCurve(2, SMALL_SIZES, tuple(latency_s + size / bytes_per_s for size in SMALL_SIZES))
