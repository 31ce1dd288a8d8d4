"""L3: with --exact, runs have the same bits in every layout, and after kills with another number of ranks each time."""

from __future__ import annotations

import random
from collections.abc import Sequence

from ranks.prove.processes import ProofError
from ranks.prove.report import Report
from ranks.prove.train_command import LIMIT_S, RankLayout, TrainCommand, fingerprint

CHAIN, QUICK_CHAIN = (1, 4, 3, 2), (1, 3, 2)
"""Numbers of ranks of one run, which is killed after each but the last."""


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
    found: dict[str, str] = {}

    def compare(label: str, run: TrainCommand) -> None:
        found[label] = fingerprint(run)
        equal = found[label] == found[layouts[0].label]
        report.check(f"L3 {label}", found[label], f"equal to {layouts[0].label}", equal)

    report.raw["L3"] = {"fingerprints": found, "kills": []}
    for index, layout in enumerate(layouts):
        run = base.variant(f"exact-{index}", layout, flags)
        run.complete()
        compare(layout.label, run)
    if len(set(found.values())) > 1:
        return
    chained, kills = run_through_kills(base.variant("exact-chain", flags=flags), chain, total, rng)
    compare(f"{' -> '.join(map(str, chain))} ranks, killed in between", chained)
    report.raw["L3"]["kills"] = kills
    for kill in kills:
        text = "{ranks} ranks killed after {finished} of {total} iterations, newest checkpoint {checkpoint}"
        report.say(text.format(total=total, **kill))
    once = chained.has_each_iteration_once(total)
    report.check("L3 rows of metrics.jsonl through the kills", f"{len(chained.rows)} rows", "each iteration once", once)


def run_through_kills(
    run: TrainCommand, chain: Sequence[int], total: int, rng: random.Random
) -> tuple[TrainCommand, list[dict[str, int]]]:
    """Kill all processes of a run and continue it with the next number of ranks; the finished run and its kills."""
    kills: list[dict[str, int]] = []
    sections = len(chain)
    for index, ranks in enumerate(chain):
        run = run.variant(run.name, RankLayout(ranks), run.flags)
        if index == sections - 1:
            run.complete()
            return run, kills
        saving = run.variant(run.name, flags=(*run.flags, "--save-every", "2"))
        resumed_at, target = saving.newest, total * (index + rng.uniform(0.3, 0.8)) / sections
        tree = saving.start()
        if not tree.until(lambda: saving.num_rows >= target and saving.newest > resumed_at, LIMIT_S, 0.001):  # noqa: B023
            raise ProofError(f"{run.layout.label} ended ({tree.code}) before it could be killed:\n{tree.tail()}")
        tree.kill()
        kills.append({"ranks": ranks, "finished": saving.num_rows, "checkpoint": saving.newest})
        if saving.num_rows >= total:
            raise ProofError(f"{run.layout.label} was complete before it could be killed: give more --iterations")
    raise AssertionError
