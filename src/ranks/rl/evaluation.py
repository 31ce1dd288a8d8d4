"""Evaluation of a policy: the mean reward and length of whole episodes.

Legend: B environments of a group, N episodes of all ranks.
"""

from __future__ import annotations

from contextlib import ExitStack, closing
from dataclasses import dataclass

import torch
from torch import Tensor

from ranks.engine.distributed.poll_interval import PollInterval
from ranks.engine.distributed.world import World
from ranks.engine.sharding import rng
from ranks.engine.update.evaluate import eval_mode
from ranks.rl import pytree
from ranks.rl.environments import MakeVecEnv, VecEnv
from ranks.rl.policies.policy import Policy
from ranks.rl.pytree import State


@dataclass(frozen=True)
class Episodes:
    """The rewards and lengths of N episodes in the order of the ids, the same on every rank."""

    reward_N: Tensor
    """float64: the sum of rewards."""
    length_N: Tensor
    """float64: steps."""
    unfinished_N: Tensor
    """bool: the episode had not ended at `max_steps`; its reward and length are those until
    then."""

    def means(self) -> dict[str, float]:
        """Metrics: `episode_reward`, `episode_length` (means), `unfinished_fraction`."""
        return {
            "episode_reward": float(self.reward_N.mean()),
            "episode_length": float(self.length_N.mean()),
            "unfinished_fraction": float(self.unfinished_N.double().mean()),
        }


def evaluate_policy(
    policy: Policy,
    make_vec_env: MakeVecEnv,
    num_episodes: int,
    world: World,
    *,
    max_steps: int,
    deterministic: bool = True,
) -> Episodes:
    """Run the first episode of each of `num_episodes` environments, distributed over the ranks.

    `deterministic`: take the mode of the action distribution; otherwise sample. `max_steps`: where
    an episode is stopped if it has not ended. The environments are closed afterwards. Every rank
    calls it. Raises Stopped between two steps if a stop was requested.
    """
    ids = [part for _, part in world.shard_items(num_episodes)] if world.exact else [world.items(num_episodes)]
    with world.session.timed("evaluation"), eval_mode(policy, world), ExitStack() as stack:
        groups = [
            EvaluatedGroup.start(policy, stack.enter_context(closing(make_vec_env(part))), part, world)
            for part in ids
            if part
        ]
        poll = PollInterval(world.comm)
        for step in range(max_steps):
            for group in groups:
                if group.is_running:
                    group.step(policy, rng.key(world.seed, "play", step), deterministic=deterministic)
            if poll.due():
                world.check_stop()
                if not world.any(any(group.is_running for group in groups)):
                    break
    rows = [torch.stack([g.reward_B, g.length_B, g.running_B.double()], 1) for g in groups]
    no_rows = torch.zeros(0, 3, dtype=torch.float64, device=world.device)
    of_all_N3 = world.gather_rows(torch.cat([no_rows, *rows]), num_episodes).cpu()
    return Episodes(of_all_N3[:, 0], of_all_N3[:, 1], of_all_N3[:, 2] > 0)


@dataclass
class EvaluatedGroup:
    """A group of environments, and the first episode of each."""

    environment: VecEnv
    env_B: Tensor
    """int64[B]: environment ids, on the device."""
    initial_state: State
    """The recurrent state at the start of an episode."""
    state: State
    running_B: Tensor
    """bool: the first episode has not ended."""
    reward_B: Tensor
    length_B: Tensor
    is_running: bool = True
    """Any first episode has not ended."""

    @classmethod
    def start(cls, policy: Policy, environment: VecEnv, ids: range, world: World) -> EvaluatedGroup:
        """The environments `ids`, which have just been reset."""
        env_B = torch.arange(ids.start, ids.stop, device=world.device)
        initial_state, zero_B = policy.start_state(len(ids)), torch.zeros_like(env_B, dtype=torch.float64)
        running_B = torch.ones_like(env_B, dtype=torch.bool)
        return cls(environment, env_B, initial_state, initial_state, running_B, zero_B, zero_B)

    def step(self, policy: Policy, key: int, *, deterministic: bool) -> None:
        """Step all environments of the group; only the first episodes are counted."""
        distribution, _, state = policy.act(self.environment.observe(), self.state)
        if deterministic:
            action_B = distribution.mode()
        else:
            action_B = distribution.sample(rng.uniform(key, self.env_B, distribution.num_uniforms))
        transition = self.environment.step(action_B)
        self.reward_B = self.reward_B + torch.where(self.running_B, transition.reward_B.double(), 0.0)
        self.length_B = self.length_B + self.running_B
        self.running_B = self.running_B & ~transition.ended_B
        self.is_running = bool(self.running_B.any())
        self.state = pytree.where(transition.ended_B, self.initial_state, state) if state else state
