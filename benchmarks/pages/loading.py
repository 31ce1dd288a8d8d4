"""The table of docs/loading.md, from the committed comparison with torch's DataLoader."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from benchmarks.pages.results import machine, newest

COMMAND = "python -m benchmarks.engine.loading"


def loading(_proofs: Path, benchmarks: Path) -> Iterator[str]:
    """Items a second by size and cost of an item, and how long a loop waits for its data."""
    result = newest(benchmarks).get("loading")
    if result is None:
        yield f"No result of `{COMMAND}` is committed yet."
        return
    yield "| Size of an item, cost to read it | items/s | DataLoader's, same workers | Ratio |"
    yield "|---|---|---|---|"
    for name, case in result["cases"].items():
        ours, theirs = case["ranks_items_per_s"]["median"], case["torch_items_per_s"]["median"]
        ratio = case["ratio"]
        shown = f"{ratio['median']:.2f}x ({ratio['p25']:.2f} to {ratio['p75']:.2f})"
        yield f"| {name} | {ours:,.0f} | {theirs:,.0f} | {shown} |"
    loop = result["loop"]
    ahead, without = loop["with_workers"], loop["without"]
    yield ""
    gather_ms, step_ms = (round(1e3 * loop[name]) for name in ("gather_s", "step_s"))
    yield "A cost of `sleep` is 1 ms an item, `decode` is zlib. The ratio is the median of turns, with its quartiles."
    yield f"A loop whose batch takes {gather_ms} ms to read and {step_ms} ms to compute"
    yield f"waits {ahead['share']:.1%} of its time with {ahead['workers']} workers, {without['share']:.0%} without."
    yield f"`{COMMAND}`, {result['workers']} workers except in the loop; {machine(result)}."
