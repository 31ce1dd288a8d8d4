"""Writes the tables of the README and of the pages from the result files: `python benchmarks/figures.py`.

Each row names the command that made it, the date and the hardware. A figure without a result file has no row.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from figures_chess import chess
from figures_trading import trading
from measure import RESULTS, ROOT

README = ROOT / "README.md"
COLORING = ROOT / "docs" / "graph-coloring.md"
CHESS = ROOT / "docs" / "chess-core.md"
TRADING = ROOT / "docs" / "stock-trading.md"
PROOFS = ROOT / "results"
TOLD = ("net + ", "left out", "instances: ", "same t")
"""Facts of a table of graph-coloring that stand below it, by their first letters."""
BEGIN, END = "<!-- figures: python benchmarks/figures.py -->", "<!-- end of figures -->"
HEAD = ["| What | Measured | Command | When, where |", "|---|---|---|---|"]


def rows(folder: Path = RESULTS) -> Iterator[str]:
    """One line of the table for each figure, from the newest file of each kind and hardware."""
    newest: dict[str, dict[str, Any]] = {}
    for path in sorted(folder.glob("*.json")):
        content = read(path)
        kind = "engine" if "ranks_2" in content else f"workloads {content['device']}" if "parts" in content else ""
        if kind and content["origin"]["date"] >= newest.get(kind, content)["origin"]["date"]:
            newest[kind] = content
    for kind, content in sorted(newest.items()):
        for what, measured in engine(content) if kind == "engine" else workloads(content):
            yield f"| {what} | {measured} | `{content['origin']['command']}` | {where(content['origin'])} |"


def proofs(folder: Path = PROOFS) -> Iterator[str]:
    """One line for each proof, from its newest file."""
    newest = {
        path.stem.rpartition("_")[0]: found
        for path in sorted(folder.glob("*.json"))
        if "proof" in (found := read(path))
    }
    for name, found in sorted(newest.items()):
        held = sum(check["ok"] for check in found["checks"])
        told = f"{found['verdict']}, {held} of {len(found['checks'])} checks"
        goals: dict[str, Any] = found["raw"].get("goals", {})
        told += "".join(f"; {what}: {goal['found']} (goal: {goal['goal']})" for what, goal in goals.items())
        yield f"| {name.replace('_', ', ', 1)} | {told} | `{found['command']}` | {where(found)} |"


def colourings(folder: Path = PROOFS) -> Iterator[str]:
    """The rows of the newest table of graph-coloring, and what made them."""
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
    told = [f"- {name}: {fact}" for name, fact in facts.items() if name.startswith(TOLD)]
    yield from [*told, ""] if told else []
    yield f"`{found['command']}`, {where(found)}, seed {facts['seed']}, weights {facts['weights_sha256'][:12]}."
    yield from ["", *ablation()]


def ablation(folder: Path = RESULTS) -> Iterator[str]:
    """What the net loses with one thing taken away at a time: shares of hard 3-colourable graphs coloured."""
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
    told = f"{settings['iterations']:,} updates each, {settings['graphs']} graphs of each size"
    yield from ["", f"`{found['origin']['command']}`, {where(found['origin'])}; {told}."]


def cell(name: str, value: Any) -> str:
    """Shares as percentages, other figures with three digits."""
    if isinstance(value, float):
        return f"{value:.1%}" if name in ("share", "exact") else f"{value:.3g}"
    return "" if value is None else str(value)


def read(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text(encoding="utf-8"))


def engine(found: dict[str, Any]) -> Iterator[tuple[str, str]]:
    small, one, two = found["ranks_1"]["small"], found["ranks_1"]["10ms"], found["ranks_2"]["10ms"]
    yield (
        "the engine's CPU time a step, over a bare loop with an all-reduce, everything logged, 1 rank",
        ranged(small, "engine_over_bare_us", "µs"),
    )
    yield (
        "the same over a bare loop without an all-reduce",
        ranged(small, "engine_over_bare_without_all_reduce_us", "µs"),
    )
    yield (
        f"wall time of a step against DDP, 2 ranks, {two['ddp_step_ms']['median']:.0f} ms steps",
        ranged(two, "engine_to_ddp", "x"),
    )
    for part, ranks in ((small, "1 rank"), (one, "1 rank"), (two, "2 ranks")):
        step_ms = part["ddp_step_ms" if part is two else "bare_step_ms"]["median"]
        yield f"`--exact` against fast, {ranks}, {step_ms:.1f} ms steps", ranged(part, "exact_to_fast", "x")


def workloads(found: dict[str, Any]) -> Iterator[tuple[str, str]]:
    for name, part in found["parts"].items():
        if not part["ok"]:
            yield f"{name}, {found['device']}", "**failed**, see the file"
            continue
        got = part["found"]
        if "hundred_epochs_s" in got:
            train, validation = got["graphs"]
            yield (
                f"graph-coloring, {name}: {train:,} + {validation:,} graphs, {got['parameters']:,} parameters",
                f"{got['epoch_s']:.3g} s an epoch; 100 epochs {got['hundred_epochs_s']:,.0f} s "
                f"({got['hundred_epochs_are']}); {got['graphs_per_s']:,.0f} graphs/s",
            )
        elif "graphs_per_s" in got:
            memory = got["peak_memory_bytes"] / 2**20
            yield (
                f"graph-coloring, {name}, {found['device']}",
                f"{got['graphs_per_s']:,.0f} graphs/s, {got['nodes_per_s']:,.0f} nodes/s, {memory:,.0f} MiB",
            )
        elif "seconds_5000_episodes" in got:
            marked = " (extrapolated)" if got["extrapolated"] else ""
            yield (
                f"stock-{name}, {found['device']}",
                f"{got['steps_per_s']:,.0f} environment steps/s with 10 passes over each; "
                f"5,000 episodes of 252 days in {got['seconds_5000_episodes']:,.0f} s{marked}",
            )
        elif "accounts" in got:
            told = f"{got['steps_per_s']:,.0f} steps/s of the market alone, {got['accounts']:,} accounts"
            yield f"stock-{name}, {found['device']}", told
        elif name.startswith("L3"):
            yield f"same bits on 1 and 4 ranks: {name[3:]}, {found['device']}", "equal fingerprints"


def ranged(part: dict[str, Any], name: str, unit: str) -> str:
    """'56 µs (47 to 75)'."""
    low, middle, high = (f"{part[name][key]:.3g}" for key in ("p25", "median", "p75"))
    return f"{middle} {unit} ({low} to {high})"


def where(origin: dict[str, Any]) -> str:
    hardware = origin["hardware"]
    device = hardware.get("gpu") or f"{hardware['cores']} cores of {hardware['cpu']}"
    return f"{origin['date'][:10]}, {device}, torch {origin['versions']['torch']}"


def with_lines(text: str, lines: list[str]) -> str:
    """A page with the part between its markers made anew."""
    before, rest = text.split(BEGIN)
    after = rest.split(END)[1]
    return "\n".join([before + BEGIN, "", *lines, "", END + after])


def with_figures(text: str) -> str:
    """The README with its table made anew."""
    lines = [*rows(), *proofs()]
    return with_lines(text, [*HEAD, *lines] if lines else ["No result is committed yet."])


def with_colourings(text: str) -> str:
    """The page of graph-coloring with its table made anew."""
    return with_lines(text, list(colourings()))


def with_chess(text: str) -> str:
    """The page of the chess core with its tables made anew."""
    return with_lines(text, list(chess(RESULTS)))


def with_trading(text: str) -> str:
    """The page of stock-trading with its tables made anew."""
    return with_lines(text, list(trading(PROOFS, RESULTS)))


if __name__ == "__main__":
    README.write_text(with_figures(README.read_text(encoding="utf-8")), encoding="utf-8")
    CHESS.write_text(with_chess(CHESS.read_text(encoding="utf-8")), encoding="utf-8")
    COLORING.write_text(with_colourings(COLORING.read_text(encoding="utf-8")), encoding="utf-8")
    TRADING.write_text(with_trading(TRADING.read_text(encoding="utf-8")), encoding="utf-8")
