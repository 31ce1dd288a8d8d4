"""L3: the same bits under --exact, on any deal, and through kills with another number of ranks after each."""

from __future__ import annotations

import random
from collections.abc import Sequence

from ranks.prove.processes import ProofError
from ranks.prove.report import Report
from ranks.prove.trainings import LIMIT_S, Deal, Training, fingerprint

CHAIN = (1, 4, 3, 2)


def L3(report: Report, base: Training, deals: Sequence[Deal], total: int, chance: random.Random) -> None:
    """Train on each deal, and once through `CHAIN`; all fingerprints must be equal.

    Where deals differ already, what goes on from one deal to another is not tried.
    """
    report.section(f"L3: the same bits, --exact --shards 8, {total} iterations")
    flags = (*base.flags, "--exact", "--shards", "8", "--iterations", str(total))
    found: dict[str, str] = {}

    def look(label: str, run: Training) -> None:
        found[label] = fingerprint(run)
        equal = found[label] == found[deals[0].label]
        report.check(f"L3 {label}", found[label], f"equal to {deals[0].label}", equal)

    report.raw["L3"] = {"fingerprints": found, "kills": []}
    for index, deal in enumerate(deals):
        run = base.under(f"exact-{index}", deal, flags)
        run.complete()
        look(deal.label, run)
    if len(set(found.values())) > 1:
        return
    chained, kills = through_kills(base.under("exact-chain", flags=flags), total, chance)
    look(f"{' -> '.join(map(str, CHAIN))} ranks, killed in between", chained)
    report.raw["L3"]["kills"] = kills
    for kill in kills:
        text = "{ranks} ranks killed after {finished} of {total} iterations, newest checkpoint {checkpoint}"
        report.say(text.format(total=total, **kill))
    once = [row["iteration"] for row in chained.rows] == list(range(1, total + 1))
    report.check("L3 rows of metrics.jsonl through the kills", f"{len(chained.rows)} rows", "each iteration once", once)


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
