"""Tests that this PPO lacks the defects of a published distributed recurrent PPO.

There the forward pass bypassed the DDP wrapper, so gradients were never summed over ranks. Each
rank gathered the whole buffer and made the same update. Features were detached, so the LSTM learned
nothing from PPO. There were no minibatches, and the logs showed the best values instead of the
means.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path

import pytest

from ranks import Learner, OptimConfig, RunConfig, World
from ranks.rl import ppo
from ranks.rl.config import PPOConfig
from ranks.rl.environments import EnvironmentIds
from tests.engine.group import run_ranks
from tests.rl.fixtures import RecordingLoss, single_rank, small_policy, synthetic_rollout

CFG = PPOConfig(epochs=2, minibatches=3, normalize_advantage="none")
N_ENVS = 12


@dataclass(frozen=True)
class Learned:
    weights: list[float]
    environments: list[list[int]]
    """Ids in each update on this rank."""
    metrics: dict[str, float]
    losses: list[float]


def learn(world: World, isolated: bool) -> Learned:
    """Make all updates from one rollout. `isolated`: without the gradients of the other ranks."""
    ids = EnvironmentIds(N_ENVS, CFG.minibatches, world)
    rollout, record = synthetic_rollout(ids, 6), RecordingLoss(CFG)
    learner = Learner(small_policy(), OptimConfig(lr=1e-2, clip_norm=None, schedule="constant"), world)
    if isolated:
        learner.reduction.launch = learner.reduction.wait = lambda: None  # type: ignore[method-assign]
    metrics = ppo.update(learner, record, rollout, ids, CFG, iteration=0)
    weights = [number for p in learner.model.parameters() for number in p.flatten().tolist()]
    return Learned(weights, [[env for env, _ in call] for call in record.calls], metrics, record.losses)


@pytest.fixture
def on_ranks(tmp_path: Path) -> partial[list[Learned]]:
    return partial(run_ranks, config=RunConfig(shards=4, precision="fp64"), tmp_path=tmp_path)


def test_gradients_are_summed_over_ranks(on_ranks: partial[list[Learned]]) -> None:
    first, second = on_ranks(2, learn, False)
    (one,) = on_ranks(1, learn, False)
    assert first.weights == second.weights
    assert first.weights == pytest.approx(one.weights, rel=0, abs=1e-10)
    apart, other = on_ranks(2, learn, True)
    assert apart.weights != pytest.approx(other.weights, rel=0, abs=1e-4), "the ranks have different rollouts"
    assert apart.weights != pytest.approx(one.weights, rel=0, abs=1e-4)


def test_each_rank_updates_from_its_own_environments_only(on_ranks: partial[list[Learned]]) -> None:
    for size in (1, 2):
        ranks = on_ranks(size, learn, False)
        for rank in ranks:
            assert len(list(chain(*rank.environments))) == CFG.epochs * N_ENVS // size
        for update in range(CFG.epochs * CFG.minibatches):
            together = [env for rank in ranks for env in rank.environments[update]]
            assert len(together) == len(set(together)) == N_ENVS // CFG.minibatches


def test_the_policy_gradient_reaches_the_lstm_and_its_inputs() -> None:
    """Only the policy loss has a gradient: the coefficients of value loss and entropy are 0."""
    with single_rank() as world:
        policy = small_policy()
        part = synthetic_rollout(EnvironmentIds(6, 2, world), 8)
        loss = ppo.ppo_loss(policy, part, cfg=PPOConfig(vf_coef=0.0, ent_coef=0.0))
    loss.sum.backward()
    assert policy.lstm is not None
    parameters = [*policy.lstm.parameters(), *policy.actor.parameters(), *policy.action_head.parameters()]
    for parameter in parameters:
        assert parameter.grad is not None
        assert parameter.grad.abs().max() > 0
    assert policy.value_head.weight.grad is not None
    assert not policy.value_head.weight.grad.any()


def test_updates_use_minibatches_and_the_log_has_their_mean(on_ranks: partial[list[Learned]]) -> None:
    (one,) = on_ranks(1, learn, False)
    assert one.metrics["num_updates"] == len(one.environments) == CFG.epochs * CFG.minibatches
    assert all(len(update) == N_ENVS // CFG.minibatches for update in one.environments)
    for epoch in (one.environments[: CFG.minibatches], one.environments[CFG.minibatches :]):
        assert sorted(chain(*epoch)) == list(range(N_ENVS))
    assert one.metrics["loss"] == pytest.approx(sum(one.losses) / len(one.losses))
    assert min(one.losses) < one.metrics["loss"] < max(one.losses)
