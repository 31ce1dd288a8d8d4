"""benchmarks/gpu_parts/value.py on the CPU, with few positions and without waiting."""

from __future__ import annotations

import json
from typing import Any

import pytest
import torch
from torch import Tensor

from benchmarks.gpu_parts import value
from benchmarks.pages.gpu import rate
from ranks.engine.sharding.batch import ShardItems, StepBatch


def test_updates_are_measured_whole_and_in_their_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    updates: list[int] = []
    step = value.Learner.step

    def counted(learner: Any, loss: Any, batch: StepBatch[Any]) -> Any:
        updates.append(batch.num_items)
        return step(learner, loss, batch)

    for name, number in {"UPDATES_S": 0.01, "DEVICE_S": 0.01, "STAGE_S": 0.01, "GAME_POSITIONS": 300}.items():
        monkeypatch.setattr(value, name, number)
    monkeypatch.setattr(value, "PART_POSITIONS", 40)
    monkeypatch.setattr(value.Learner, "step", counted)
    found = json.loads(json.dumps(value.value_updates("cpu", "fp32", "nnue", [16, 48], 130)))
    assert (found["window_positions"], found["window_files"]) == (130, 4)
    assert set(updates) == {16, 48}
    assert found["best_batch"] in (16, 48)
    for batch, rates in found["batches"].items():
        host_s = rates["host_s"]
        assert set(host_s) == {"drawing", "reading", "inputs", "copying"}
        slower_s = max(host_s["drawing"] + host_s["copying"], host_s["reading"] + host_s["inputs"])
        assert rates["host_positions_per_s"] == pytest.approx(int(batch) / slower_s)
        assert rates["positions_per_s"] == pytest.approx(int(batch) / rates["update_s"])
        assert rates["device_positions_per_s"] == pytest.approx(int(batch) / rates["device_s"])
        host_is_slower = slower_s > rates["device_s"]
        assert rates["limited_by"].startswith("host: ") == host_is_slower
    what, figure = rate("value nnue fp32", "CPU", found)
    assert what.startswith(f"chess-value nnue fp32, CPU: {found['parameters']:,} parameters, global batch")
    assert f"{found['batches'][str(found['best_batch'])]['positions_per_s']:,.0f} positions/s" in figure


def test_a_batch_that_stays_on_the_device_is_gathered_once() -> None:
    asked: list[list[int]] = []

    def gather(ids: Tensor) -> Tensor:
        asked.append(ids.tolist())
        return ids * 10

    shards = [ShardItems(0, torch.tensor([7, 7, 1])), ShardItems(1, torch.tensor([4]))]
    batch = value.gathered_once(StepBatch(shards, gather))
    passes = [part.ids for part in [*batch.split(None, 2), *batch.split(None, 2)]]
    assert [batch.gather(ids).tolist() for ids in passes] == [[70, 70], [10, 40]] * 2
    assert asked == [[7, 7], [1, 4]]
