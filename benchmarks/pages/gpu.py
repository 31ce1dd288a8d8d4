"""Rows of docs/results.md from the parts of `benchmarks/gpu.py`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from benchmarks.pages.results import Result, Row


def measured_parts(benchmarks: dict[str, Result]) -> Iterator[tuple[str, dict[str, Any], Result]]:
    """The parts of `benchmarks/gpu.py`: name, what was found, and the result file with the part's own date."""
    for kind, result in benchmarks.items():
        if kind.startswith("workloads_"):
            for name, part in result["parts"].items():
                date = part.get("date", result["origin"]["date"])
                yield name, part, {**result, "origin": {**result["origin"], "date": date}}


def same_bits(benchmarks: dict[str, Result]) -> Iterator[Row]:
    """The quick check of `benchmarks/gpu.py`."""
    for name, part, result in measured_parts(benchmarks):
        if name.startswith("L3"):
            figure = "equal fingerprints" if part["ok"] else "**failed**, see the file"
            yield f"1 and 4 ranks, {result['device']}:{name[2:].rstrip()}", figure, result


def workloads(benchmarks: dict[str, Result]) -> Iterator[Row]:
    """The parts of `benchmarks/gpu.py` that have a rate."""
    for name, part, result in measured_parts(benchmarks):
        what, figure = f"{name}, {result['device']}", "**failed**, see the file"
        if part["ok"]:
            what, figure = rate(name, result["device"], part["found"])
        if figure:
            yield what, figure, result


def rate(name: str, device: str, found: Result) -> tuple[str, str]:
    """(what, figure) of one part; no figure where the part has no rate."""
    if "hundred_epochs_s" in found:
        train, validation = found["graphs"]
        what = (
            f"graph-coloring, {name}, {device}: {train:,} + {validation:,} graphs, {found['parameters']:,} parameters"
        )
        hundred = f"100 epochs {found['hundred_epochs_s']:,.0f} s ({found['hundred_epochs_are']})"
        evaluation = f"; {found['evaluation_s']:.3g} s an evaluation" if "evaluation_s" in found else ""
        return what, f"{found['epoch_s']:.3g} s an epoch; {hundred}; {found['graphs_per_s']:,.0f} graphs/s{evaluation}"
    if "graphs_per_s" in found:
        memory_mib = found["peak_memory_bytes"] / 2**20
        figure = f"{found['graphs_per_s']:,.0f} graphs/s, {found['nodes_per_s']:,.0f} nodes/s, {memory_mib:,.0f} MiB"
        return f"graph-coloring, {name}, {device}", figure
    if "seconds_5000_episodes" in found:
        note = " (extrapolated)" if found["extrapolated"] else ""
        episodes = f"5,000 episodes of 252 days in {found['seconds_5000_episodes']:,.0f} s{note}"
        figure = f"{found['steps_per_s']:,.0f} environment steps/s, each learned from 10 times; {episodes}"
        return f"stock-{name}, {device}", figure
    if "window_positions" in found and found["best_batch"] is not None:
        batch = found["best_batch"]
        best = found["batches"][str(batch)]
        alone = f"alone: device {best['device_positions_per_s']:,.0f}, host {best['host_positions_per_s']:,.0f}"
        figure = f"{best['positions_per_s']:,.0f} positions/s, limited by the {best['limited_by']} ({alone})"
        what = f"chess-{name}, {device}: {found['parameters']:,} parameters, global batch {batch:,}"
        return what, f"{figure}, {best['peak_memory_bytes'] / 2**20:,.0f} MiB"
    if "labels_per_s" in found:
        figure = f"{found['positions_per_s']:,.0f} positions/s, {found['labels_per_s']:,.0f} labels/s"
        return f"chess-{name}, {device}: {found['positions']:,.0f} positions, labels: {found['labels']}", figure
    if "accounts" in found:
        return f"stock-{name}, {device}", f"{found['steps_per_s']:,.0f} steps/s, {found['accounts']:,} accounts"
    if "work_of_a_clip" in found:
        speeds = [video_speed(batch, one) for batch, one in found["batches"].items()]
        kind, gflop = name.removeprefix("video "), found["work_of_a_clip"]["training_flop"] / 1e9
        return (
            f"video-behavior, {kind}, {device}: {gflop:.1f} GFLOP a clip, forwards and backwards",
            "; ".join(speeds),
        )
    if "plies_per_s" in found:
        busy = f", the GPU works {found['gpu_busy_share']:.0%} of the time" if found["gpu_busy_share"] else ""
        plies, goal = found["plies_per_s"], found["goals_on_one_h200"]["plies_per_s"]
        judged = f" (goal {goal:,}: {'met' if plies >= goal else 'not met'})" if "H200" in device else ""
        speed = f"{plies:,.0f} plies/s{judged}, {found['evaluations_per_s']:,.0f} evaluations/s"
        bare = f", {found['by_bare_forward']:.0%} of the bare forward pass" if "by_bare_forward" in found else ""
        figure = f"{speed}{bare}{busy}"
        net = name.removeprefix("selfplay ").removesuffix(f" {found['slots']}")
        return f"self-play of chess, {net}, {device}: {found['slots']:,} games", figure
    if "evaluations_per_s" in found:
        what = f"evaluations of chess positions, {name.removeprefix('selfplay evaluations ')}, {device}"
        bare = f"bare forward pass {found['bare_forward_per_s']:,.0f}"
        return what, f"{found['evaluations_per_s']:,.0f} evaluations/s at batch {found['best_batch']:,} ({bare})"
    return name, ""


def video_speed(batch: str, found: Result) -> str:
    """The speed of one batch size."""
    if "clips_per_s" not in found:
        return f"{batch}: out of memory"
    memory = f"{found['peak_memory_bytes'] / 2**30:,.1f} GiB"
    share = f"{found['share_of_copy_bandwidth']:.0%} of the copy bandwidth"
    return f"{found['clips_per_s']:,.0f} clips/s at {batch} ({memory}, {share})"
