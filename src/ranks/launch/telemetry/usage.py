"""What one rank used at one moment."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields


@dataclass(frozen=True)
class RankUse:
    """Numbers of one rank; None where the machine does not say. `throttled`: why its GPU is slowed down, in words."""

    gpu_percent: float | None = None
    """The share of the last second in which some kernel ran, also one that waits for other GPUs (NCCL)."""
    gpu_memory_bytes: float | None = None
    """Of the whole GPU, other programs included."""
    power_watts: float | None = None
    clock_mhz: float | None = None
    """Of the GPU's multiprocessors."""
    temperature_celsius: float | None = None
    link_percent: float | None = None
    """The speed of the GPU's PCIe link, as a share of the fastest one that GPU and slot have."""
    throttled: tuple[str, ...] | None = None
    cpu_percent: float | None = None
    """Of one core, all processes of the rank together."""
    memory_bytes: float | None = None
    """Resident; pages that processes share count in each of them."""

    def plus(self, other: RankUse) -> RankUse:
        """Both together; the numbers of `other` count."""
        mine = {f.name: getattr(self, f.name) for f in fields(self)}
        theirs = {name: value for name in mine if (value := getattr(other, name)) is not None}
        return RankUse(**{**mine, **theirs})

    def numbers(self) -> dict[str, float]:
        """The numbers that are known, by name."""
        found = {f.name: getattr(self, f.name) for f in fields(self)}
        found["throttled"] = float(bool(self.throttled)) if self.throttled is not None else None
        return {name: float(value) for name, value in found.items() if value is not None}


def row_of(uses: Mapping[int, RankUse]) -> dict[str, float]:
    """The numbers of all ranks as metrics: `use/rank0/gpu_percent`."""
    return {
        f"use/rank{rank}/{name}": round(value, 3)
        for rank, use in sorted(uses.items())
        for name, value in use.numbers().items()
    }


def hint(rank: int, uses: Mapping[int, RankUse]) -> str:
    """What is unlike the other ranks about a rank's processor or GPU, in words; empty where nothing is."""
    mine, others = uses.get(rank), [use for other, use in uses.items() if other != rank]
    if mine is None or not others:
        return ""
    parts: list[str] = []
    if mine.throttled:
        parts.append(f"its GPU is slowed down: {', '.join(mine.throttled)}")
    clock, clocks = mine.clock_mhz, _known(other.clock_mhz for other in others)
    if clock is not None and clocks and clock < 0.9 * min(clocks):
        parts.append(f"its GPU runs at {clock:.0f} MHz, the others at {min(clocks):.0f} or more")
    link, links = mine.link_percent, _known(other.link_percent for other in others)
    if link is not None and links and link < 0.9 * min(links):
        parts.append(f"its PCIe link has {link:.0f} % of its speed, the others {min(links):.0f} % or more")
    cpu, cpus = mine.cpu_percent, _known(other.cpu_percent for other in others)
    if cpu is not None and cpus:
        parts.append(f"it uses {cpu:.0f} % of a core, the others {_range(cpus)}")
    return ", ".join(parts)


def _known(values: Iterable[float | None]) -> list[float]:
    return [value for value in values if value is not None]


def _range(values: list[float]) -> str:
    low, high = f"{min(values):.0f}", f"{max(values):.0f}"
    return f"{low} %" if low == high else f"{low} to {high} %"
