"""The GPUs of a machine as the PCI bus shows them, with or without a driver."""

from __future__ import annotations

import contextlib
from pathlib import Path

NVIDIA, AMD = "0x10de", "0x1002"
DISPLAY, ACCELERATOR = "0x03", "0x12"
"""How the PCI class of a GPU begins."""


def cards_on_bus() -> dict[str, int]:
    """Devices of the PCI bus that look like GPUs, by vendor."""
    found: dict[str, int] = {}
    for device in Path("/sys/bus/pci/devices").glob("*"):
        with contextlib.suppress(OSError):
            vendor, kind = (device / "vendor").read_text().strip(), (device / "class").read_text().strip()
            if vendor in (NVIDIA, AMD) and kind.startswith((DISPLAY, ACCELERATOR)):
                found[vendor] = found.get(vendor, 0) + 1
    return found
