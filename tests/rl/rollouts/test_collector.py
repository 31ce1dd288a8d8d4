"""The collector: transitions, statistics, scaled rewards; the same on any number of ranks and after
a resume."""

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
from ranks.rl.environments import MakeVecEnv, Transition
from ranks.rl.policies.policy import Policy
from tests.engine.group import run_ranks
from tests.rl.fixtures import StepCounter, Walk, merge_ranks, run_collector, single_rank, small_policy

CFG = PPOConfig(minibatches=2, gamma=0.9, gae_lambda=0.5)


def collector_of(
    world: World, n_envs: int = 8, n_steps: int = 9, cfg: PPOConfig = CFG, make: MakeVecEnv = Walk
) -> Collector:
    return Collector(StepCounter(), make, n_envs, n_steps, cfg, world)


# One iteration --------------------------------------------------------------------------------------------------------


def test_truncated_episodes_are_bootstrapped_and_terminated_ones_are_not() -> None:
    """The value of StepCounter is position + 100 x steps so far, so it identifies the observation
    and the state."""
    with single_rank() as world:
        rollout = collector_of(world).collect(StepCounter(), 0)
    assert isinstance(rollout.obs, Tensor)
    position_TB, step_TB, episode_TB = rollout.obs.unbind(-1)
    assert torch.equal(rollout.value_TB, 100 * step_TB + position_TB)
    assert rollout.first_TB is not None
    assert torch.equal(rollout.first_TB, step_TB == 0), "an episode starts where its step count is 0"
    continues_TB = rollout.discount_TB > 0
    next_TB = 100 * (step_TB + 1) + rollout.reward_TB
    assert torch.equal(rollout.next_value_TB[continues_TB], next_TB[continues_TB]), "with the state of its own episode"
    turn_TB = rollout.env_B + episode_TB
    assert torch.equal(rollout.ended_TB, step_TB + 1 == 3 + turn_TB % 4)
    assert torch.equal(rollout.discount_TB, 1 - (rollout.ended_TB & (turn_TB % 2 == 0)).float())
    assert (rollout.ended_TB & continues_TB).sum() > 5 < (~continues_TB).sum()
    assert torch.equal(rollout.return_TB, rollout.advantage_TB + rollout.value_TB)
    truncated_TB = rollout.ended_TB & continues_TB
    error_TB = rollout.reward_TB + 0.9 * next_TB - rollout.value_TB
    torch.testing.assert_close(rollout.advantage_TB[truncated_TB], error_TB[truncated_TB])
    terminal_TB = rollout.reward_TB - rollout.value_TB
    torch.testing.assert_close(rollout.advantage_TB[~continues_TB], terminal_TB[~continues_TB])


def test_the_plan_has_the_sizes_of_rollouts_and_minibatches() -> None:
    with single_rank() as world:
        plan = Collector(small_policy(), Walk, 4, 3, CFG, world).plan
    sizes = {"n_envs": 4, "envs_per_rank": [4], "n_steps": 3}
    assert plan == sizes | {"epochs": CFG.epochs, "minibatches": CFG.minibatches}


def test_collect_runs_in_eval_mode_without_gradients_and_restores_the_mode() -> None:
    with single_rank() as world:
        policy = small_policy().train()
        modes: list[bool] = []
        policy.actor.register_forward_hook(lambda module, *_: modes.append(module.training))
        rollout = Collector(policy, Walk, 4, 3, CFG, world).collect(policy, 0)
    assert policy.training
    assert modes == [False] * len(modes)
    assert not any(t.requires_grad for t in (rollout.logp_TB, rollout.value_TB, rollout.return_TB))


def test_actions_are_a_function_of_seed_iteration_and_environment_id() -> None:
    def actions(n_envs: int, iteration: int, seed: int = 0) -> Tensor:
        with single_rank(seed=seed) as world:
            return collector_of(world, n_envs).collect(StepCounter(), iteration).action_TB

    assert torch.equal(actions(16, 3)[:, :4], actions(4, 3)), "other environments change nothing"
    assert not torch.equal(actions(4, 3), actions(4, 4))
    assert not torch.equal(actions(4, 3), actions(4, 3, seed=1))
    assert len({tuple(column) for column in actions(16, 3).T.tolist()}) == 16


class Fixed(Walk):
    episode_steps = 6


@pytest.mark.parametrize(("make", "n_steps", "is_none"), [(Fixed, 3, True), (Fixed, 4, False), (Walk, 3, False)])
def test_first_TB_is_none_only_where_episodes_start_with_rollouts(
    make: MakeVecEnv, n_steps: int, is_none: bool
) -> None:
    with single_rank() as world:
        assert (collector_of(world, n_steps=n_steps, make=make).collect(StepCounter(), 0).first_TB is None) == is_none


@pytest.mark.parametrize("n_envs", [7, 0])
def test_a_number_of_environments_that_does_not_divide_is_rejected(n_envs: int) -> None:
    with single_rank() as world, pytest.raises(UserError, match="do not divide evenly"):
        collector_of(world, n_envs)


@pytest.mark.parametrize("n_steps", [0, -1])
def test_a_rollout_without_steps_is_rejected(n_steps: int) -> None:
    with single_rank() as world, pytest.raises(UserError, match=f"--n-steps {n_steps}"):
        collector_of(world, n_steps=n_steps)


def test_minibatches_cannot_cut_time_where_the_policy_needs_sequences() -> None:
    with single_rank() as world:
        with pytest.raises(UserError, match="recurrent state, which needs whole sequences"):
            Collector(StepCounter(), Walk, 4, 3, CFG, world, cut_time=True)
        each = PPOConfig(minibatches=2, normalize_advantage="minibatch")
        with pytest.raises(UserError, match="normalize-advantage minibatch"):
            Collector(small_policy(lstm_hidden=0), Walk, 4, 3, each, world, cut_time=True)
        assert Collector(small_policy(lstm_hidden=0), Walk, 4, 3, CFG, world, cut_time=True).ids.cut_time


class Signalled(Walk):
    """The last rank receives a signal in the third step."""

    def __init__(self, ids: range, world: World) -> None:
        super().__init__(ids)
        self.world, self.steps = world, 0

    def step(self, action_B: Tensor) -> Transition:
        self.steps += 1
        if self.steps == 3 and self.world.rank == self.world.size - 1:
            self.world.stop.received = 15
        return super().step(action_B)


def stopped_after(world: World) -> set[int]:
    """The number of steps that each group of this rank made before the stop."""
    collector = collector_of(world, 16, 1000, make=partial(Signalled, world=world))
    world.session.long_iterations = True
    with pytest.raises(Stopped):
        collector.collect(StepCounter(), 0)
    assert len(collector.groups) == (len(world.assignment.shards_of(world.rank)) if world.exact else 1)
    return {group.environment.steps for group in collector.groups if isinstance(group.environment, Signalled)}


@pytest.mark.parametrize("exact", [False, True], ids=["fast", "exact"])
def test_all_ranks_stop_at_the_same_step_inside_a_rollout(exact: bool, tmp_path: Path) -> None:
    """The ranks poll after the first step, then after 8 more at the latest."""
    ranks = run_ranks(3, stopped_after, config=RunConfig(shards=8, exact=exact), tmp_path=tmp_path)
    (steps,) = set.union(*ranks)
    assert steps <= 1 + 8


def test_an_iteration_that_is_not_interruptible_is_finished_before_a_stop() -> None:
    with single_rank() as world:
        collector = collector_of(world)
        world.stop.received = 15
        collector.collect(StepCounter(), 0)


# Several iterations ---------------------------------------------------------------------------------------------------


def test_statistics_are_means_over_whole_episodes() -> None:
    with single_rank() as world:
        collector, running = collector_of(world, n_steps=4), [[0.0, 0.0] for _ in range(8)]
        for iteration in range(4):
            rollout, ended = collector.collect(StepCounter(), iteration), []
            for reward_B, ended_B in zip(rollout.reward_TB.tolist(), rollout.ended_TB.tolist(), strict=True):
                for env, (reward, end) in enumerate(zip(reward_B, ended_B, strict=True)):
                    running[env] = [running[env][0] + reward, running[env][1] + 1]
                    if end:
                        ended.append(running[env])
                        running[env] = [0.0, 0.0]
            found = collector.statistics()
            assert found["step_reward"] == pytest.approx(float(rollout.reward_TB.mean()))
            assert found["episodes"] == len(ended) > 0
            assert found["episode_reward"] == pytest.approx(np.mean([reward for reward, _ in ended]))
            assert found["episode_length"] == pytest.approx(np.mean([length for _, length in ended]))


def test_without_an_ended_episode_there_are_no_episode_means() -> None:
    with single_rank() as world:
        collector = collector_of(world, n_steps=1)
        collector.collect(StepCounter(), 0)
        assert collector.statistics().keys() == {"step_reward", "episodes"}


def test_rewards_are_scaled_by_earlier_iterations_and_statistics_are_unscaled() -> None:
    cfg = PPOConfig(minibatches=2, gamma=0.9, scale_rewards=True)
    with single_rank() as world:
        plain, scaled = collector_of(world), collector_of(world, cfg=cfg)
        running_B, returns = np.zeros(8), np.zeros(0)
        for iteration in range(3):
            raw, found = plain.collect(StepCounter(), iteration), scaled.collect(StepCounter(), iteration)
            std = returns.std() if len(returns) else 1.0
            np.testing.assert_allclose(found.reward_TB.numpy(), raw.reward_TB.numpy() / std, rtol=1e-6)
            assert scaled.statistics() == plain.statistics()
            for reward_B, ended_B in zip(raw.reward_TB.numpy(), raw.ended_TB.numpy(), strict=True):
                running_B = 0.9 * running_B + reward_B
                returns = np.concatenate([returns, running_B])
                running_B = running_B * ~ended_B
        assert not np.isclose(std, 1.0)


def test_observations_are_normalised_with_the_statistics_of_earlier_iterations() -> None:
    with single_rank() as world:
        policy, observed = small_policy(), list[np.ndarray]()
        collector = Collector(policy, Walk, 8, 9, CFG, world)
        assert collector.observations is not None
        for iteration in range(3):
            rollout = collector.collect(policy, iteration)
            rows = np.concatenate(observed) if observed else np.array([[0.0] * 3, [2.0] * 3]) - 1
            np.testing.assert_allclose(policy.normaliser.mean_F.numpy(), rows.mean(0), rtol=1e-5, atol=1e-6)
            np.testing.assert_allclose(policy.normaliser.std_F.numpy(), rows.std(0), rtol=1e-5)
            assert isinstance(rollout.obs, Tensor)
            observed.append(rollout.obs.numpy().reshape(-1, 3))
            assert collector.observations.count == sum(map(len, observed))
        resumed = Collector(small_policy(), Walk, 8, 9, CFG, world)
        resumed.load_state_dict(collector.state_dict())
        assert resumed.observations is not None
        assert torch.equal(resumed.observations.std_F, collector.observations.std_F)


def test_a_policy_without_normaliser_has_no_observation_statistics() -> None:
    with single_rank() as world:
        collector = collector_of(world)
        assert collector.state_dict().keys() == {"environments", "rewards"}
        assert collector.env_steps == 8 * 9


class Restarts(Walk):
    """Environments 1 and 5 start new episodes before iteration 2."""

    def begin_iteration(self, iteration: int, *, exact: bool) -> Tensor | None:
        if iteration != 2:
            return None
        restarted_B = (self.id_B == 1) | (self.id_B == 5)
        self.at_B3[restarted_B] = 0
        return restarted_B


def test_a_restarted_episode_resets_all_running_values() -> None:
    cfg = PPOConfig(minibatches=2, scale_rewards=True)
    with single_rank() as world:
        walk, restarts = (collector_of(world, n_steps=1, cfg=cfg, make=make) for make in (Walk, Restarts))
        for iteration in range(3):
            others, rollout = walk.collect(StepCounter(), iteration), restarts.collect(StepCounter(), iteration)
        assert isinstance(rollout.obs, Tensor)
        assert isinstance(others.obs, Tensor)
        for env in (1, 5):
            assert rollout.obs[0, env].tolist() == [0, 0, 0]
            assert (rollout.value_TB[0, env], rollout.start_state["n"][env, 0]) == (0, 0)
            assert rollout.first_TB is not None
            assert rollout.first_TB[0, env]
            (group,) = restarts.groups
            assert group.length_B[env] == 1
            assert abs(float(group.return_B[env])) <= 1, "the new episode has one step"
            discounted = pytest.approx(float(group.return_B[env]), rel=1e-6)
            assert float(group.discounted_B[env]) == discounted, "no discounted rewards of the old episode"
            assert float(walk.groups[0].discounted_B[env]) != discounted
        kept = [0, 2, 3, 4, 6, 7]
        assert torch.equal(rollout.obs[:, kept], others.obs[:, kept])
        assert torch.equal(rollout.value_TB[:, kept], others.value_TB[:, kept])


# Ranks and checkpoints ------------------------------------------------------------------------------------------------


def counting_policy(world: World) -> tuple[Policy, MakeVecEnv]:
    return StepCounter(), Walk


def network(world: World) -> tuple[Policy, MakeVecEnv]:
    return small_policy(), Walk


@pytest.mark.parametrize("mode", ["exact", "fast"])
def test_rollouts_are_bit_identical_on_any_number_of_ranks_and_after_a_resume(mode: str, tmp_path: Path) -> None:
    """With --exact for any policy; in fast mode for a policy whose arithmetic does not depend on
    the batch size."""
    config = RunConfig(shards=6, exact=mode == "exact")
    scenario = network if config.exact else counting_policy
    run, path = partial(run_ranks, config=config, tmp_path=tmp_path), str(tmp_path / "checkpoint")
    uninterrupted = merge_ranks(run(1, run_collector, scenario, path, 0, 2, 4))
    for size in (2, 3):
        assert merge_ranks(run(size, run_collector, scenario, path, 0, None, 4)) == uninterrupted
    for size in (1, 2, 3):
        resumed = merge_ranks(run(size, run_collector, scenario, path, 2, None, 4))
        assert resumed.keys() == uninterrupted.keys() - {
            f"{what} {i}" for what in ("columns", "episodes") for i in (0, 1)
        }
        assert resumed == {name: uninterrupted[name] for name in resumed}
