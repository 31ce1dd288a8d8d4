"""Use, memory, power and clock of AMD GPUs, from the files of their Linux driver (the numbers that rocm-smi shows)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from ranks.launch.telemetry.usage import RankUse

VENDOR = "0x1002"
DRM = Path("/sys/class/drm")


class AmdCards:
    """The GPUs of the ranks, found as `card*/device` with AMD's vendor number, in the order of the PCI bus."""

    def __init__(self, entries: Mapping[int, str], drm: Path = DRM) -> None:
        """`entries`: rank -> the number of its GPU."""
        cards = amd_devices(drm)
        numbers = {rank: int(entry) for rank, entry in entries.items() if entry.isdigit()}
        self._devices = {rank: cards[number] for rank, number in numbers.items() if number < len(cards)}

    def close(self) -> None:
        """Nothing is open."""

    def read(self) -> dict[int, RankUse]:
        """The use of each rank's GPU now."""
        return {rank: _card(device) for rank, device in self._devices.items()}


def amd_devices(drm: Path = DRM) -> list[Path]:
    """The device folders of all AMD GPUs; empty without one."""
    found: dict[str, Path] = {}
    with suppress(OSError):
        for card in drm.iterdir():
            device = card / "device"
            if re.fullmatch(r"card\d+", card.name) and _text(device / "vendor") == VENDOR:
                found[device.resolve().name] = device
    return [found[address] for address in sorted(found)]


def _card(device: Path) -> RankUse:
    sensors = next(iter(sorted((device / "hwmon").glob("hwmon*"))), device)
    microwatts = _number(sensors / "power1_average")
    microwatts = _number(sensors / "power1_input") if microwatts is None else microwatts
    hertz, millidegrees = _number(sensors / "freq1_input"), _number(sensors / "temp1_input")
    return RankUse(
        gpu_percent=_number(device / "gpu_busy_percent"),
        gpu_memory_bytes=_number(device / "mem_info_vram_used"),
        power_watts=None if microwatts is None else microwatts / 1e6,
        clock_mhz=None if hertz is None else hertz / 1e6,
        temperature_celsius=None if millidegrees is None else millidegrees / 1000,
    )


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        return ""


def _number(path: Path) -> float | None:
    text = _text(path)
    return float(text) if text.isdigit() else None
