"""CUDA's own count of the calls in which the host waited."""

from __future__ import annotations

import warnings
from typing import Any

import torch

from ranks import Learner, RunConfig, World, stream
from tests.cuda.gpu import NEEDS_GPU
from tests.engine.update.test_no_sync import ITEMS, STEPS, Points, config, impatient_loss, learner_of, loss

__all__ = ["config"]  # a fixture
pytestmark = NEEDS_GPU


def synchronising_calls(learner: Learner, loss_fn: Any, batches: Any) -> list[str]:
    """What CUDA was made to wait for in steps after the first, which sets things up."""
    learner.step(loss_fn, batches.at(0))
    learner.step(loss_fn, batches.at(1))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        torch.cuda.set_sync_debug_mode("warn")
        try:
            for iteration in range(2, 2 + STEPS):
                learner.step(loss_fn, batches.at(iteration))
        finally:
            torch.cuda.set_sync_debug_mode("default")
    return [f"{w.filename}:{w.lineno}" for w in caught if "synchronizing CUDA" in str(w.message)]


def test_a_step_makes_no_synchronising_call(config: RunConfig) -> None:
    world = World.join(config, device="cuda:0", workload="test")
    try:
        batches = stream(Points(world.device), ITEMS, world)
        # ids of items live on the host; a data set on the GPU moves them there by a pinned copy or
        # waits for it itself
        whole = batches.dataset.gather(torch.arange(ITEMS))
        batches.dataset.gather = lambda ids: whole[: len(ids)]  # type: ignore[method-assign]
        assert synchronising_calls(learner_of(world), loss, batches) == []
        assert len(synchronising_calls(learner_of(world), impatient_loss, batches)) == STEPS
    finally:
        world.leave()
