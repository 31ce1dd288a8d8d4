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
    yield from hard_instances(benchmarks)
    yield from randcsp(benchmarks)


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


def hard_instances(folder: Path) -> Iterator[str]:
    """How many seeds HEAD and TabuCol solve on hard public instances, in CPU seconds on one core."""
    files = sorted(folder.glob("coloring_head_*.json"))
    if not files:
        return
    found = read(files[-1])
    yield from ["", "**HEAD and TabuCol on hard instances**", ""]
    yield "| instance | colours | CPU seconds allowed | HEAD solves | median s | TabuCol solves | bar of 20 | |"
    yield "|---|---|---|---|---|---|---|---|"
    for row in found["rows"]:
        ours, other = row["HEAD"], row["TabuCol"]
        solved = f"{ours['solved']} of {ours['seeds']} | {ours['median_s']:.3g} | {other['solved']} of {other['seeds']}"
        verdict = "PASS" if row["passed"] else "FAIL"
        yield f"| {row['instance']} | {row['k']} | {row['limit_s']:g} | {solved} | {row['bar']} | {verdict} |"
    speed = found["moves_per_second"]
    moves = f"{speed['median']:,.0f} moves/s ({speed['p25']:,.0f} to {speed['p75']:,.0f})"
    yield from ["", f"TabuCol on DSJC500.5 with 48 colours: {moves}. `{found['origin']['command']}`, {machine(found)}."]


def randcsp(folder: Path) -> Iterator[str]:
    """The graphs of RandCSPBench that ours and the published methods solve, by size."""
    files = sorted(folder.glob("coloring_randcsp_*.json"))
    if not files:
        return
    found = read(files[-1])
    yield from ["", "**RandCSPBench, graphs solved**", "", "| colours | nodes | graphs | method | solved | cpu_s |"]
    yield "|---|---|---|---|---|---|"
    for row in found["rows"]:
        for name, result in (row["ours"] | row["published"]).items():
            seconds = f"{result['cpu_s']:.2g}" if "cpu_s" in result else ""
            start = f"| {row['colours']} | {row['nodes']} | {row['graphs']} | {name} |"
            yield f"{start} {result['solved']} | {seconds} |"
    hashes = ", ".join(f"{k} colours {sha256[:12]}" for k, sha256 in found["graphs_sha256"].items())
    yield from ["", f"sha256 of all 20,000 test graphs: {hashes}. `{found['origin']['command']}`, {machine(found)}."]


def cell(name: str, value: Any) -> str:
    """A cell: shares as percentages, other floats with three digits."""
    if isinstance(value, float):
        return f"{value:.1%}" if name in ("share", "exact") else f"{value:.3g}"
    return "" if value is None else str(value)
