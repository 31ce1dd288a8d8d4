"""One GPU works and the others do not: an event with its cause, from the ranks' use and their rows."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from ranks.engine.liveness.beats import Beat, Field
from ranks.engine.liveness.phases import Phase
from ranks.launch.supervision.notice import Notice
from ranks.launch.supervision.stragglers import Window
from ranks.launch.telemetry.usage import RankUse

BUSY_PERCENT, IDLE_PERCENT = 80.0, 30.0
IN_A_ROW = 3
"""Samples."""
LARGE_SHARE = 0.5
"""Of an iteration: what takes so much of it is its limit."""
ALONE = (Phase.EVALUATE, Phase.SAVE, Phase.FINISH)


class UnevenGpus:
    """Looks at each sample once. Says of a GPU once that it works alone, and again after it did not."""

    def __init__(self) -> None:
        self._seen = self._in_a_row = 0
        self._busy: int | None = None
        """The rank whose GPU alone was busy in the newest samples."""

    def look(
        self,
        sample: int,
        uses: Mapping[int, RankUse],
        rows: Mapping[int, Beat],
        window: Window,
        stragglers: Collection[int],
    ) -> Notice | None:
        """`sample`: its number. `window`: the newest times of an iteration. `stragglers`: the ranks named as such."""
        if sample == self._seen:
            return None
        self._seen = sample
        busy = busy_alone(uses)
        self._in_a_row = self._in_a_row + 1 if busy == self._busy else 1
        self._busy = busy
        if busy is None or self._in_a_row != IN_A_ROW:
            return None
        percents = {rank: use.gpu_percent or 0.0 for rank, use in uses.items() if use.gpu_percent is not None}
        others = max(percent for rank, percent in percents.items() if rank != busy)
        cause = cause_of(busy, rows, window, stragglers)
        text = f"the GPU of rank {busy} is at {percents[busy]:.0f} %, the others at {others:.0f} % or less: {cause}"
        return Notice("uneven_gpus", busy, text, {"percent": percents[busy], "others_percent": others, "cause": cause})


def busy_alone(uses: Mapping[int, RankUse]) -> int | None:
    """The rank whose GPU works while all others are nearly idle; None where there is none."""
    percents = {rank: use.gpu_percent for rank, use in uses.items() if use.gpu_percent is not None}
    if len(percents) < 2:
        return None
    busy = max(percents, key=lambda rank: percents[rank])
    others = max(percent for rank, percent in percents.items() if rank != busy)
    return busy if percents[busy] >= BUSY_PERCENT and others <= IDLE_PERCENT else None


def cause_of(busy: int, rows: Mapping[int, Beat], window: Window, stragglers: Collection[int]) -> str:
    """Why the other GPUs are idle, in words."""
    waiting = all(row[Field.WAITING] for rank, row in rows.items() if rank != busy)
    if busy in rows and rows[busy].phase in ALONE and waiting:
        return f"rank {busy} is in the phase {rows[busy].phase.words}, and the others wait for it"
    if busy in stragglers:
        return f"rank {busy} is a straggler, and the others wait for it"
    others = [split for rank, split in window.items() if rank != busy]

    if others and all(split.data_s > LARGE_SHARE * split.iteration_s for split in others):
        return "the others wait for their data"
    if others and all(split.wait_s > LARGE_SHARE * split.iteration_s for split in others):
        return f"the others wait for rank {busy} in collectives, which has more work of its own"
    return "unknown: the ranks' own times do not differ as much"
