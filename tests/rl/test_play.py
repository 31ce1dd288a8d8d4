"""Whole episodes to judge a policy by: the first one of each environment, and nothing after it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from ranks import RunConfig, Stopped, World
from ranks.rl.environments import Transition
from ranks.rl.evaluate_policy import Episodes, play_episodes
from ranks.rl.policies.distributions import Categorical
from ranks.rl.pytree import State
from tests.engine.group import run_ranks
from tests.rl.known import Walk, alone

ENVIRONMENTS = 8
STEPS = [3 + env % 4 for env in range(ENVIRONMENTS)]
"""Of the first episode of each."""


class Right(nn.Module):
    """Goes to the right with this probability, and checks that its state is that of the running episode."""

    def __init__(self, share: float) -> None:
        super().__init__()
        self.share = share

    def start_state(self, num_rows: int) -> State:
        return {"n": torch.zeros(num_rows, 1)}

    def act(self, obs: Tensor, state: State) -> tuple[Categorical, Tensor, State]:
        assert torch.equal(state["n"][:, 0], obs[:, 1]), "the state counts the steps of the running episode"
        others = (1 - self.share) / 2
        probability_B3 = torch.tensor([others, others, self.share]).expand(len(obs), 3)
        return Categorical.of(probability_B3.log()), obs[:, 0], {"n": state["n"] + 1}


def play(share: float, greedy: bool, seed: int = 0, num: int = ENVIRONMENTS, max_steps: int = 100) -> Episodes:
    with alone(seed=seed) as world:
        return play_episodes(Right(share), Walk, num, world, max_steps=max_steps, greedy=greedy)


def test_only_the_first_episode_counts() -> None:
    """Always to the right, an episode of n steps brings 1 + 2 + ... + n; the shortest have begun others by the end."""
    found = play(0.4, greedy=True)
    assert found.reward_N.tolist() == [n * (n + 1) / 2 for n in STEPS]
    assert found.steps_N.tolist() == STEPS
    assert not found.cut_off_N.any()
    assert found.means() == {"ep_rew_mean": 13.0, "ep_len_mean": 4.5, "cut_off_share": 0.0}


def test_drawn_actions_belong_to_seed_and_environment() -> None:
    drawn = play(0.4, greedy=False)
    rewards = drawn.reward_N.tolist()
    assert drawn.steps_N.tolist() == STEPS
    assert rewards != play(0.4, greedy=True).reward_N.tolist()
    assert play(0.4, greedy=False).reward_N.tolist() == rewards
    assert play(0.4, greedy=False, seed=1).reward_N.tolist() != rewards
    assert play(0.4, greedy=False, num=16).reward_N.tolist()[:ENVIRONMENTS] == rewards
    assert torch.equal(play(1.0, greedy=False).reward_N, play(1.0, greedy=True).reward_N)


@pytest.mark.parametrize("max_steps", [1, 4])
def test_episodes_that_last_too_long_are_cut_off_and_their_share_is_told(max_steps: int) -> None:
    found, steps = play(0.4, greedy=True, max_steps=max_steps), [min(n, max_steps) for n in STEPS]
    assert found.reward_N.tolist() == [n * (n + 1) / 2 for n in steps]
    assert found.steps_N.tolist() == steps
    assert found.cut_off_N.tolist() == [n > max_steps for n in STEPS]
    assert found.means()["cut_off_share"] == {1: 1.0, 4: 0.5}[max_steps]


def rows_of(world: World, num: int) -> list[list[float]]:
    found = play_episodes(Right(0.4), Walk, num, world, max_steps=5, greedy=False)
    assert world.session.times.seconds["evaluation"] > 0
    return [found.reward_N.tolist(), found.steps_N.tolist(), found.cut_off_N.tolist()]


@pytest.mark.parametrize("num", [8, 2], ids=["some each", "a rank without"])
@pytest.mark.parametrize("exact", [False, True], ids=["fast", "exact"])
def test_all_ranks_know_all_episodes_to_the_last_bit(exact: bool, num: int, tmp_path: Path) -> None:
    config = RunConfig(shards=6, exact=exact)
    (one,) = run_ranks(1, rows_of, num, config=config, tmp_path=tmp_path)
    assert one[1] == [3, 4, 5, 5, 3, 4, 5, 5][:num]
    for size in (2, 3):
        assert run_ranks(size, rows_of, num, config=config, tmp_path=tmp_path) == [one] * size


class Endless(Walk):
    """No episode ends; on rank 1 a signal comes with the third step."""

    def __init__(self, ids: range, world: World) -> None:
        super().__init__(ids)
        self.world, self.steps, self.closed = world, 0, False

    def step(self, action_B: Tensor) -> Transition:
        self.steps += 1
        if self.steps == 3 and self.world.rank == 1:
            self.world.stop.received = 15
        moved = super().step(action_B)
        return replace(moved, ended_B=torch.zeros_like(moved.ended_B))

    def close(self) -> None:
        self.closed = True


def stopped_after(world: World, groups: int) -> int:
    """How many steps were made."""
    made: list[Endless] = []

    def make(ids: range) -> Endless:
        made.append(Endless(ids, world))
        return made[-1]

    world.session.long_iterations = True
    with pytest.raises(Stopped):
        play_episodes(Wanders(), make, 8, world, max_steps=1_000_000)
    assert len(made) == groups
    assert all(group.closed for group in made)
    (steps,) = {group.steps for group in made}
    return steps


class Wanders(Right):
    """Without a state."""

    def __init__(self) -> None:
        super().__init__(0.4)

    def start_state(self, num_rows: int) -> State:
        return {}

    def act(self, obs: Tensor, state: State) -> tuple[Categorical, Tensor, State]:
        return Categorical.of(torch.zeros(len(obs), 3)), obs[:, 0], {}


def test_a_stop_does_not_wait_for_the_end_of_an_episode_and_environments_are_closed(tmp_path: Path) -> None:
    """The ranks look up after the first step, then after 8 more at the latest."""
    first, second = run_ranks(2, stopped_after, 1, config=RunConfig(shards=4), tmp_path=tmp_path)
    assert first == second <= 1 + 8
