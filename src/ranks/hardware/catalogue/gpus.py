"""GPUs by name: memory, peak rates and links, from the makers' data sheets. Unknown cards are called unknown."""

from __future__ import annotations

import csv
import functools
from dataclasses import dataclass
from pathlib import Path

FILE = Path(__file__).with_name("gpus.csv")


@dataclass(frozen=True)
class Gpu:
    """Peak figures of one GPU without sparsity. What a program reaches is less."""

    name: str
    words: tuple[str, ...]
    """All of them stand in the name that the driver gives, in small letters."""
    memory_gb: float
    bf16_tflops: float
    memory_tbs: float
    """Terabytes a second."""
    link_gbs: float
    """To the other cards of a machine, gigabytes a second and direction."""
    link: str
    source: str
    date: str


@functools.cache
def catalogue() -> tuple[Gpu, ...]:
    """All known GPUs, those with more words first."""
    with FILE.open(encoding="utf-8", newline="") as file:
        rows = [
            Gpu(
                row["name"],
                tuple(row["words"].split()),
                float(row["memory_gb"]),
                float(row["bf16_tflops"]),
                float(row["memory_tbs"]),
                float(row["link_gbs"]),
                row["link"],
                row["source"],
                row["date"],
            )
            for row in csv.DictReader(file)
        ]
    return tuple(sorted(rows, key=lambda gpu: -len(gpu.words)))


def find(name: str) -> Gpu | None:
    """The GPU that the driver calls `name`, such as "NVIDIA H100 80GB HBM3"; None for an unknown one."""
    words = name.lower().replace("-", " ").replace("sxm4", "sxm").split()
    return next((gpu for gpu in catalogue() if set(gpu.words) <= {*words}), None)
