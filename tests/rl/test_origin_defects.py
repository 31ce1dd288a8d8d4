"""The defects of a published distributed recurrent PPO, each as a test that this one has not got it.

Its forward pass went around the wrapper, so gradients were never summed over ranks; each rank gathered the whole
buffer and made the same update; features came detached out of the buffer, so the LSTM learned nothing from PPO; there
were no minibatches, and the logs showed the best values instead of the mean.
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
from tests.rl.known import Recorder, alone, sham_rollout, walker

CFG = PPOConfig(epochs=2, minibatches=3, normalize_advantage="none")
ENVIRONMENTS = 12


@dataclass(frozen=True)
class Learned:
    weights: list[float]
    environments: list[list[int]]
    """Of each update on this rank."""
    said: dict[str, float]
    losses: list[float]


def learn(world: World, alone: bool) -> Learned:
    """All updates from one rollout; `alone`: as if the other ranks' environments did not exist."""
    ids = EnvironmentIds(ENVIRONMENTS, CFG.minibatches, world)
    rollout, record = sham_rollout(ids, 6), Recorder(CFG)
    learner = Learner(walker(), OptimConfig(lr=1e-2, clip_norm=None, schedule="constant"), world)
    if alone:
        learner.reduction.launch = learner.reduction.wait = lambda: None  # type: ignore[method-assign]
    said = ppo.update(learner, record, rollout, ids, CFG, iteration=0)
    weights = [number for p in learner.model.parameters() for number in p.flatten().tolist()]
    return Learned(weights, [[env for env, _ in call] for call in record.calls], said, record.losses)


@pytest.fixture
def on_ranks(tmp_path: Path) -> partial[list[Learned]]:
    return partial(run_ranks, config=RunConfig(shards=4, precision="fp64"), tmp_path=tmp_path)


def test_gradients_are_summed_over_ranks(on_ranks: partial[list[Learned]]) -> None:
    first, second = on_ranks(2, learn, False)
    (one,) = on_ranks(1, learn, False)
    assert first.weights == second.weights
    assert first.weights == pytest.approx(one.weights, rel=0, abs=1e-10)
    apart, other = on_ranks(2, learn, True)
    assert apart.weights != pytest.approx(other.weights, rel=0, abs=1e-4), "the ranks' experience differs"
    assert apart.weights != pytest.approx(one.weights, rel=0, abs=1e-4)


def test_each_rank_computes_only_its_share(on_ranks: partial[list[Learned]]) -> None:
    for size in (1, 2):
        ranks = on_ranks(size, learn, False)
        for rank in ranks:
            assert len(list(chain(*rank.environments))) == CFG.epochs * ENVIRONMENTS // size
        for update in range(CFG.epochs * CFG.minibatches):
            together = [env for rank in ranks for env in rank.environments[update]]
            assert len(together) == len(set(together)) == ENVIRONMENTS // CFG.minibatches


def test_the_lstm_and_what_feeds_it_learn_from_the_policy_gradient() -> None:
    """Of the surrogate alone: the value's and the entropy's gradients have no weight."""
    with alone() as world:
        policy = walker()
        part = sham_rollout(EnvironmentIds(6, 2, world), 8)
        loss = ppo.ppo_loss(policy, part, cfg=PPOConfig(vf_coef=0.0, ent_coef=0.0))
    loss.sum.backward()
    assert policy.lstm is not None
    fed = [*policy.lstm.parameters(), *policy.actor.parameters(), *policy.action_head.parameters()]
    for parameter in fed:
        assert parameter.grad is not None
        assert parameter.grad.abs().max() > 0
    assert policy.value_head.weight.grad is not None
    assert not policy.value_head.weight.grad.any()


def test_there_are_minibatches_and_the_log_shows_their_mean(on_ranks: partial[list[Learned]]) -> None:
    (one,) = on_ranks(1, learn, False)
    assert one.said["num_updates"] == len(one.environments) == CFG.epochs * CFG.minibatches
    assert all(len(update) == ENVIRONMENTS // CFG.minibatches for update in one.environments)
    for epoch in (one.environments[: CFG.minibatches], one.environments[CFG.minibatches :]):
        assert sorted(chain(*epoch)) == list(range(ENVIRONMENTS))
    assert one.said["loss"] == pytest.approx(sum(one.losses) / len(one.losses))
    assert min(one.losses) < one.said["loss"] < max(one.losses)
