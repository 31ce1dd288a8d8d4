"""L3: the same bits under --exact, on any deal, and through kills with another number of ranks after each."""

from __future__ import annotations

import random
from collections.abc import Sequence

from ranks.prove.processes import ProofError
from ranks.prove.report import Report
from ranks.prove.trainings import LIMIT_S, Deal, Training, fingerprints

CHAIN = (1, 4, 3, 2)


def L3(report: Report, base: Training, deals: Sequence[Deal], total: int, chance: random.Random) -> None:
    """Train on each deal, and once through `CHAIN`; all fingerprints must be equal."""
    report.section(f"L3: the same bits, --exact --shards 8, {total} iterations")
    flags = (*base.flags, "--exact", "--shards", "8", "--iterations", str(total))
    runs: list[Training] = []
    for index, deal in enumerate(deals):
        runs.append(base.under(f"exact-{index}", deal, flags))
        runs[-1].complete()
    chained, kills = through_kills(base.under("exact-chain", flags=flags), total, chance)
    found = fingerprints([*runs, chained])
    labels = [*(deal.label for deal in deals), f"{' -> '.join(map(str, CHAIN))} ranks, killed in between"]
    for label, fingerprint in zip(labels, found, strict=True):
        report.check(f"L3 {label}", fingerprint, f"equal to {labels[0]}", fingerprint == found[0])
    for kill in kills:
        text = "{ranks} ranks killed after {finished} of {total} iterations, newest checkpoint {checkpoint}"
        report.say(text.format(total=total, **kill))
    once = [row["iteration"] for row in chained.rows] == list(range(total))
    report.check("L3 rows of metrics.jsonl through the kills", f"{len(chained.rows)} rows", "each iteration once", once)
    report.raw["L3"] = {"fingerprints": dict(zip(labels, found, strict=True)), "kills": kills}


def through_kills(run: Training, total: int, chance: random.Random) -> tuple[Training, list[dict[str, int]]]:
    """A run that goes on with another number of ranks after each SIGKILL of everything; where each one struck."""
    kills: list[dict[str, int]] = []
    sections = len(CHAIN)
    for index, ranks in enumerate(CHAIN):
        run = run.under(run.name, Deal(ranks), run.flags)
        if index == sections - 1:
            run.complete()
            return run, kills
        saving = run.under(run.name, flags=(*run.flags, "--save-every", "2"))
        begun, target = saving.newest, total * (index + chance.uniform(0.3, 0.8)) / sections
        tree = saving.start()
        if not tree.until(lambda: saving.num_rows >= target and saving.newest > begun, LIMIT_S, 0.001):  # noqa: B023
            raise ProofError(f"{run.deal.label} ended ({tree.code}) before it could be killed:\n{tree.tail()}")
        tree.kill()
        kills.append({"ranks": ranks, "finished": saving.num_rows, "checkpoint": saving.newest})
        if saving.num_rows >= total:
            raise ProofError(f"{run.deal.label} was done before it could be killed: give more --iterations")
    raise AssertionError
