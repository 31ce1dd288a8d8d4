"""Where the time of an iteration's self-play goes, and what was done in it."""

from __future__ import annotations

from dataclasses import asdict, dataclass


@dataclass
class PlayTimes:
    """Of one rank in one iteration."""

    wall_s: float = 0.0
    net_s: float = 0.0
    """Net and legal logits. On a device: to queue them."""
    planes_s: float = 0.0
    """The net's input. On a device: to queue it."""
    trees_s: float = 0.0
    """Steps of the trees and rules; with several threads, until the last one is done."""
    records_s: float = 0.0
    """Choosing moves, recording them, starting games."""
    waiting_device_s: float = 0.0
    """For evaluations of the device."""
    waiting_ranks_s: float = 0.0
    """For other ranks, to agree on the number of ended games."""
    gather_s: float = 0.0
    """Gathering the finished games over ranks."""
    plies: float = 0.0
    simulations: float = 0.0
    evaluations: float = 0.0
    searches: float = 0.0
    out_of_nodes: float = 0.0
    """Searches that ended early: no room for another node in their tree."""
    rows: float = 0.0
    """Rows of all batches; evaluations / rows is how full they were."""

    def numbers(self) -> list[float]:
        """The fields, in order."""
        return list(asdict(self).values())


def speed(ranks: list[list[float]]) -> dict[str, float]:
    """Metrics from the numbers of all ranks: rates of all ranks together, and shares of the time,
    as means over ranks."""
    times = [PlayTimes(*numbers) for numbers in ranks]
    wall_s = max(max(time.wall_s for time in times), 1e-9)
    found = {
        f"{name}_per_second": sum(getattr(time, name) for time in times) / wall_s
        for name in ("plies", "simulations", "evaluations")
    }
    found["batch_fill"] = sum(time.evaluations for time in times) / max(sum(time.rows for time in times), 1.0)
    searches = sum(time.searches for time in times)
    found["out_of_nodes_share"] = sum(time.out_of_nodes for time in times) / max(searches, 1.0)
    for name in ("net", "planes", "trees", "records", "waiting_device", "waiting_ranks", "gather"):
        shares = [getattr(time, f"{name}_s") / max(time.wall_s, 1e-9) for time in times]
        found[f"{name}_share"] = sum(shares) / len(shares)
    return found
