"""Advantages and bootstrap values of a rollout, as pure functions.

Legend: T steps, B environments.
"""

from __future__ import annotations

import torch
from torch import Tensor


def gae(
    reward_TB: Tensor, value_TB: Tensor, next_value_TB: Tensor, discount_TB: Tensor, ended_TB: Tensor, gae_lambda: float
) -> Tensor:
    """Generalised advantage estimation, float32 or wider [T, B].

    Schulman et al. 2016, arXiv 1506.02438, eq. 16:

        delta_t = r_t + discount_t V(s_{t+1}) - V(s_t)
        A_t     = delta_t + discount_t lambda A_{t+1}        where the episode continues, else delta_t

    `next_value_TB`: V of the state after step t, also after the last step of an episode, so that a
    truncated episode is bootstrapped. `discount_TB`: gamma, or 0 where step t terminated the
    episode; a truncated step keeps gamma. `ended_TB`: bool, the episode ended with step t,
    terminated or truncated: the sum stops there. Values that are multiplied by a discount of 0 may
    be any number, NaN too. Notation: the discount belongs to the step, as in rlax, and is 0 at a
    termination; the paper has one gamma and episodes of one length.
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
    """[T, B]: the value of the following step; `last_value_B` after the last one.

    Wrong where an episode ended.
    """
    return torch.cat([value_TB[1:], last_value_B[None]])
