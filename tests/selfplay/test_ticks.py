"""On a device, a tick waits once for each batch: to read its evaluations. Meanwhile the other batches are evaluated."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from ranks.search import CONNECT_FOUR
from ranks.selfplay import SelfPlayConfig
from ranks.selfplay.net.batch_evaluator import BatchEvaluator, BatchMemory
from ranks.selfplay.records import Records
from ranks.selfplay.slots import PHASES, Slots
from tests.selfplay.fixtures import net_of, selfplay, single_rank


class Evaluated:
    """In place of the event that a device records behind the evaluation of a batch."""

    def __init__(self, order: list[str], batch: str) -> None:
        self.order, self.batch = order, batch

    def synchronize(self) -> None:
        self.order.append(f"wait {self.batch}")


@pytest.mark.parametrize("batches", [1, 2])
def test_a_tick_waits_once_for_each_batch_and_only_for_its_evaluations(
    batches: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    order, names = list[str](), dict[int, str]()
    launch, step = BatchEvaluator.launch, Slots.step

    def launched(self: BatchEvaluator, net: Any, memory: BatchMemory) -> None:
        launch(self, net, memory)
        name = names.setdefault(id(memory), f"{len(names)}")
        order.append(f"launch {name}")
        memory.copied = Evaluated(order, name)  # type: ignore[assignment]

    def stepped(self: Slots, group: Any, tick: int) -> None:
        order.append("step")
        step(self, group, tick)

    monkeypatch.setattr(BatchEvaluator, "launch", launched)
    monkeypatch.setattr(Slots, "step", stepped)
    with single_rank(exact=True, shards=batches) as world:
        selfplay(world, CONNECT_FOUR, slots=4, games=2).play(net_of(CONNECT_FOUR), 0)
    used = "01"[:batches]
    first = [word for name in used for word in ("step", f"launch {name}")]
    tick = [word for name in used for word in (f"wait {name}", "step", f"launch {name}")]
    last = [word for name in used for word in (f"wait {name}", "step")]
    ticks = (len(order) - len(first) - len(last)) // len(tick)
    assert ticks > 50
    assert order == first + tick * ticks + last


def played(staggered: bool, slots: int, ticks: int) -> tuple[Records, list[int]]:
    """The games that slots play with a net that always answers the same, and the moves recorded in each tick."""
    every = Slots(CONNECT_FOUR, range(3, 3 + slots), SelfPlayConfig(simulations=15), 0, 1, staggered)
    memory = BatchMemory(CONNECT_FOUR, slots, torch.device("cpu"))
    group, moves = every.search.group(0, memory.leaves), list[int]()
    every.begin_iteration(0)
    for tick in range(ticks):
        before = every.times.plies
        every.step(group, tick)
        moves.append(int(every.times.plies - before))
        memory.evaluation.priors_BM[:] = 1 / np.maximum(memory.leaves.num_moves_B, 1)[:, None]
        group.evaluation = memory.evaluation
    return every.end_iteration(), moves


def test_staggered_slots_record_few_moves_in_a_tick_and_play_the_same_games() -> None:
    """The first search, of 15 simulations, takes 16 ticks: an eighth of the slots ends it every 2 ticks."""
    slots, ticks = 4 * PHASES, 1000
    together, bunched = played(False, slots, ticks)
    staggered, spread = played(True, slots, ticks)
    assert bunched[:31] == [slots if tick == 16 else 0 for tick in range(31)]
    assert spread[:31] == [slots // PHASES if tick % 2 == 0 and tick >= 16 else 0 for tick in range(31)]
    both = np.intersect1d(together.game_P, staggered.game_P)
    assert len(both) > slots
    mine, other = (records.move_P[np.isin(records.game_P, both)] for records in (together, staggered))
    np.testing.assert_array_equal(mine, other)
