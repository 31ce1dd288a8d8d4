"""Where the time of an iteration of training went on one rank, from two of its rows."""

from __future__ import annotations

from dataclasses import dataclass

from ranks.engine.liveness.beats import Beat, Field


@dataclass(frozen=True)
class WorkSplit:
    """Mean seconds of one iteration of one rank."""

    compute_s: float
    data_s: float
    send_s: float
    wait_s: float

    @property
    def own_s(self) -> float:
        """Without waiting for others."""
        return self.compute_s + self.data_s + self.send_s

    @property
    def iteration_s(self) -> float:
        return self.own_s + self.wait_s


def split_between(before: Beat, after: Beat) -> WorkSplit:
    """The mean times of the iterations between two rows of a rank."""
    count = max(1, after[Field.ITERATION] - before[Field.ITERATION])
    compute, data, send, wait = (
        (after[field] - before[field]) / 1e9 / count
        for field in (Field.COMPUTE_NS, Field.DATA_NS, Field.SEND_NS, Field.WAIT_NS)
    )
    return WorkSplit(compute, data, send, wait)
