"""A stop inside a rollout or an evaluation: the iteration is made again, and the run is the one without a stop."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
from torch import Tensor

from ranks import Learner, OptimConfig, Run, Stopped, Summary
from ranks.engine.runs.jsonl import read_rows
from ranks.rl import ppo
from ranks.rl.collector import Collector
from ranks.rl.config import PPOConfig
from ranks.rl.environments import Transition
from ranks.rl.evaluate_policy import play_episodes
from ranks.rl.moments import RunningMoments, freeze
from tests.rl.known import Walk, alone, walker

CFG = PPOConfig(epochs=2, minibatches=2, scale_rewards=True)
ITERATIONS = 3


def train(folder: Path, stop_at: int | None = None) -> Summary:
    """A loop like that of the template. `stop_at`: number of the step with which a signal comes."""

    class Walks(Walk):
        made = 0

        def step(self, action_B: Tensor) -> Transition:
            Walks.made += 1
            if Walks.made == stop_at:
                world.stop.received = 15
            return super().step(action_B)

    with alone(name="r", runs_dir=folder, save_every="1h") as world:
        policy, loss = walker(), partial(ppo.ppo_loss, cfg=CFG)
        learner = Learner(policy, OptimConfig(lr=1e-2, schedule="constant"), world)
        collector, seen = Collector(policy, Walks, 4, 12, CFG, world), RunningMoments(3)
        with Run.open(CFG, world, keep=dict(learner=learner, collector=collector, seen=seen)) as run:
            for iteration in run.iterations(ITERATIONS, long=True):
                freeze(seen, into=policy.encoder.normaliser)
                rollout = collector.collect(policy, iteration)
                run.log(ppo.update(learner, loss, rollout, collector.ids, CFG, iteration))
                assert isinstance(rollout.obs, Tensor)
                seen.update(rollout.obs, collector.ids, rollout.valid_TB)
                run.log(play_episodes(policy, Walks, 4, world, max_steps=100).means(), prefix="val")
        return run.finish()


@pytest.mark.parametrize(("stop_at", "kept"), [(4, 0), (12 + 3, 0), (12 + 6 + 4, 1), (12 + 6 + 12 + 3, 1)])
def test_the_iteration_is_made_again_and_nothing_else(stop_at: int, kept: int, tmp_path: Path) -> None:
    """Rollouts have 12 steps, evaluations 6; `kept` iterations were whole when the signal came."""
    straight = train(tmp_path / "straight")
    with pytest.raises(Stopped):
        train(tmp_path / "stopped", stop_at)
    rows = read_rows(tmp_path / "stopped" / "r" / "metrics.jsonl")
    assert [row["iteration"] for row in rows] == list(range(1, kept + 1))
    sessions = read_rows(tmp_path / "stopped" / "r" / "sessions.jsonl")
    assert [session["event"] for session in sessions] == ["opened", "stopped"]
    resumed = train(tmp_path / "stopped")
    assert (resumed.fingerprint, resumed.metrics) == (straight.fingerprint, straight.metrics)
    rows = read_rows(tmp_path / "stopped" / "r" / "metrics.jsonl")
    assert [row["iteration"] for row in rows] == list(range(1, ITERATIONS + 1))
