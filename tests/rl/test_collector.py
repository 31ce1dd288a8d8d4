"""Acting: what belongs to an environment and to nobody else, across iterations, ranks and checkpoints."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from ranks import RunConfig, UserError, World
from ranks.errors import Stopped
from ranks.rl.collector import Collector
from ranks.rl.config import PPOConfig
from ranks.rl.environments import MakeEnvironment, Transition
from ranks.rl.policy import Policy
from tests.engine.group import run_ranks
from tests.rl.known import Clock, Walk, acts, alone, joined, walker

CFG = PPOConfig(minibatches=2, discount=0.9, gae_lambda=0.5)


def collector_of(
    world: World, environments: int = 8, horizon: int = 9, cfg: PPOConfig = CFG, make: MakeEnvironment = Walk
) -> Collector:
    return Collector(Clock(), make, environments, horizon, cfg, world)


# One iteration --------------------------------------------------------------------------------------------------------


def test_a_cut_episode_is_bootstrapped_with_what_it_showed_last_and_a_finished_one_is_not() -> None:
    """The clock's value tells which observation and state it saw: place + 100 x steps so far."""
    with alone() as world:
        rollout = collector_of(world).collect(Clock(), 0)
    assert isinstance(rollout.obs, Tensor)
    place_TB, step_TB, episode_TB = rollout.obs.unbind(-1)
    assert torch.equal(rollout.value_TB, 100 * step_TB + place_TB)
    assert rollout.first_TB is not None
    assert torch.equal(rollout.first_TB, step_TB == 0), "the state is zero where an episode begins"
    goes_on_TB = rollout.discount_TB > 0
    led_to_TB = 100 * (step_TB + 1) + rollout.reward_TB
    assert torch.equal(rollout.next_value_TB[goes_on_TB], led_to_TB[goes_on_TB]), "seen with the state of its episode"
    turn_TB = rollout.env_B + episode_TB
    assert torch.equal(rollout.ended_TB, step_TB + 1 == 3 + turn_TB % 4)
    assert torch.equal(rollout.discount_TB, 1 - (rollout.ended_TB & (turn_TB % 2 == 0)).float())
    assert (rollout.ended_TB & goes_on_TB).sum() > 5 < (~goes_on_TB).sum()
    assert torch.equal(rollout.return_TB, rollout.advantage_TB + rollout.value_TB)
    cut_TB = rollout.ended_TB & goes_on_TB
    error_TB = rollout.reward_TB + 0.9 * led_to_TB - rollout.value_TB
    torch.testing.assert_close(rollout.advantage_TB[cut_TB], error_TB[cut_TB])
    nothing_TB = rollout.reward_TB - rollout.value_TB
    torch.testing.assert_close(rollout.advantage_TB[~goes_on_TB], nothing_TB[~goes_on_TB])


def test_it_acts_in_evaluation_mode_without_gradients_and_leaves_the_policy_as_it_was() -> None:
    with alone() as world:
        policy = walker().train()
        seen: list[bool] = []
        policy.actor.register_forward_hook(lambda module, *_: seen.append(module.training))
        rollout = Collector(policy, Walk, 4, 3, CFG, world).collect(policy, 0)
    assert policy.training
    assert seen == [False] * len(seen)
    assert not any(t.requires_grad for t in (rollout.logp_TB, rollout.value_TB, rollout.return_TB))


def test_draws_belong_to_iteration_and_environment() -> None:
    def actions(environments: int, iteration: int, seed: int = 0) -> Tensor:
        with alone(seed=seed) as world:
            return collector_of(world, environments).collect(Clock(), iteration).action_TB

    assert torch.equal(actions(16, 3)[:, :4], actions(4, 3)), "other environments change nobody's luck"
    assert not torch.equal(actions(4, 3), actions(4, 4))
    assert not torch.equal(actions(4, 3), actions(4, 3, seed=1))
    assert len({tuple(column) for column in actions(16, 3).T.tolist()}) == 16


class Fixed(Walk):
    episode_steps = 6


@pytest.mark.parametrize(("make", "horizon", "whole"), [(Fixed, 3, True), (Fixed, 4, False), (Walk, 3, False)])
def test_whole_sequences_are_known_only_where_episodes_begin_with_rollouts(
    make: MakeEnvironment, horizon: int, whole: bool
) -> None:
    with alone() as world:
        assert (collector_of(world, horizon=horizon, make=make).collect(Clock(), 0).first_TB is None) == whole


@pytest.mark.parametrize("environments", [7, 0])
def test_environments_that_do_not_go_round_are_refused(environments: int) -> None:
    with alone() as world, pytest.raises(UserError, match="do not divide evenly"):
        collector_of(world, environments)


@pytest.mark.parametrize("horizon", [0, -1])
def test_a_rollout_without_a_step_is_refused(horizon: int) -> None:
    with alone() as world, pytest.raises(UserError, match=f"--horizon {horizon}"):
        collector_of(world, horizon=horizon)


class Signalled(Walk):
    """On the last rank a signal comes with the third step."""

    def __init__(self, ids: range, world: World) -> None:
        super().__init__(ids)
        self.world, self.steps = world, 0

    def step(self, action_B: Tensor) -> Transition:
        self.steps += 1
        if self.steps == 3 and self.world.rank == self.world.size - 1:
            self.world.stop.received = 15
        return super().step(action_B)


def stopped_after(world: World) -> set[int]:
    """How many steps each group of this rank made."""
    collector = collector_of(world, 16, 1000, make=partial(Signalled, world=world))
    world.session.long_iterations = True
    with pytest.raises(Stopped):
        collector.collect(Clock(), 0)
    assert len(collector.groups) == (len(world.assignment.shards_of(world.rank)) if world.exact else 1)
    return {group.environment.steps for group in collector.groups if isinstance(group.environment, Signalled)}


@pytest.mark.parametrize("exact", [False, True], ids=["fast", "exact"])
def test_all_ranks_stop_at_the_same_step_long_before_the_end_of_a_rollout(exact: bool, tmp_path: Path) -> None:
    """They look up after the first step, then after 8 more at the latest."""
    ranks = run_ranks(3, stopped_after, config=RunConfig(shards=8, exact=exact), tmp_path=tmp_path)
    (steps,) = set.union(*ranks)
    assert steps <= 1 + 8


def test_a_short_iteration_is_finished_before_a_stop() -> None:
    with alone() as world:
        collector = collector_of(world)
        world.stop.received = 15
        collector.collect(Clock(), 0)


# Several iterations ---------------------------------------------------------------------------------------------------


def test_statistics_are_those_of_the_episodes_that_ended_whole() -> None:
    with alone() as world:
        collector, running = collector_of(world, horizon=4), [[0.0, 0.0] for _ in range(8)]
        for iteration in range(4):
            rollout, ended = collector.collect(Clock(), iteration), []
            for reward_B, ended_B in zip(rollout.reward_TB.tolist(), rollout.ended_TB.tolist(), strict=True):
                for env, (reward, end) in enumerate(zip(reward_B, ended_B, strict=True)):
                    running[env] = [running[env][0] + reward, running[env][1] + 1]
                    if end:
                        ended.append(running[env])
                        running[env] = [0.0, 0.0]
            found = collector.statistics()
            assert found["step_rew_mean"] == pytest.approx(float(rollout.reward_TB.mean()))
            assert found["episodes"] == len(ended) > 0
            assert found["ep_rew_mean"] == pytest.approx(np.mean([reward for reward, _ in ended]))
            assert found["ep_len_mean"] == pytest.approx(np.mean([length for _, length in ended]))


def test_where_no_episode_ended_there_are_no_means() -> None:
    with alone() as world:
        collector = collector_of(world, horizon=1)
        collector.collect(Clock(), 0)
        assert collector.statistics().keys() == {"step_rew_mean", "episodes"}


def test_rewards_are_scaled_by_the_iterations_before_and_statistics_are_not() -> None:
    cfg = PPOConfig(minibatches=2, discount=0.9, scale_rewards=True)
    with alone() as world:
        plain, scaled = collector_of(world), collector_of(world, cfg=cfg)
        running_B, seen = np.zeros(8), np.zeros(0)
        for iteration in range(3):
            raw, found = plain.collect(Clock(), iteration), scaled.collect(Clock(), iteration)
            deviation = seen.std() if len(seen) else 1.0
            np.testing.assert_allclose(found.reward_TB.numpy(), raw.reward_TB.numpy() / deviation, rtol=1e-6)
            assert scaled.statistics() == plain.statistics()
            for reward_B, ended_B in zip(raw.reward_TB.numpy(), raw.ended_TB.numpy(), strict=True):
                running_B = 0.9 * running_B + reward_B
                seen = np.concatenate([seen, running_B])
                running_B = running_B * ~ended_B
        assert not np.isclose(deviation, 1.0)


class Restless(Walk):
    """Before iteration 2, environments 1 and 5 begin anew."""

    def begin_iteration(self, iteration: int, *, exact: bool) -> Tensor | None:
        if iteration != 2:
            return None
        anew_B = (self.id_B == 1) | (self.id_B == 5)
        self.at_B3[anew_B] = 0
        return anew_B


def test_where_an_environment_begins_anew_nothing_of_the_old_episode_is_left() -> None:
    cfg = PPOConfig(minibatches=2, scale_rewards=True)
    with alone() as world:
        walk, restless = (collector_of(world, horizon=1, cfg=cfg, make=make) for make in (Walk, Restless))
        for iteration in range(3):
            others, rollout = walk.collect(Clock(), iteration), restless.collect(Clock(), iteration)
        assert isinstance(rollout.obs, Tensor)
        assert isinstance(others.obs, Tensor)
        for env in (1, 5):
            assert rollout.obs[0, env].tolist() == [0, 0, 0]
            assert (rollout.value_TB[0, env], rollout.start_state["n"][env, 0]) == (0, 0)
            assert rollout.first_TB is not None
            assert rollout.first_TB[0, env]
            (group,) = restless.groups
            assert group.length_B[env] == 1
            assert abs(float(group.return_B[env])) <= 1, "one step of the new episode, and none of the old one"
            discounted = pytest.approx(float(group.return_B[env]), rel=1e-6)
            assert float(group.discounted_B[env]) == discounted, "nor of its rewards, discounted"
            assert float(walk.groups[0].discounted_B[env]) != discounted
        kept = [0, 2, 3, 4, 6, 7]
        assert torch.equal(rollout.obs[:, kept], others.obs[:, kept])
        assert torch.equal(rollout.value_TB[:, kept], others.value_TB[:, kept])


# Ranks and checkpoints ------------------------------------------------------------------------------------------------


def clocks_walk(world: World) -> tuple[Policy, MakeEnvironment]:
    return Clock(), Walk


def nets_walk(world: World) -> tuple[Policy, MakeEnvironment]:
    return walker(), Walk


@pytest.mark.parametrize("mode", ["exact", "fast"])
def test_on_any_deal_and_through_a_checkpoint_it_is_the_same_to_the_last_bit(mode: str, tmp_path: Path) -> None:
    """Under --exact for any policy; in fast mode for one whose arithmetic does not depend on the size of a batch."""
    config = RunConfig(shards=6, exact=mode == "exact")
    cast = nets_walk if config.exact else clocks_walk
    run, path = partial(run_ranks, config=config, tmp_path=tmp_path), str(tmp_path / "checkpoint")
    straight = joined(run(1, acts, cast, path, 0, 2, 4))
    for size in (2, 3):
        assert joined(run(size, acts, cast, path, 0, None, 4)) == straight
    for size in (1, 2, 3):
        resumed = joined(run(size, acts, cast, path, 2, None, 4))
        assert resumed.keys() == straight.keys() - {f"{what} {i}" for what in ("columns", "episodes") for i in (0, 1)}
        assert resumed == {name: straight[name] for name in resumed}
