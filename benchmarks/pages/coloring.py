"""The generated part of docs/graph-coloring.md: the newest tables and the newest ablation."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pages.results import machine, read

LISTED_FACTS = ("net + ", "left out", "instances: ", "same t")
"""The page lists the facts whose names begin with one of these."""


def coloring(proofs: Path, benchmarks: Path) -> Iterator[str]:
    """The lines of the generated part."""
    yield from tables(proofs)
    yield from ablation(benchmarks)


def tables(folder: Path) -> Iterator[str]:
    """The rows of the newest result file, and the command that made it."""
    found = max((read(p) for p in folder.glob("table_graph-coloring_*.json")), key=lambda p: p["date"], default=None)
    if found is None:
        yield "No result is committed yet."
        return
    for title, rows in found["raw"]["tables"].items():
        columns = [name for name in rows[0] if name not in ("bar", "passed")]
        yield from [f"**{title}**", "", "| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
        for row in rows:
            yield "| " + " | ".join(cell(name, row[name]) for name in columns) + " |"
        yield ""
    facts = found["raw"]["facts"]
    listed = [f"- {name}: {fact}" for name, fact in facts.items() if name.startswith(LISTED_FACTS)]
    yield from [*listed, ""] if listed else []
    yield f"`{found['command']}`, {machine(found)}, seed {facts['seed']}, weights {facts['weights_sha256'][:12]}."
    yield ""


def ablation(folder: Path) -> Iterator[str]:
    """The share of hard 3-colourable graphs that each variant of the network solves."""
    files = sorted(folder.glob("coloring_ablation_*.json"))
    if not files:
        yield "No ablation is committed yet: `python benchmarks/coloring_ablation.py`."
        return
    found = read(files[-1])
    columns = ("raw_50", "repaired_50", "raw_100", "repaired_100")
    named = ("raw, 50 nodes", "repaired, 50 nodes", "raw, 100 nodes", "repaired, 100 nodes")
    yield from ["**Ablation**", "", "| variant | " + " | ".join(named) + " |", "|---|" + "---|" * len(columns)]
    for row in found["rows"]:
        shares = (f"{row[name]:.1%}" if name in row else "" for name in columns)
        yield f"| {row['variant']} | {' | '.join(shares)} |"
    settings = found["settings"]
    listed = f"{settings['iterations']:,} updates each, {settings['graphs']} graphs of each size"
    yield from ["", f"`{found['origin']['command']}`, {machine(found)}; {listed}."]


def cell(name: str, value: Any) -> str:
    """A cell: shares as percentages, other floats with three digits."""
    if isinstance(value, float):
        return f"{value:.1%}" if name in ("share", "exact") else f"{value:.3g}"
    return "" if value is None else str(value)
