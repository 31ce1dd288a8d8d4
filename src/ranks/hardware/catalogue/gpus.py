"""GPUs by name: memory, peak rates and links, from the makers' data sheets. Unknown cards are called unknown."""

from __future__ import annotations

import csv
import functools
import itertools
import re
from dataclasses import dataclass
from pathlib import Path

from ranks.errors import UserError, nearest

FILE = Path(__file__).with_name("gpus.csv")
OPTIONAL = {"rtx", "sxm", "pcie", "nvl"}
"""Words of a name that people leave out; they leave out the memory too."""
MOST_CARDS = 64
"""Of a list of cards."""
MAKERS = re.compile(r"nvidia|amd|geforce|tesla|instinct|hbm3e?|hbm2e?")
BRANDS = {"nvidia", "amd", "geforce", "tesla", "instinct", "oam"}
"""Words in a driver's name that tell no two cards apart."""


@dataclass(frozen=True)
class Gpu:
    """Peak figures of one GPU without sparsity. What a program reaches is less."""

    name: str
    words: tuple[str, ...]
    """Of the name that the driver gives, in small letters and without the brands. It has no others."""
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
    """All known GPUs."""
    with FILE.open(encoding="utf-8", newline="") as file:
        return tuple(
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
        )


def find(name: str) -> Gpu | None:
    """The GPU that the driver calls `name`, such as "NVIDIA H100 80GB HBM3"; None for an unknown one.

    A word too many makes another card: the RTX 4090 Laptop is slower than the RTX 4090, an A100 PCIe has no NVLink, and
    "A100-SXM4-40GB MIG 1g.5gb" is a part of a card.
    """
    words = {*name.lower().replace("-", " ").replace("sxm4", "sxm").split()} - BRANDS
    return next((gpu for gpu in catalogue() if words == {*gpu.words}), None)


def by_name(text: str) -> Gpu:
    """The GPU that a person means by `text`, such as h100, a100-80gb or 4090. Raises UserError with the nearest name.

    A word that fits several cards means the SXM card with the most memory: a100 is the A100 80GB SXM. So print the name
    of the result.
    """
    if found := spelled(text):
        return found[0]
    listed = f"the catalogue knows {', '.join(sorted(gpu.name for gpu in catalogue()))}"
    short = {" ".join(word for word in gpu.name.split() if word.lower() not in OPTIONAL) for gpu in catalogue()}
    known = sorted(short | {gpu.name for gpu in catalogue()}, key=len)
    raise UserError(f"the GPU '{text}'", "the catalogue has no GPU of that name", nearest(text.upper(), known, listed))


def cards_of(text: str) -> tuple[Gpu, ...]:
    """The cards that a person lists: 'rtx6000ada+rtx4090', or 'l40s*2+l4' for two L40S and one L4. Raises UserError."""
    found: list[Gpu] = []
    for part in text.split("+"):
        name, star, number = (word.strip() for word in part.partition("*"))
        if not name or (star and not (number.isascii() and number.isdecimal() and 0 < int(number[:9]) <= MOST_CARDS)):
            do = f"write a name, a + between cards, and a * before a number from 1 to {MOST_CARDS}: l40s*2+l4"
            raise UserError(f"the cards '{text}'", f"'{part}' is no card", do)
        found += [by_name(name)] * (int(number) if star else 1)
    if len(found) > MOST_CARDS:
        raise UserError(f"the cards '{text}'", f"{len(found)} cards", f"name at most {MOST_CARDS}, those of one run")
    return tuple(found)


def spelled(text: str) -> tuple[Gpu, ...]:
    """All GPUs that `text` can mean, the likeliest first: those with NVLink, then those with more memory."""
    return _spellings().get(squash(text), ())


@functools.cache
def _spellings() -> dict[str, tuple[Gpu, ...]]:
    """Every spelling of every GPU: the words of its name and its memory in any order, with or without the optional."""
    found: dict[str, dict[str, Gpu]] = {}
    for gpu in catalogue():
        memory = f"{gpu.memory_gb:g}gb"
        words = [squash(word) for word in gpu.name.split()]
        needed = [word for word in words if word not in (*OPTIONAL, memory)]
        optional = [word for word in words if word in OPTIONAL] + [memory]
        for number in range(len(optional) + 1):
            for chosen in itertools.combinations(optional, number):
                for order in itertools.permutations((*needed, *chosen)):
                    found.setdefault("".join(order), {})[gpu.name] = gpu
    return {spelling: tuple(sorted(gpus.values(), key=_likelihood)) for spelling, gpus in found.items()}


def _likelihood(gpu: Gpu) -> tuple[bool, float]:
    return gpu.link != "NVLink", -gpu.memory_gb


def squash(text: str) -> str:
    """'NVIDIA A100-SXM4-80GB' -> 'a100sxm80gb'."""
    text = re.sub(r"sxm\d", "sxm", MAKERS.sub("", text.lower()))
    return re.sub(r"[^a-z0-9]", "", text)
