"""How the GPUs of a machine are joined: reads the table that `nvidia-smi topo -m` prints.

        GPU0    GPU1    NIC0    CPU Affinity    NUMA Affinity
GPU0     X      NV12    PXB     0-31            0
GPU1    NV12     X      SYS     32-63           1
NIC0    PXB     SYS      X
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ranks.hardware.catalogue.gpus import find
from ranks.hardware.doctor.finding import Finding, note, ok, warning

COMMAND, LIMIT_S = ("nvidia-smi", "topo", "-m"), 4.0
COLOUR = re.compile(r"\x1b\[[0-9;]*m")
WAY = re.compile(r"NV[0-9]{1,3}|PIX|PXB|PHB|NODE|SYS")
WORDS = {
    "PIX": "one PCIe switch",
    "PXB": "several PCIe switches",
    "PHB": "a PCIe host bridge",
    "NODE": "the PCIe host bridges of one NUMA node",
    "SYS": "PCIe and the link between CPU sockets",
}
MOST_PAIRS = 6
"""So many are named for each way."""


@dataclass(frozen=True)
class Topology:
    """`ways[a][b]`: what joins the GPUs a and b, in the words of nvidia-smi."""

    ways: tuple[tuple[str, ...], ...]

    def pairs(self) -> dict[str, list[tuple[int, int]]]:
        """The pairs of GPUs that each way joins."""
        found: dict[str, list[tuple[int, int]]] = {}
        for a, row in enumerate(self.ways):
            for b in range(a + 1, len(row)):
                found.setdefault(row[b], []).append((a, b))
        return found

    def without_nvlink(self) -> list[int]:
        """The GPUs that NVLink joins to no other one."""
        return [a for a, row in enumerate(self.ways) if not any(way.startswith("NV") for way in row)]


def ask_topology() -> str:
    """The output of nvidia-smi; empty where it is missing, fails or does not answer in time."""
    try:
        answered = subprocess.run(COMMAND, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=LIMIT_S)
    except (OSError, subprocess.TimeoutExpired, UnicodeDecodeError):
        return ""
    return answered.stdout if answered.returncode == 0 else ""


def parse_topology(text: str) -> Topology | None:
    """The GPUs' part of the table; None where the text has no such table. Network cards are left out."""
    lines = [line.split() for line in COLOUR.sub("", text).splitlines()]
    names = next((gpus for line in lines if (gpus := [w for w in line if re.fullmatch(r"GPU\d+", w)])), [])
    rows = {line[0]: tuple(line[1 : 1 + len(names)]) for line in lines if line and line[0] in names and "X" in line}
    if not names or list(rows) != names:
        return None
    ways = tuple(rows[name] for name in names)
    for a, row in enumerate(ways):
        if len(row) < len(names) or row[a] != "X" or not all(WAY.fullmatch(way) for way in (*row[:a], *row[a + 1 :])):
            return None
    return Topology(ways)


def in_words(way: str) -> str:
    """'NV12' -> 'NVLink (12 links)'."""
    return f"NVLink ({way[2:]} links)" if way.startswith("NV") else f"{WORDS[way]} ({way})"


def judge_topology(text: str, names: Sequence[str]) -> Iterator[Finding]:
    """What joins the cards of these names. One that has NVLink by its data sheet must have a link to another card."""
    if len(names) < 2:
        return
    topology = parse_topology(text)
    if topology is None or len(topology.ways) != len(names):
        yield note(
            "topology", "what joins the cards is unknown: nvidia-smi printed no table of them", " ".join(COMMAND)
        )
        return
    linked = [gpu is not None and gpu.link == "NVLink" for gpu in map(find, names)]
    if missing := [card for card in topology.without_nvlink() if linked[card]]:
        cards = ", ".join(map(str, missing))
        found = f"no NVLink joins the cards {cards} to others: {said(topology)}"
        do = "nvidia-smi nvlink -s; systemctl status nvidia-fabricmanager; end this machine and rent another"
        yield warning("topology", found, "NVLink, as the data sheet says", do)
        return
    yield ok("topology", said(topology))


def said(topology: Topology) -> str:
    """'all 8 cards are joined by NVLink (12 links)', or the pairs of each way."""
    pairs = topology.pairs()
    if len(pairs) == 1:
        return f"all {len(topology.ways)} cards are joined by {in_words(next(iter(pairs)))}"
    parts: list[str] = []
    for way, joined in pairs.items():
        named = ", ".join(f"{a}-{b}" for a, b in joined[:MOST_PAIRS])
        more = f" and {len(joined) - MOST_PAIRS} more" if len(joined) > MOST_PAIRS else ""
        parts.append(f"{named}{more} by {in_words(way)}")
    return "; ".join(parts)
