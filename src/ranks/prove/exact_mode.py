"""L3: with --exact, runs have the same bits in every layout, and after kills with another number of ranks each time.

The fingerprint covers all that a run keeps, and its kept files by their sha256. These files are also read and compared,
and so are the rollouts of all iterations: a window may have dropped the files of the first ones.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from ranks.prove.fast_mode import ROLLOUT
from ranks.prove.kept import KeptFileSet, read_kept
from ranks.prove.processes import ProofError
from ranks.prove.report import Report
from ranks.prove.train_command import LIMIT_S, RankLayout, TrainCommand, fingerprint

CHAIN, QUICK_CHAIN = (1, 4, 3, 2), (1, 4, 2)
"""Numbers of ranks of one run, which is killed after each but the last."""
ATTEMPTS = 5
"""To kill a run before it is complete."""


def L3(
    report: Report,
    base: TrainCommand,
    layouts: Sequence[RankLayout],
    chain: Sequence[int],
    total: int,
    rng: random.Random,
) -> None:
    """Train in each layout, and once through `chain`. All fingerprints must be equal.

    The chain is left out if the layouts differ already.
    """
    report.section(f"L3: the same bits, --exact --shards 8, {total} iterations")
    flags = (*base.flags, "--exact", "--shards", "8", "--iterations", str(total))
    found, kept, rollouts = dict[str, str](), dict[str, KeptFileSet](), dict[str, list[dict[str, float]]]()
    first, every = layouts[0].label, list[bool]()

    def compare(label: str, run: TrainCommand) -> None:
        found[label], kept[label], rollouts[label] = fingerprint(run), read_kept(run), rollouts_of(run)
        bound = f"equal to {first}"
        every.append(report.check(f"L3 {label}", found[label], bound, found[label] == found[first]))
        if kept[first].names or kept[label].names:
            every.append(report.check(f"L3 kept files, {label}", kept[label], bound, kept[label] == kept[first]))
        if any(rollouts[first]):
            text = f"{len(rollouts[label])} iterations, the last {rollouts[label][-1]}"
            every.append(report.check(f"L3 rollouts, {label}", text, bound, rollouts[label] == rollouts[first]))

    raw = dict[str, Any](fingerprints=found, kills=[])
    report.raw["L3"] = raw
    for index, layout in enumerate(layouts):
        run = base.variant(f"exact-{index}", layout, flags)
        run.complete()
        compare(layout.label, run)
    raw |= {"kept": {label: list(files.names) for label, files in kept.items()}, "rollouts": rollouts[first]}
    if not all(every):
        return
    chained, kills = run_through_kills(base.variant("exact-chain", flags=flags), chain, total, rng)
    compare(f"{' -> '.join(map(str, chain))} ranks, killed in between", chained)
    raw["kills"] = kills
    for kill in kills:
        text = "{ranks} ranks killed after {finished} of {total} iterations, newest checkpoint {checkpoint}"
        report.say(text.format(total=total, **kill))
    once = chained.has_each_iteration_once(total)
    report.check("L3 rows of metrics.jsonl through the kills", f"{len(chained.rows)} rows", "each iteration once", once)


def rollouts_of(run: TrainCommand) -> list[dict[str, float]]:
    """What each iteration's rollout or games were, by metrics.jsonl."""
    return [{name: value for name, value in row.items() if name.startswith(ROLLOUT)} for row in run.rows]


def run_through_kills(
    run: TrainCommand, chain: Sequence[int], total: int, rng: random.Random
) -> tuple[TrainCommand, list[dict[str, int]]]:
    """Kill all processes of a run and resume it with the next number of ranks; the complete run and its kills."""
    kills: list[dict[str, int]] = []
    for index, ranks in enumerate(chain[:-1]):
        target = total * (index + rng.uniform(0.3, 0.8)) / len(chain)
        saving = run.variant(run.name, RankLayout(ranks), (*run.flags, "--save-every", "2"))
        finished = kill_after(saving, target, total)
        kills.append({"ranks": ranks, "finished": finished, "checkpoint": saving.newest})
    run = run.variant(run.name, RankLayout(chain[-1]), run.flags)
    run.complete()
    return run, kills


def kill_after(run: TrainCommand, target: float, total: int) -> int:
    """Resume a run and kill it after `target` iterations and a new checkpoint; its finished iterations.

    On a busy machine the run may be complete before the kill. Its folder is then restored and the run resumed again.
    Raises ProofError after `ATTEMPTS` attempts.
    """
    before = run.backup()
    for _ in range(ATTEMPTS):
        resumed_at, tree = run.newest, run.start()
        killed = tree.until(lambda: run.num_rows >= target and run.newest > resumed_at, LIMIT_S, 0.001)  # noqa: B023
        if not killed and tree.code != 0:
            raise ProofError(f"{run.layout.label} ended with exit code {tree.code}:\n{tree.tail()}")
        tree.kill()
        finished = run.num_rows
        if finished < total:
            return finished
        run.restore(before)
    raise ProofError(f"{run.layout.label} was complete before it could be killed: give more --iterations")
