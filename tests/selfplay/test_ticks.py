"""On a device, a tick waits once for each batch: to read its evaluations. Meanwhile the other batches are evaluated."""

from __future__ import annotations

from typing import Any

import pytest

from ranks.search import CONNECT_FOUR
from ranks.selfplay.net.batch_evaluator import BatchEvaluator, BatchMemory
from ranks.selfplay.slots import Slots
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

    def stepped(self: Slots, group: Any) -> None:
        order.append("step")
        step(self, group)

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
