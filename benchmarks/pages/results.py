"""The tables of docs/results.md and the short table of the README, from the committed result files."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks.pages.gpu import same_bits, workloads

Result = dict[str, Any]
Row = tuple[str, str, Result]
"""What was measured, the figure, and the result file that holds date, machine and command."""

HEADLINES = (
    "same run, graph-coloring",
    "killed and stopped, stock-trading",
    "a step against DDP",
    "`--exact` against fast, 2 ranks",
    "stock-trading with",
    "self-play of chess, 10x128",
    "forecasts of jobs",
)
"""The figures of the README, by the beginning of their rows."""
HEAD = ["| What | Figure | Machine and date | Command |", "|---|---|---|---|"]


def results(proofs: Path, benchmarks: Path) -> Iterator[str]:
    """Every figure, by section."""
    found = newest(proofs), newest(benchmarks)
    yield from section("The same result on any number of ranks", [*same_run(found[0]), *same_bits(found[1])])
    yield from section("Kills and stops", survive(found[0]))
    yield from section("Cost of the engine", engine(found[1]))
    yield from section("Speed of the workloads", [*workloads(found[1]), *against_peers(found[1])])
    yield from section("Quality of the workloads", tables(found[0]))


def headlines(proofs: Path, benchmarks: Path, more: Iterable[Row]) -> Iterator[str]:
    """The figures of the README, of other pages too; docs/results.md has their commands."""
    found = newest(proofs), newest(benchmarks)
    rows = [*same_run(found[0]), *survive(found[0]), *engine(found[1]), *against_peers(found[1]), *workloads(found[1])]
    rows += more
    yield from ["| What | Figure | Machine and date |", "|---|---|---|"]
    for start in HEADLINES:
        for what, figure, result in [row for row in rows if row[0].startswith(start)][:1]:
            yield f"| {what} | {figure} | {machine(result)} |"


def newest(folder: Path) -> dict[str, Result]:
    """Result files by kind, the newest of each: `same-run_images_2026-11-20.json` is of the kind `same-run_images`."""
    files = sorted(folder.glob("*.json"), key=lambda path: path.stem.rpartition("_"))
    return {path.stem.rpartition("_")[0]: read(path) for path in files}


def read(path: Path) -> Result:
    return json.loads(path.read_text(encoding="utf-8"))


def section(title: str, rows: Sequence[Row] | Iterator[Row]) -> Iterator[str]:
    yield from [f"## {title}", "", *HEAD, *(line(row) for row in rows), ""]


def line(row: Row) -> str:
    what, figure, result = row
    return f"| {what} | {figure} | {machine(result)} | `{command(result)}` |"


def command(result: Result) -> str:
    """The command, with the flags of --train= in quotes as a shell needs them."""
    return re.sub(r"--train=(?![\"'])(.*)$", r'--train="\1"', origin(result)["command"])


def origin(result: Result) -> Result:
    """Date, command, versions and hardware; some files hold them at the top, others under `origin`."""
    return result.get("origin", result)


def machine(result: Result) -> str:
    """'2 cores of AMD EPYC, torch 2.13.0+cpu, 2026-11-20', and whether the code was that of a commit."""
    found = origin(result)
    hardware, versions = found["hardware"], found["versions"]
    device = hardware.get("gpu") or f"{hardware['cores']} cores of {hardware.get('cpu') or hardware.get('processor')}"
    library = f"torch {versions['torch']}" if "torch" in versions else f"numba {versions['numba']}"
    changed = ", uncommitted changes" if str(found.get("commit")).endswith("+changes") else ""
    return f"{device}, {library}, {found['date'][:10]}{changed}"


def same_run(proofs: dict[str, Result]) -> Iterator[Row]:
    """`ranks prove same-run`: equal fingerprints."""
    for name, result in of_kind(proofs, "same-run"):
        fingerprints: dict[str, str] = result["raw"]["L3"]["fingerprints"]
        equal = "equal fingerprints" if len(set(fingerprints.values())) == 1 else "**different fingerprints**"
        yield f"same run, {name}", f"{verdict(result)}: {equal} in {len(fingerprints)} runs on 1 to 4 ranks", result


def survive(proofs: dict[str, Result]) -> Iterator[Row]:
    """`ranks prove survive`: SIGKILL and SIGTERM at any moment, and hangs."""
    labels = {"kills": "kills", "hangs named and restarted": "hangs", "stops during a hang": "stops during a hang"}
    labels["runs with a damaged kept file"] = "damaged kept files that changed nothing"
    for name, result in of_kind(proofs, "survive"):
        checks = {check["name"]: check["found"] for check in result["checks"]}
        goals = result["raw"].get("goals", {}).items()
        recovery = "".join(f"; from a kill to the next new iteration: {in_words(goal['found'])}" for _, goal in goals)
        counts = "; ".join(f"{label}: {checks[check]}" for check, label in labels.items() if check in checks)
        what = "killed and stopped" if "kills" in checks else "made to hang"
        yield f"{what}, {name}", f"{verdict(result)}; {counts}{recovery}", result


def in_words(found: str) -> str:
    """'p50 3.6 s, p95 5.5 s of 23, 7 cut short' in words."""
    pattern = r"p50 (\S+) s, p95 (\S+) s of (\d+), (\d+) cut short"
    return re.sub(pattern, r"median \1 s, 95th percentile \2 s (\3 kills; \4 more were too close together)", found)


def tables(proofs: dict[str, Result]) -> Iterator[Row]:
    """`ranks prove table`: the workload's results against baselines, each with its bar."""
    for name, result in of_kind(proofs, "table"):
        yield f"[{name}]({name}.md) against its baselines", verdict(result), result


def of_kind(found: dict[str, Result], kind: str) -> Iterator[tuple[str, Result]]:
    for name, result in found.items():
        if name.startswith(f"{kind}_") and "verdict" in result:
            yield name.removeprefix(f"{kind}_"), result


def verdict(result: Result) -> str:
    """'PASS, 17 of 17 checks'."""
    checks = result["checks"]
    return f"{result['verdict']}, {sum(check['ok'] for check in checks)} of {len(checks)} checks"


def engine(benchmarks: dict[str, Result]) -> Iterator[Row]:
    """The cost of a step apart from the model's own work."""
    for name, result in benchmarks.items():
        if not name.startswith("engine_overhead"):
            continue
        small, one, two = result["ranks_1"]["small"], result["ranks_1"]["10ms"], result["ranks_2"]["10ms"]
        over_bare = spread(small, "engine_over_bare_us", "µs")
        yield "CPU time of the engine a step, over a bare loop with an all-reduce, 1 rank", over_bare, result
        over_nothing = spread(small, "engine_over_bare_without_all_reduce_us", "µs")
        yield "the same, over a bare loop without an all-reduce", over_nothing, result
        step_ms = two["ddp_step_ms"]["median"]
        yield f"a step against DDP, 2 ranks, steps of {step_ms:.0f} ms", spread(two, "engine_to_ddp", "x"), result
        for part, ranks, side in ((small, "1 rank", "bare"), (one, "1 rank", "bare"), (two, "2 ranks", "ddp")):
            step_ms = part[f"{side}_step_ms"]["median"]
            what = f"`--exact` against fast, {ranks}, steps of {step_ms:.1f} ms"
            yield what, spread(part, "exact_to_fast", "x"), result


def against_peers(benchmarks: dict[str, Result]) -> Iterator[Row]:
    """Ratios to the library that a user would otherwise take; the pages have every row."""
    for name, result in benchmarks.items():
        if name == "trading_recurrent_ppo":
            shown = {"finrl": "on FinRL's environment", "sb3": "on the same batched market"}
            ratios = "; ".join(f"{result['ratios'][side]['ratio']:.1f}x {text}" for side, text in shown.items())
            what = (
                "stock-trading with `--model.activation hardtanh --model.log-std 0.8`: environment steps a CPU second "
                "by RecurrentPPO of sb3-contrib"
            )
            counts = all(one["counts"] for one in result["ratios"].values())
            yield what, ratios if counts else f"{ratios}; at a lower Sharpe ratio", result
        if name == "chess_core":
            for comparison in result["comparisons"]:
                for side in comparison["sides"]:
                    if side["side"] == "chess" and "ours_by_theirs" in side:
                        ratio = spread(side, "ours_by_theirs", "x python-chess")
                        threads = f"{comparison['threads']} thread{'s' * (comparison['threads'] > 1)}"
                        yield f"chess: {comparison['name']}, {threads}", ratio, result


def spread(part: Result, name: str, unit: str) -> str:
    """Median and quartiles: '56 µs (47 to 75)'."""
    low, middle, high = (f"{part[name][key]:.3g}" for key in ("p25", "median", "p75"))
    return f"{middle} {unit} ({low} to {high})"
