"""Runs with background loading: a retry after out of memory, a resume with other workers, time that is logged."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch
from torch import nn

from ranks import Learner, Loss, OptimConfig, Run, RunConfig, World, stream
from tests.data.host_data import Batch, Points
from tests.toys.images import Config

ITERATIONS, GLOBAL_BATCH, HELD_ITEMS = 9, 16, 6


class Crash(Exception):
    """Ends a run between two iterations."""


def train(tmp_path: Path, name: str, workers: int, stop_after: int = ITERATIONS) -> tuple[str, list[dict[str, Any]]]:
    """The fingerprint and the rows of a run of float64 on one rank, whose device holds six items from its third
    iteration on."""
    config = RunConfig(threads=1, shards=8, precision="fp64", runs_dir=tmp_path, name=name, save_every="1")
    world = World.join(config, workload="test")
    torch.manual_seed(0)
    try:
        learner = Learner(nn.Linear(6, 2), OptimConfig(), world, updates=ITERATIONS)
        batches = stream(Points(), GLOBAL_BATCH, world, workers=workers, kind="threads")

        def hungry_loss(model: nn.Module, batch: Batch) -> Loss:
            """It changes its batch, as losses may do."""
            if learner.updates >= 2 and len(batch.x_NF) > HELD_ITEMS:
                raise torch.OutOfMemoryError("a device that holds six items")
            batch.x_NF.mul_(2.0)
            loss_N = model(batch.x_NF).square().sum(1)
            return Loss(loss_N.sum(), len(loss_N))

        with suppress(Crash), Run.open(Config(), world, keep={"learner": learner}) as run:
            for iteration in run.iterations(ITERATIONS):
                if iteration == stop_after:
                    raise Crash
                run.log(learner.step(hungry_loss, batches.at(iteration)))
        fingerprint = run.finish().fingerprint if stop_after == ITERATIONS else ""
    finally:
        world.leave()
    rows = [json.loads(line) for line in (tmp_path / name / "metrics.jsonl").read_text().splitlines()]
    assert stop_after < ITERATIONS or learner.max_cost is not None, "the memory never ran out"
    return fingerprint, rows


def test_a_run_is_the_same_with_any_workers_through_out_of_memory_and_a_resume(tmp_path: Path) -> None:
    expected, rows = train(tmp_path, "without", 0)
    assert not any("time/data_wait_s" in row for row in rows)
    fingerprint, rows = train(tmp_path, "with", 3)
    assert fingerprint == expected
    assert [row["iteration"] for row in rows] == list(range(1, ITERATIONS + 1))
    for row in rows[5:]:  # passes that were repeated count for the iteration of their update
        phases = [value for tag, value in row.items() if tag.startswith("time/") and tag.endswith("_s")]
        total_s = row["time/iteration_s"]
        assert row["time/data_wait_s"] >= 0
        assert abs(sum(phases) - 2 * total_s) < 1e-4 + 0.01 * total_s, "the phases add up to the iteration"
    train(tmp_path, "resumed", 1, stop_after=5)
    assert train(tmp_path, "resumed", 8)[0] == expected
