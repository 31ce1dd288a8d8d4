"""Whole episodes, to judge a policy by.

Legend: B environments.
"""

from __future__ import annotations

import torch
from torch import Tensor

from ranks.engine import draws
from ranks.experience import trees
from ranks.experience.environments import Environment
from ranks.experience.policy import Policy


def play_episodes(
    policy: Policy, environment: Environment, ids_B: Tensor, *, seed: int, greedy: bool = True, max_steps: int = 100_000
) -> tuple[Tensor, Tensor]:
    """(rewards, steps), float64[B], of the first episode of each environment, which have just begun; the likeliest
    action each time, or with `greedy=False` drawn ones. Episodes that pass `max_steps` are cut off there."""
    state, fresh = policy.start_state(len(ids_B)), policy.start_state(len(ids_B))
    running_B = torch.ones(len(ids_B), dtype=torch.bool, device=ids_B.device)
    reward_B = torch.zeros(len(ids_B), dtype=torch.float64, device=ids_B.device)
    length_B = torch.zeros_like(reward_B)
    for step in range(max_steps):
        distribution, _, state = policy.act(environment.observe(), state)
        if greedy:
            action_B = distribution.mode()
        else:
            action_B = distribution.sample(draws.uniform(draws.key(seed, "play", step), ids_B, distribution.num_draws))
        moved = environment.step(action_B)
        reward_B += moved.reward_B.double() * running_B
        length_B += running_B
        running_B &= ~moved.ended_B
        if not running_B.any():
            break
        state = trees.where(moved.ended_B, fresh, state) if state else state
    return reward_B, length_B
