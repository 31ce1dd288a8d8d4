"""The generated part of docs/graph-coloring.md: the newest tables and the newest ablation."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.pages.results import machine, read

LISTED_FACTS = ("net + ", "left out", "instances: ", "same t")
"""The page lists the facts whose names begin with one of these."""
RANDCSP_CELLS = 100
"""2 numbers of colours, 5 sizes, 10 mean degrees."""


def coloring(proofs: Path, benchmarks: Path) -> Iterator[str]:
    """The lines of the generated part."""
    yield from tables(proofs)
    yield from ablation(benchmarks)
    yield from hard_instances(benchmarks)
    yield from randcsp(benchmarks)
    yield from budgets(benchmarks)


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
        yield "No ablation is committed yet: `python -m benchmarks.graph_coloring.ablation`."
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
    """How many seeds HEAD and TabuCol solve on hard public instances, and the colours of DSATUR."""
    files = sorted(folder.glob("coloring_head_*.json"))
    if not files:
        return
    found = read(files[-1])
    yield from ["", "**HEAD and TabuCol on hard instances**", ""]
    columns = ("instance", "colours", "CPU seconds allowed", "HEAD solves", "median s", "TabuCol solves")
    yield from ["| " + " | ".join([*columns, "DSATUR's colours", "bar", ""]) + " |", "|" + "---|" * (len(columns) + 3)]
    for row in found["rows"]:
        ours, other = row["HEAD"], row["TabuCol"]
        solved = f"{ours['solved']} of {ours['seeds']} | {ours['median_s']:.3g} | {other['solved']} of {other['seeds']}"
        verdict = "PASS" if row["passed"] else "FAIL"
        asked = f"{row['instance']} | {row['k']} | {row['limit_s']:g}"
        yield f"| {asked} | {solved} | {row['dsatur_colours']} | {row['bar']} of 20 | {verdict} |"
    speed = found["moves_per_second"]
    moves = f"{speed['median']:,.0f} moves/s ({speed['p25']:,.0f} to {speed['p75']:,.0f})"
    yield from ["", f"TabuCol on DSJC500.5 with 48 colours: {moves}. `{found['origin']['command']}`, {machine(found)}."]


def randcsp(folder: Path) -> Iterator[str]:
    """The graphs of RandCSPBench that ours and the published methods solve, by colours and size."""
    files = sorted(folder.glob("coloring_randcsp_*.json"))
    if not files:
        return
    found = read(files[-1])
    cells, identity = found["cells"], found["identity"]
    ours, published = list(cells[0]["solved"]), list(cells[0]["published"])
    yield from ["", f"**RandCSPBench, graphs solved: {len(cells)} of {RANDCSP_CELLS} cells**", ""]
    columns = ("colours", "nodes", "degrees", "graphs", "colourable", "impossible", "unknown", *ours, *published)
    yield from ["| " + " | ".join([*columns, "s a graph"]) + " |", "|" + "---|" * (len(columns) + 1)]
    for k, n in sorted({(row["colours"], row["nodes"]) for row in cells}):
        rows = [row for row in cells if (row["colours"], row["nodes"]) == (k, n)]
        counts = [sum(row[name] for row in rows) for name in ("graphs", "colourable", "impossible", "unknown")]
        counts += [sum(row["solved"][name] for row in rows) for name in ours]
        counts += [sum(row["published"][name] for row in rows) for name in published]
        limits = [row["limit_s"] for row in rows if row["graphs"] > row["impossible"]] or [0.0]
        row = " | ".join(str(value) for value in (k, n, len(rows), *counts))
        yield f"| {row} | {min(limits):.2g} to {max(limits):.2g} |"
    contradictions = sum(row["contradictions"] for row in cells)
    cpu_h = sum(row["decide_cpu_s"] + sum(row["cpu_s"].values()) for row in cells) / 3600
    yield from ["", f"- A cell: {identity['graphs']} of the 400 graphs of a number of colours, size and degree."]
    yield "- `impossible`: proven by CaDiCaL and MiniSat; no method ran on these graphs."
    yield f"- Published methods coloured {contradictions} of them."
    yield "- `s a graph`: CPU seconds of the raw net for a graph, by cell; the limit of TabuCol and HEAD."
    yield f"- sha256 of the first test graph of every cell: {identity['first_graphs_sha256'][:12]}; the file has more."
    yield f"- {cpu_h:.2f} CPU hours. Sessions:"
    for session in found["sessions"]:
        yield f"- `{session['command']}`, {machine({'origin': session})}."


def budgets(folder: Path) -> Iterator[str]:
    """How many calls of `solve` held their budget, and which instances it proves in 10 s."""
    files = sorted(folder.glob("coloring_budget_*.json"))
    if not files:
        return
    found = read(files[-1])
    late = [row for row in found["rows"] if not row["held"]]
    named = ", ".join(f"{row['instance']} {row['seconds']:.2f} s of {row['budget_s']:g} s" for row in late) or "none"
    yield from ["", "**Budgets and proofs of `solve`**", ""]
    share, allowed = found["longest_share"], found["tolerance"]
    yield f"- {found['held']} of {found['calls']} calls took at most {allowed:.0%} more wall time than their budget."
    yield f"- The longest call of all took {share:.1%} of its budget. Longer than allowed: {named}."
    for name, is_proven in found["proven_in_10_s"].items():
        rows = [row for row in found["rows"] if row["instance"] == name and row["optimal"]]
        seconds = min((row["seconds"] for row in rows), default=0.0)
        words = f"proven optimal with {rows[0]['colours']} colours in {seconds:.2f} s" if is_proven else "not proven"
        yield f"- {name}: {words}."
    yield from ["", f"`{found['origin']['command']}`, {machine(found)}."]


def cell(name: str, value: Any) -> str:
    """A cell: shares as percentages, other floats with three digits."""
    if isinstance(value, float):
        return f"{value:.1%}" if name in ("share", "exact") else f"{value:.3g}"
    return "" if value is None else str(value)
