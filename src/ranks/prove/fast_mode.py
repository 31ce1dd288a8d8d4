"""L2 and L1, fast mode: equal updates up to rounding, and equal rollouts in the first iteration."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from ranks.prove.kept import games_sha256
from ranks.prove.report import Report
from ranks.prove.train_command import RankLayout, TrainCommand, relative_difference

ONE_UPDATE = 1e-12
"""Bound on the relative L2 difference of all weights after one update from the same weights, float64."""
FIRST_UPDATES = 10
FIRST_WEIGHTS = 1e-9
"""The same after the first `FIRST_UPDATES` updates, float64."""
FIRST_LOSSES = 1e-6
"""Bound on the relative difference of each loss of those updates, float32."""
FIRST_LOSS = 1e-5
"""Bound on the relative difference of the first iteration's loss; no sampled action differs yet."""
ROLLOUT = "rollout/"
ONE_THREAD = ("--threads", "1")
"""For each rank, so that four ranks do not compete for the cores of a small machine."""


def L2(
    report: Report,
    base: TrainCommand,
    layouts: Sequence[RankLayout],
    total: int,
    points: Sequence[int],
    has_dropout: Callable[[TrainCommand], bool],
) -> None:
    """Make one update in every layout from the checkpoint at each of `points`, then the first updates of a run.

    Point 0 needs no copy of a checkpoint: it is the start of the run whose first updates are compared.
    The first updates are left out if a single update differs already.
    """
    report.section(f"L2: the same update up to rounding, fast mode, {total} iterations")
    others = layouts[1:]
    source = base.variant("fast-fp64")
    raw: list[dict[str, Any]] = []
    report.raw["L2"] = raw
    for point in points:
        source.variant(source.name, flags=flags_until(base, point + 1, "fp64")).complete()
        if point == points[0] and has_dropout(source):
            report.say("this model has dropout: its masks depend on the shape of a batch, so L2 cannot hold (L3 does)")
            return
        want = source.weights(point + 1)
        equal = True
        for index, layout in enumerate(others):
            run = source.copy(f"fast-{point}-{index}", point) if point else base.variant(f"first-fp64-{index}")
            run.variant(run.name, layout, flags_until(base, point + 1, "fp64")).complete()
            difference = relative_difference(run.weights(point + 1), want)
            raw.append({"iteration": point, "layout": layout.label, "weights": difference})
            name, bound = f"L2 update {point}, {layout.label}", f"<= {ONE_UPDATE:.0e}, float64"
            equal &= report.check(name, f"weights {difference:.2e}", bound, difference <= ONE_UPDATE)
        if not equal:
            return
        if point + 1 == FIRST_UPDATES:
            for index, layout in enumerate(others):
                run = base.variant(f"first-fp64-{index}", layout, flags_until(base, FIRST_UPDATES, "fp64"))
                run.complete()
                difference = relative_difference(run.weights(FIRST_UPDATES), want)
                raw.append({"free_running": FIRST_UPDATES, "layout": layout.label, "weights": difference})
                name, bound = f"L2 first {FIRST_UPDATES} updates, {layout.label}", f"<= {FIRST_WEIGHTS:.0e}, float64"
                report.check(name, f"weights {difference:.2e}", bound, difference <= FIRST_WEIGHTS)
    losses = {layout.label: first_losses(base.variant(f"first-fp32-{i}", layout)) for i, layout in enumerate(layouts)}
    want_losses = losses[layouts[0].label]
    for layout in others:
        worst = max(map(relative, losses[layout.label], want_losses))
        raw.append(
            {"free_running": FIRST_UPDATES, "layout": layout.label, "loss": worst, "losses": losses[layout.label]}
        )
        name = f"L2 first {FIRST_UPDATES} losses, {layout.label}"
        report.check(name, f"loss {worst:.2e}", f"<= {FIRST_LOSSES:.0e}, float32", worst <= FIRST_LOSSES)


def flags_until(base: TrainCommand, iterations: int, precision: str) -> tuple[str, ...]:
    """Flags that train up to `iterations` and save after each, so that the last checkpoints exist."""
    ending = ("--precision", precision, "--save-every", "1", "--iterations", str(iterations))
    return (*base.flags, *ONE_THREAD, *ending)


def first_losses(run: TrainCommand) -> list[float]:
    """The losses of the first updates."""
    run = run.variant(run.name, flags=flags_until(run, FIRST_UPDATES, "fp32"))
    run.complete()
    return [float(row["train/loss"]) for row in run.rows]


def L1(report: Report, base: TrainCommand, layouts: Sequence[RankLayout]) -> None:
    """Compare the rollout of the first iteration, and its loss, in every layout."""
    report.section("L1: the same rollout in the first iteration, fast mode, 1 iteration")
    report.say(
        "a rounding difference can flip a sampled action, so later iterations may differ in fast mode; not with --exact"
    )
    first, games = dict[str, dict[str, float]](), dict[str, str]()
    for index, layout in enumerate(layouts):
        run = base.variant(f"first-{index}", layout, (*base.flags, *ONE_THREAD, "--iterations", "1"))
        run.complete()
        first[layout.label] = {k: v for k, v in run.rows[0].items() if k.startswith(ROLLOUT) or k == "train/loss"}
        games[layout.label] = games_sha256(run)
    want = first[layouts[0].label]
    for layout in layouts:
        found = first[layout.label]
        same = {k: v for k, v in found.items() if k.startswith(ROLLOUT)}
        equal = bool(same) and same == {k: v for k, v in want.items() if k.startswith(ROLLOUT)}
        report.check(f"L1 rollout, {layout.label}", same, "equal in all layouts", equal)
        if any(games.values()):
            equal = games[layout.label] == games[layouts[0].label]
            report.check(f"L1 games, {layout.label}", games[layout.label], "all moves equal in all layouts", equal)
        what, bound = f"L1 first loss, {layout.label}", f"<= {FIRST_LOSS:.0e}"
        if "train/loss" not in found.keys() & want.keys():
            report.check(what, "no update in the first iteration", "one: give a smaller batch with --train", False)
            continue
        difference = relative(found["train/loss"], want["train/loss"])
        report.check(what, f"{found['train/loss']:.9g} ({difference:.1e})", bound, difference <= FIRST_LOSS)
    report.raw["L1"] = first
    report.raw["L1 games"] = games


def relative(a: float, b: float) -> float:
    """|a - b| / |b|."""
    return abs(a - b) / abs(b) if b else math.inf if a else 0.0
