"""A stop inside a rollout or an evaluation: the iteration is repeated, and the run equals one
without a stop."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
from torch import Tensor

from ranks import Learner, OptimConfig, Run, Stopped, Summary
from ranks.engine.files.jsonl import read_rows
from ranks.rl import ppo
from ranks.rl.collector import Collector
from ranks.rl.config import PPOConfig
from ranks.rl.environments import Transition
from ranks.rl.evaluation import evaluate_policy
from tests.rl.fixtures import Walk, single_rank, small_policy

CFG = PPOConfig(epochs=2, minibatches=2, scale_rewards=True)
ITERATIONS = 3


def train(folder: Path, stop_at: int | None = None) -> Summary:
    """The loop of the template. `stop_at`: the number of the step in which a signal arrives."""

    class Walks(Walk):
        made = 0

        def step(self, action_B: Tensor) -> Transition:
            Walks.made += 1
            if Walks.made == stop_at:
                world.stop.received = 15
            return super().step(action_B)

    with single_rank(name="r", runs_dir=folder, save_every="1h") as world:
        policy, loss = small_policy(), partial(ppo.ppo_loss, cfg=CFG)
        learner = Learner(policy, OptimConfig(lr=1e-2, schedule="constant"), world)
        collector = Collector(policy, Walks, 4, 12, CFG, world)
        with Run.open(CFG, world, keep=dict(learner=learner, collector=collector)) as run:
            for iteration in run.iterations(ITERATIONS, long=True):
                rollout = collector.collect(policy, iteration)
                run.log(ppo.update(learner, loss, rollout, collector.ids, CFG, iteration))
                run.log(evaluate_policy(policy, Walks, 4, world, max_steps=100).means(), prefix="val")
        return run.finish()


@pytest.mark.parametrize(("stop_at", "finished"), [(4, 0), (12 + 3, 0), (12 + 6 + 4, 1), (12 + 6 + 12 + 3, 1)])
def test_a_stopped_iteration_is_repeated_and_the_run_is_unchanged(stop_at: int, finished: int, tmp_path: Path) -> None:
    """Rollouts have 12 steps, evaluations 6; `finished` iterations were complete when the signal
    arrived."""
    uninterrupted = train(tmp_path / "uninterrupted")
    with pytest.raises(Stopped):
        train(tmp_path / "stopped", stop_at)
    rows = read_rows(tmp_path / "stopped" / "r" / "metrics.jsonl")
    assert [row["iteration"] for row in rows] == list(range(1, finished + 1))
    sessions = read_rows(tmp_path / "stopped" / "r" / "sessions.jsonl")
    assert [session["event"] for session in sessions] == ["opened", "stopped"]
    resumed = train(tmp_path / "stopped")
    assert (resumed.fingerprint, resumed.metrics) == (uninterrupted.fingerprint, uninterrupted.metrics)
    rows = read_rows(tmp_path / "stopped" / "r" / "metrics.jsonl")
    assert [row["iteration"] for row in rows] == list(range(1, ITERATIONS + 1))
