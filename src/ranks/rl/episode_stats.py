"""Sums of rewards and episode lengths over one rollout, for the metrics `rollout/...`.

Legend: B environments, E all environments of all ranks.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass
class EpisodeStats:
    """Sums over the steps of one rollout, float64[B] each.

    Rewards are as the environment gave them, unscaled.
    """

    steps_B: Tensor
    """Environment steps, without steps that only reset."""
    reward_B: Tensor
    """The sum of their rewards."""
    episodes_B: Tensor
    """Episodes that ended in the rollout."""
    episode_reward_B: Tensor
    """The sum of the rewards of these episodes, also of their steps in earlier rollouts."""
    episode_length_B: Tensor
    """The sum of their steps."""

    @classmethod
    def zeros(cls, num: int, device: torch.device) -> EpisodeStats:
        """Sums of nothing."""
        return cls(*(torch.zeros(num, dtype=torch.float64, device=device) for _ in range(5)))

    def add(self, one_B: Tensor, reward_B: Tensor, ended_B: Tensor, return_B: Tensor, length_B: Tensor) -> None:
        """Add one step, and the episodes that ended with it; float64[B] each.

        `one_B`, `ended_B`: 0 or 1. `return_B`, `length_B`: of the running episode, this step
        included.
        """
        self.steps_B = self.steps_B + one_B
        self.reward_B = self.reward_B + reward_B
        self.episodes_B = self.episodes_B + ended_B
        self.episode_reward_B = self.episode_reward_B + ended_B * return_B
        self.episode_length_B = self.episode_length_B + ended_B * length_B

    def columns(self) -> Tensor:
        """The five sums as float64[B, 5], in the order of the fields."""
        sums = [self.steps_B, self.reward_B, self.episodes_B, self.episode_reward_B, self.episode_length_B]
        return torch.stack(sums, 1)


def metrics_of(columns_E5: Tensor) -> dict[str, float]:
    """The metrics of a rollout, from the columns of all environments in the order of ids.

    `step_reward`: mean reward of a step. `episodes`: how many ended. `episode_reward`,
    `episode_length`: their mean reward and length, left out where none ended (rollout/ep_rew_mean
    and ep_len_mean of Stable-Baselines3).
    """
    steps, reward, episodes, episode_reward, episode_length = columns_E5.sum(0).tolist()
    metrics = {"step_reward": reward / max(steps, 1.0), "episodes": episodes}
    if episodes:
        metrics |= {"episode_reward": episode_reward / episodes, "episode_length": episode_length / episodes}
    return metrics
