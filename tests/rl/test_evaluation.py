"""evaluate_policy: the first episode of each environment, the same on any number of ranks."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from ranks import RunConfig, Stopped, World
from ranks.rl.environments import Transition
from ranks.rl.evaluation import Episodes, evaluate_policy
from ranks.rl.policies.distributions import Categorical
from ranks.rl.pytree import State
from tests.engine.group import run_ranks
from tests.rl.fixtures import Walk, single_rank

N_ENVS = 8
STEPS = [3 + env % 4 for env in range(N_ENVS)]
"""The length of the first episode of each environment."""


class Right(nn.Module):
    """Moves to the right with this probability, and checks that its state belongs to the running
    episode."""

    def __init__(self, share: float) -> None:
        super().__init__()
        self.share = share

    def start_state(self, num_rows: int) -> State:
        return {"n": torch.zeros(num_rows, 1)}

    def act(self, obs: Tensor, state: State) -> tuple[Categorical, Tensor, State]:
        assert torch.equal(state["n"][:, 0], obs[:, 1]), "the state counts the steps of the running episode"
        others = (1 - self.share) / 2
        probability_B3 = torch.tensor([others, others, self.share]).expand(len(obs), 3)
        return Categorical.from_logits(probability_B3.log()), obs[:, 0], {"n": state["n"] + 1}

    def unroll(self, obs: Tensor, state: State, first_TB: Tensor | None) -> tuple[Categorical, Tensor]:
        raise NotImplementedError


def evaluate(share: float, deterministic: bool, seed: int = 0, num: int = N_ENVS, max_steps: int = 100) -> Episodes:
    with single_rank(seed=seed) as world:
        return evaluate_policy(Right(share), Walk, num, world, max_steps=max_steps, deterministic=deterministic)


def test_only_the_first_episode_of_an_environment_counts() -> None:
    """Always to the right, an episode of n steps has the reward 1 + 2 + ... + n."""
    found = evaluate(0.4, deterministic=True)
    assert found.reward_N.tolist() == [n * (n + 1) / 2 for n in STEPS]
    assert found.length_N.tolist() == STEPS
    assert not found.unfinished_N.any()
    assert found.means() == {"episode_reward": 13.0, "episode_length": 4.5, "unfinished_fraction": 0.0}


def test_sampled_actions_are_a_function_of_seed_and_environment_id() -> None:
    sampled = evaluate(0.4, deterministic=False)
    rewards = sampled.reward_N.tolist()
    assert sampled.length_N.tolist() == STEPS
    assert rewards != evaluate(0.4, deterministic=True).reward_N.tolist()
    assert evaluate(0.4, deterministic=False).reward_N.tolist() == rewards
    assert evaluate(0.4, deterministic=False, seed=1).reward_N.tolist() != rewards
    assert evaluate(0.4, deterministic=False, num=16).reward_N.tolist()[:N_ENVS] == rewards
    assert torch.equal(evaluate(1.0, deterministic=False).reward_N, evaluate(1.0, deterministic=True).reward_N)


@pytest.mark.parametrize("max_steps", [1, 4])
def test_episodes_longer_than_max_steps_are_stopped_and_reported(max_steps: int) -> None:
    found, steps = evaluate(0.4, deterministic=True, max_steps=max_steps), [min(n, max_steps) for n in STEPS]
    assert found.reward_N.tolist() == [n * (n + 1) / 2 for n in steps]
    assert found.length_N.tolist() == steps
    assert found.unfinished_N.tolist() == [n > max_steps for n in STEPS]
    assert found.means()["unfinished_fraction"] == {1: 1.0, 4: 0.5}[max_steps]


def rows_of(world: World, num: int) -> list[list[float]]:
    found = evaluate_policy(Right(0.4), Walk, num, world, max_steps=5, deterministic=False)
    assert world.session.times.seconds["evaluation"] > 0
    return [found.reward_N.tolist(), found.length_N.tolist(), found.unfinished_N.tolist()]


@pytest.mark.parametrize("num", [8, 2], ids=["some each", "a rank without"])
@pytest.mark.parametrize("exact", [False, True], ids=["fast", "exact"])
def test_all_ranks_get_all_episodes_bit_for_bit(exact: bool, num: int, tmp_path: Path) -> None:
    config = RunConfig(shards=6, exact=exact)
    (one,) = run_ranks(1, rows_of, num, config=config, tmp_path=tmp_path)
    assert one[1] == [3, 4, 5, 5, 3, 4, 5, 5][:num]
    for size in (2, 3):
        assert run_ranks(size, rows_of, num, config=config, tmp_path=tmp_path) == [one] * size


class Endless(Walk):
    """No episode ends; rank 1 receives a signal in the third step."""

    def __init__(self, ids: range, world: World) -> None:
        super().__init__(ids)
        self.world, self.steps, self.closed = world, 0, False

    def step(self, action_B: Tensor) -> Transition:
        self.steps += 1
        if self.steps == 3 and self.world.rank == 1:
            self.world.stop.received = 15
        transition = super().step(action_B)
        return replace(transition, ended_B=torch.zeros_like(transition.ended_B))

    def close(self) -> None:
        self.closed = True


def stopped_after(world: World, groups: int) -> int:
    """The number of steps before the stop."""
    made: list[Endless] = []

    def make(ids: range) -> Endless:
        made.append(Endless(ids, world))
        return made[-1]

    world.session.long_iterations = True
    with pytest.raises(Stopped):
        evaluate_policy(Random(), make, 8, world, max_steps=1_000_000)
    assert len(made) == groups
    assert all(group.closed for group in made)
    (steps,) = {group.steps for group in made}
    return steps


class Random(Right):
    """Uniform actions, without a recurrent state."""

    def __init__(self) -> None:
        super().__init__(0.4)

    def start_state(self, num_rows: int) -> State:
        return {}

    def act(self, obs: Tensor, state: State) -> tuple[Categorical, Tensor, State]:
        return Categorical.from_logits(torch.zeros(len(obs), 3)), obs[:, 0], {}


def test_a_stop_ends_an_evaluation_and_closes_the_environments(tmp_path: Path) -> None:
    """The ranks poll after the first step, then after 8 more at the latest."""
    first, second = run_ranks(2, stopped_after, 1, config=RunConfig(shards=4), tmp_path=tmp_path)
    assert first == second <= 1 + 8
