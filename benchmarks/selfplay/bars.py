"""The goals of benchmarks/selfplay/against_peers.py, judged by its result file, and its tables."""

from __future__ import annotations

from typing import Any

ORIGIN_PLIES, ORIGIN_GAMES = "39 to 92 plies/s", "1,700 games/hour"
"""What chess-snn-rl claims for one GPU; plies/s by the 82 to 194 plies of a game that its documents name."""
RATIOS = {
    ("a OpenSpiel tiny 32", "OpenSpiel AlphaZero"): 8,
    ("a OpenSpiel 6x64 32", "OpenSpiel AlphaZero"): 8,
    ("a OpenSpiel constant 32", "OpenSpiel AlphaZero"): 20,
    ("a mctx tiny 32", "mctx + pgx"): 20,
    ("a mctx tiny 100", "mctx + pgx"): 120,
    ("a mctx 6x64 32", "mctx + pgx"): 20,
    ("a mctx 6x64 100", "mctx + pgx"): 120,
    ("d ranks tiny", "1 rank"): 1.85,
}
"""Plies/s of the first side by those of each side whose name begins like this, at least."""
OVERHEAD, EQUAL, ORIGIN_GOAL = 0.05, 1.2, 250
"""EQUAL: how much more a save or an opening may cost with the large window; the spread of the measurement."""


def judge(comparisons: dict[str, Any]) -> list[dict[str, Any]]:
    """Each bar that could be measured."""
    bars: list[dict[str, Any]] = []

    def bar(name: str, found: float, goal: float, at_least: bool = True) -> None:
        held = found >= goal if at_least else found <= goal
        bars.append({"bar": name, "found": found, "goal": f"{'>=' if at_least else '<='} {goal}", "held": held})

    for (comparison, begins), goal in RATIOS.items():
        for side in comparisons.get(comparison, {}).get("sides", []):
            if side["side"].startswith(begins) and "first_by_this" in side:
                bar(f"{comparison}: plies/s by {side['side']}", side["first_by_this"]["median"], goal)
    for net in ("tiny", "6x64"):
        if f"b overhead {net}" in comparisons:
            found = comparisons[f"b overhead {net}"]["overhead"]["median"]
            bar(f"b: loop over Search + net alone, {net}", found, OVERHEAD, at_least=False)
    windows = [found for name, found in comparisons.items() if name.startswith("c window") and "open_s" in found]
    if len(windows) == 2:
        small, large = sorted(windows, key=lambda found: found["positions"])
        for what in ("open_s", "save_s", "open_bytes", "save_bytes"):
            by = large[what] / max(small[what], 1e-9)
            bar(f"c: {what} with {large['positions']:,} positions by {small['positions']:,}", by, EQUAL, at_least=False)
    for side in comparisons.get("e origin", {}).get("sides", [])[:1]:
        if "plies_per_s" in side:
            bar("e: plies/s of the origin's net without search", side["plies_per_s"]["median"], ORIGIN_GOAL)
    return bars


def show(name: str, found: dict[str, Any]) -> None:
    """The table of one comparison."""
    print(f"\n{name} ({found['seconds']:.0f} s)")
    for side in found.get("sides", []):
        print(f"  {side['side']:44} {line(side)}", flush=True)
    if name.startswith("b"):
        overhead, shares = found["overhead"], found["shares_of_the_loop"]
        print(f"  {overhead['median']:.2%} ({overhead['p25']:.2%} to {overhead['p75']:.2%})")
        print(f"  shares of the loop: {', '.join(f'{key} {value:.1%}' for key, value in shares.items())}")
    if name.startswith("c"):
        if "left_out" in found:
            print(f"  left out: {found['left_out']}")
        else:
            print(
                f"  {found['positions']:,} positions in {found['parts']} parts, {found['window_bytes'] / 1e6:,.0f} MB"
            )
            for what in ("open", "save"):
                print(f"  {what}: {found[f'{what}_s'] * 1e3:.3f} ms, {found[f'{what}_bytes']:,.0f} bytes")
            print(f"  gathering a batch: {found['gather_s'] * 1e3:.3f} ms")
    if name.startswith("e"):
        print(f"  claimed by chess-snn-rl for one GPU: {ORIGIN_PLIES}, {ORIGIN_GAMES}")


def line(side: dict[str, Any]) -> str:
    """What was found of one side, in one line."""
    if "plies_per_s" not in side:
        return f"not measured: {side.get('missing', 'no answer')}"
    plies, evaluations = side["plies_per_s"], side["evaluations_per_s"]
    text = f"{plies['median']:9,.1f} plies/s ({plies['p25']:,.1f} to {plies['p75']:,.1f}), "
    text += f"{evaluations['median']:9,.0f} evaluations/s"
    if side["games_ended"]:
        text += f", {side['games_per_hour']:,.0f} games/hour ended ({side['games_ended']:.0f})"
    if side.get("mean_plies_of_a_game"):
        per_hour = plies["median"] * 3600 / side["mean_plies_of_a_game"]
        text += f", {per_hour:,.0f} games/hour at their mean of {side['mean_plies_of_a_game']} plies"
    if side.get("ranks"):
        wall_s = sum(round_["seconds"] for round_ in side["rounds"]) * side["processes"]
        parts = ("net", "planes", "trees", "records", "waiting", "gather")
        shares = {part: sum(round_[f"{part}_s"] for round_ in side["rounds"]) / wall_s for part in parts}
        text += f"\n{'':47}{', '.join(f'{part} {share:.1%}' for part, share in shares.items())} of the ranks' time"
    if "first_by_this" in side:
        ratio, evaluated = side["first_by_this"], side.get("evaluations_first_by_this")
        text += f"\n{'':47}ours by this: plies {ratio['median']:.2f}x ({ratio['p25']:.2f} to {ratio['p75']:.2f})"
        text += f", evaluations {evaluated['median']:.2f}x" if evaluated else ""
    return text
