"""Which GPU a row of SkyPilot's catalogue means. It has no column for SXM or PCIe, and none for the memory of one GPU.

The link is in the name of the machine or of the GPU, or nowhere. The memory is in `GpuInfo`, a dictionary as text, and
each provider counts it in its own way: of one GPU or of all, in MiB or GB.
"""

from __future__ import annotations

import re

from ranks.hardware.catalogue.gpus import Gpu, spelled

LINKS = {"SXM": re.compile("sxm"), "NVL": re.compile("nvl(?!ink)"), "PCIe": re.compile("pcie")}
MEMORY = re.compile(r"(SizeInMiB|TotalGpuMemoryInMiB)\W{1,6}(\d{1,9})", re.ASCII)
TOLERANCE = 0.1
"""A card of 24 GB is listed with 22.4 to 24 GiB."""


def gpu_of_row(name: str, num_gpus: int, machine: str, info: str) -> Gpu | None:
    """The GPU of a row; None for one that is not in the catalogue, or has another memory than there."""
    gpus = list(spelled(name))
    hints = f"{machine} {info}".lower()
    for link, pattern in LINKS.items():
        if pattern.search(hints):
            gpus = [gpu for gpu in gpus if link in gpu.name] or gpus
    sizes = _sizes_gb(info, num_gpus)
    for size_gb in sizes:
        if of_size := [gpu for gpu in gpus if abs(gpu.memory_gb - size_gb) <= TOLERANCE * gpu.memory_gb]:
            return of_size[0]
    return gpus[0] if gpus and not sizes else None


def _sizes_gb(info: str, num_gpus: int) -> list[float]:
    """The sizes that one GPU may have, the likeliest first; empty where the row says nothing."""
    found = {key: int(digits) for key, digits in MEMORY.findall(info)}
    size, total = found.get("SizeInMiB", 0), found.get("TotalGpuMemoryInMiB", 0)
    sizes = [total / num_gpus, size, size / num_gpus]
    scale = 1024 if max(size, total) > 4096 else 1  # RunPod writes GB where the column says MiB
    return [number / scale for number in sizes if number]
