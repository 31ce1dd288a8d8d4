"""Whole episodes, to judge a policy by.

Legend: B environments of a group, N of all ranks.
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
from ranks.rl.environments import Environment, MakeEnvironment
from ranks.rl.policy import Policy
from ranks.rl.pytree import State


@dataclass(frozen=True)
class Episodes:
    """What N episodes came to, in the order of the environments' ids, on every rank."""

    reward_N: Tensor
    """float64."""
    steps_N: Tensor
    """float64."""
    cut_off_N: Tensor
    """bool: it had not ended when it was cut off, and counts as far as it went."""

    def means(self) -> dict[str, float]:
        """Of rewards and steps, and the share of episodes that were cut off."""
        return {
            "ep_rew_mean": float(self.reward_N.mean()),
            "ep_len_mean": float(self.steps_N.mean()),
            "cut_off_share": float(self.cut_off_N.double().mean()),
        }


def play_episodes(
    policy: Policy, make: MakeEnvironment, num_episodes: int, world: World, *, max_steps: int, greedy: bool = True
) -> Episodes:
    """The first episode of each of `num_episodes` environments, the likeliest action each time, or with `greedy=False`
    drawn ones. Episodes that pass `max_steps` are cut off there. The environments are closed after it.

    Every rank calls it and plays those that it carries. Raises Stopped between two steps where a stop asks for it.
    """
    ids = [part for _, part in world.shard_items(num_episodes)] if world.exact else [world.items(num_episodes)]
    with world.session.timed("evaluation"), eval_mode(policy, world), ExitStack() as opened:
        games = [Game.begin(policy, opened.enter_context(closing(make(part))), part, world) for part in ids if part]
        pace = PollInterval(world.comm)
        for step in range(max_steps):
            for game in games:
                if game.running:
                    game.step(policy, rng.key(world.seed, "play", step), greedy=greedy)
            if pace.due():
                world.check_stop()
                if not world.any(any(game.running for game in games)):
                    break
    rows = [torch.stack([g.reward_B, g.steps_B, g.running_B.double()], 1) for g in games]
    nothing = torch.zeros(0, 3, dtype=torch.float64, device=world.device)
    of_all_N3 = world.gather_rows(torch.cat([nothing, *rows]), num_episodes).cpu()
    return Episodes(of_all_N3[:, 0], of_all_N3[:, 1], of_all_N3[:, 2] > 0)


@dataclass
class Game:
    """A group of environments, in each of which one episode is played."""

    environment: Environment
    env_B: Tensor
    fresh: State
    state: State
    running_B: Tensor
    reward_B: Tensor
    steps_B: Tensor
    running: bool = True

    @classmethod
    def begin(cls, policy: Policy, environment: Environment, ids: range, world: World) -> Game:
        """With environments that have just begun."""
        env_B = torch.arange(ids.start, ids.stop, device=world.device)
        fresh, nothing_B = policy.start_state(len(ids)), torch.zeros_like(env_B, dtype=torch.float64)
        return cls(environment, env_B, fresh, fresh, torch.ones_like(env_B, dtype=torch.bool), nothing_B, nothing_B)

    def step(self, policy: Policy, key: int, *, greedy: bool) -> None:
        """One of all that still run; the others have begun episodes that nobody looks at."""
        distribution, _, state = policy.act(self.environment.observe(), self.state)
        num_draws = distribution.num_draws
        action_B = distribution.mode() if greedy else distribution.sample(rng.uniform(key, self.env_B, num_draws))
        moved = self.environment.step(action_B)
        self.reward_B = self.reward_B + torch.where(self.running_B, moved.reward_B.double(), 0.0)
        self.steps_B = self.steps_B + self.running_B
        self.running_B = self.running_B & ~moved.ended_B
        self.running = bool(self.running_B.any())
        self.state = pytree.where(moved.ended_B, self.fresh, state) if state else state
