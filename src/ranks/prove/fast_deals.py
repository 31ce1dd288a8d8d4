"""L2 and L1, fast mode: the same update up to rounding; the same experience to begin with."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ranks.prove.report import Report
from ranks.prove.trainings import Deal, Training, relative_difference

ONE_UPDATE = 1e-12
"""Relative L2 difference of all weights after one update from the same weights, float64."""
FREE_RUNNING = 10
FREE_WEIGHTS = 1e-9
"""After `FREE_RUNNING` updates, float64."""
FREE_LOSS = 1e-6
"""Relative difference of each loss of those updates, float32."""
FIRST_LOSS = 1e-5
"""Relative difference of the first iteration's loss where a sampled action may not flip yet."""
EXPERIENCE = "rollout/"
ONE_THREAD = ("--threads", "1")
"""For each rank, so that four of them do not wait for each other's threads on a small machine."""


def L2(
    report: Report, base: Training, deals: Sequence[Deal], total: int, points: Sequence[int], *, dropout: bool
) -> None:
    """One update on every deal from each of a run's `points`, then the first updates free-running."""
    report.section(f"L2: the same update up to rounding, fast mode, {total} iterations")
    if dropout:
        report.say("this model has dropout: a mask belongs to a batch's shape, so L2 cannot hold for it (L3 does)")
        return
    others = deals[1:]
    source = base.under("fast-fp64")
    raw: list[dict[str, Any]] = []
    for point in points:
        source.under(source.name, flags=session(base, point + 1, "fp64")).complete()
        want = source.weights(point + 1)
        for index, deal in enumerate(others):
            copy = source.copy(f"fast-{point}-{index}", point)
            copy.under(copy.name, deal, session(base, point + 1, "fp64")).complete()
            difference = relative_difference(copy.weights(point + 1), want)
            raw.append({"iteration": point, "deal": deal.label, "weights": difference})
            name = f"L2 update {point}, {deal.label}"
            report.check(name, f"weights {difference:.2e}", f"<= {ONE_UPDATE:.0e}, float64", difference <= ONE_UPDATE)
        if point + 1 == FREE_RUNNING:
            for index, deal in enumerate(others):
                free = base.under(f"free-fp64-{index}", deal, session(base, FREE_RUNNING, "fp64"))
                free.complete()
                difference = relative_difference(free.weights(FREE_RUNNING), want)
                raw.append({"free_running": FREE_RUNNING, "deal": deal.label, "weights": difference})
                name = f"L2 first {FREE_RUNNING} updates, {deal.label}"
                report.check(
                    name, f"weights {difference:.2e}", f"<= {FREE_WEIGHTS:.0e}, float64", difference <= FREE_WEIGHTS
                )
    losses = {deal.label: free_losses(base.under(f"free-fp32-{i}", deal)) for i, deal in enumerate(deals)}
    want_losses = losses[deals[0].label]
    for deal in others:
        worst = max(map(relative, losses[deal.label], want_losses))
        raw.append({"free_running": FREE_RUNNING, "deal": deal.label, "loss": worst, "losses": losses[deal.label]})
        name = f"L2 first {FREE_RUNNING} losses, {deal.label}"
        report.check(name, f"loss {worst:.2e}", f"<= {FREE_LOSS:.0e}, float32", worst <= FREE_LOSS)
    report.raw["L2"] = raw


def session(base: Training, iterations: int, precision: str) -> tuple[str, ...]:
    """One sitting of a run up to `iterations`; its last checkpoints stay."""
    sitting = ("--precision", precision, "--save-every", "1", "--iterations", str(iterations))
    return (*base.flags, *ONE_THREAD, *sitting)


def free_losses(run: Training) -> list[float]:
    """The losses of the first updates."""
    run = run.under(run.name, flags=session(run, FREE_RUNNING, "fp32"))
    run.complete()
    return [float(row["train/loss"]) for row in run.rows]


def L1(report: Report, base: Training, deals: Sequence[Deal]) -> None:
    """The first iteration's experience on each deal, and the loss that follows from it."""
    report.section("L1: the same experience to begin with, fast mode, 1 iteration")
    report.say(
        "one rounding flips a sampled action, so later iterations differ between deals in fast mode; --exact holds"
    )
    first: dict[str, dict[str, float]] = {}
    for index, deal in enumerate(deals):
        run = base.under(f"first-{index}", deal, (*base.flags, *ONE_THREAD, "--iterations", "1"))
        run.complete()
        first[deal.label] = {k: v for k, v in run.rows[0].items() if k.startswith(EXPERIENCE) or k == "train/loss"}
    want = first[deals[0].label]
    for deal in deals:
        found = first[deal.label]
        same = {k: v for k, v in found.items() if k.startswith(EXPERIENCE)}
        equal = bool(same) and same == {k: v for k, v in want.items() if k.startswith(EXPERIENCE)}
        report.check(f"L1 experience, {deal.label}", same, "equal on all deals", equal)
        off = relative(found["train/loss"], want["train/loss"])
        report.check(
            f"L1 first loss, {deal.label}",
            f"{found['train/loss']:.9g} ({off:.1e})",
            f"<= {FIRST_LOSS:.0e}",
            off <= FIRST_LOSS,
        )
    report.raw["L1"] = first


def relative(a: float, b: float) -> float:
    """|a - b| / |b|."""
    return abs(a - b) / abs(b) if b else math.inf if a else 0.0
