"""What the rows of all ranks say together: who holds the others up, whose loop ended early. Pure functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from ranks.engine.liveness.beats import Beat, Field, limit_of
from ranks.engine.liveness.phases import Phase


def holding_up(rows: Mapping[int, Beat], silence_s: Sequence[float], timeout_s: float) -> list[int]:
    """The ranks that hold the others up, where each of them is silent for longer than its phase allows; else none."""
    return holding_up_beyond(rows, silence_s, lambda rank: limit_of(rows[rank].phase, rows.values(), timeout_s))


def holding_up_beyond(
    rows: Mapping[int, Beat], silence_s: Sequence[float], limit_s: Callable[[int], float]
) -> list[int]:
    """The ranks that hold the others up, where each of them is silent for longer than its limit; else none."""
    fewest = min(row[Field.COLLECTIVES] for row in rows.values())
    behind = [rank for rank, row in rows.items() if row[Field.COLLECTIVES] == fewest]
    return behind if all(silence_s[rank] > limit_s(rank) for rank in behind) else []


def loops_differ(rows: Mapping[int, Beat]) -> tuple[int, str] | None:
    """(rank, what is wrong) where one rank has ended its loop and another one still works in the same loop."""
    for rank, row in rows.items():
        if row.phase != Phase.FINISH:
            continue
        for other, theirs in rows.items():
            later = theirs[Field.ITERATION] > row[Field.ITERATION] or theirs[Field.STEPS] > row[Field.STEPS]
            if later and theirs.phase not in (Phase.FINISH, Phase.LEFT):
                return rank, (
                    f"its loop ended after iteration {row[Field.ITERATION]}, but rank {other} goes on with iteration "
                    f"{theirs[Field.ITERATION] + 1}: end the loop on all ranks together"
                )
    return None


def place(beat: Beat) -> str:
    """Where in the run a rank is, in words."""
    if not beat.connected:
        return "in the phase start"
    if beat.phase in (Phase.START, Phase.LOAD):
        return f"in the phase {beat.phase.words}"
    item = f", in update {beat[Field.STEPS]} of this start, at item {beat[Field.OFFSET]} of shard {beat[Field.SHARD]}"
    in_update = item if beat[Field.STEPS] and beat.phase in (Phase.TRAIN, Phase.FIRST_ITERATION) else ""
    return f"in the phase {beat.phase.words}, after iteration {beat[Field.ITERATION]}{in_update}"
