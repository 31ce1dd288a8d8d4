"""Whole episodes to judge a policy by: the first one of each environment, and nothing after it."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from ranks.experience.distributions import Categorical
from ranks.experience.play import play_episodes
from ranks.experience.trees import State
from tests.experience.known import Walk

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


def play(share: float, greedy: bool, seed: int = 0, num: int = ENVIRONMENTS, max_steps: int = 100) -> list[list[float]]:
    ids_B = torch.arange(num)
    found = play_episodes(Right(share), Walk(range(num)), ids_B, seed=seed, greedy=greedy, max_steps=max_steps)
    assert all(numbers.dtype == torch.float64 for numbers in found)
    return [numbers.tolist() for numbers in found]


def test_only_the_first_episode_counts() -> None:
    """Always to the right, an episode of n steps brings 1 + 2 + ... + n; the shortest have begun others by the end."""
    assert play(0.4, greedy=True) == [[n * (n + 1) / 2 for n in STEPS], STEPS]


def test_drawn_actions_belong_to_seed_and_environment() -> None:
    rewards, steps = play(0.4, greedy=False)
    assert steps == STEPS
    assert rewards != play(0.4, greedy=True)[0]
    assert play(0.4, greedy=False)[0] == rewards
    assert play(0.4, greedy=False, seed=1)[0] != rewards
    assert play(0.4, greedy=False, num=16)[0][:ENVIRONMENTS] == rewards
    assert play(1.0, greedy=False) == play(1.0, greedy=True)


@pytest.mark.parametrize("max_steps", [1, 4])
def test_episodes_that_last_too_long_are_cut_off(max_steps: int) -> None:
    steps = [min(n, max_steps) for n in STEPS]
    assert play(0.4, greedy=True, max_steps=max_steps) == [[n * (n + 1) / 2 for n in steps], steps]
