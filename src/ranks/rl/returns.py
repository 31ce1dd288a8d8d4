"""What a policy is held against: advantages, as pure functions of a rollout.

Legend: T steps, B environments.
"""

from __future__ import annotations

import torch
from torch import Tensor


def gae(
    reward_TB: Tensor, value_TB: Tensor, next_value_TB: Tensor, discount_TB: Tensor, ended_TB: Tensor, gae_lambda: float
) -> Tensor:
    """Generalised advantage estimation (Schulman et al. 2016, arXiv 1506.02438, eq. 16), float32 or wider [T, B].

        delta_t = r_t + discount_t V(s_{t+1}) - V(s_t)
        A_t     = delta_t + discount_t lambda A_{t+1}        where the episode goes on, else delta_t

    `next_value_TB`: V of the state that step t led to, of the last one of an episode too, so that a truncated episode
    is bootstrapped. `discount_TB`: gamma, or 0 where step t terminated the episode; a truncated step keeps gamma.
    `ended_TB`: bool, the episode ended with step t in either way: the trace is cut. What does not count may be any
    number, NaN too. Our notation differs from the paper's in that the discount belongs to the step and is 0 at a
    termination.
    """
    delta_TB = reward_TB + torch.where(discount_TB == 0, 0.0, discount_TB * next_value_TB) - value_TB
    trace_TB = discount_TB * gae_lambda
    advantage_TB = torch.empty_like(delta_TB)
    running_B = torch.zeros_like(delta_TB[0])
    for t in reversed(range(len(delta_TB))):
        running_B = delta_TB[t] + torch.where(ended_TB[t], 0.0, trace_TB[t] * running_B)
        advantage_TB[t] = running_B
    return advantage_TB


def next_values(value_TB: Tensor, last_value_B: Tensor) -> Tensor:
    """[T, B]: the value of the step after each, where no episode ends in between."""
    return torch.cat([value_TB[1:], last_value_B[None]])
