"""Environments that act together, and a rollout of theirs in the making.

Legend: T steps, B environments, D draws of one step.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import torch
from torch import Tensor

from ranks.engine.sharding import rng
from ranks.rl import pytree
from ranks.rl.environments import BeginsAnew, Environment, Transition
from ranks.rl.policy import Policy
from ranks.rl.pytree import State, Tree


@dataclass
class Group:
    """Environments that act together, and where each of them stands."""

    env_B: Tensor
    """int64[B] ids, on the device."""
    environment: Environment
    obs: Tree
    state: State
    first_B: Tensor
    """bool: the next step is an episode's first."""
    return_B: Tensor
    """float64: rewards of the running episode."""
    length_B: Tensor
    """float64: its steps."""
    discounted_B: Tensor
    """float64: its rewards, those before discounted (Engstrom et al. 2020, arXiv 2005.12729, reward scaling)."""
    seen_B5: Tensor
    """float64, of the last rollout: steps, rewards; episodes that ended in it, their rewards, their steps."""

    RUNNING = ("first_B", "return_B", "length_B", "discounted_B")

    def state_dict(self) -> dict[str, Tensor]:
        own = {name: getattr(self, name) for name in self.RUNNING}
        memory = {f"state.{name}": rows for name, rows in self.state.items()}
        return own | memory | {f"environment.{n}": rows for n, rows in self.environment.state_dict().items()}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        def under(prefix: str) -> dict[str, Tensor]:
            return {n.removeprefix(prefix): rows for n, rows in state.items() if n.startswith(prefix)}

        for name in self.RUNNING:
            setattr(self, name, state[name].to(self.first_B.device))
        self.state = {name: rows.to(self.first_B.device) for name, rows in under("state.").items()}
        self.environment.load_state_dict(under("environment."))
        self.obs = self.environment.observe()

    def begin_iteration(self, iteration: int, fresh: State, *, exact: bool) -> None:
        """Where the environment begins a new episode of its own accord, forget what belongs to the one before."""
        if not isinstance(self.environment, BeginsAnew):
            return
        anew_B = self.environment.begin_iteration(iteration, exact=exact)
        if anew_B is not None:
            self.first_B = self.first_B | anew_B
            self.state = pytree.where(anew_B, fresh, self.state) if self.state else self.state
            self.return_B, self.length_B = self.return_B * (~anew_B), self.length_B * (~anew_B)
            self.discounted_B = self.discounted_B * (~anew_B)
            self.obs = self.environment.observe()

    def count(self, moved: Transition) -> None:
        """Take a step's rewards into the running episodes, and close those that ended."""
        one_B = torch.ones_like(self.return_B) if moved.valid_B is None else moved.valid_B.double()
        reward_B = moved.reward_B.double() * one_B
        self.return_B = self.return_B + reward_B
        self.length_B = self.length_B + one_B
        ended_B = moved.ended_B.double()
        of_ended = [ended_B, ended_B * self.return_B, ended_B * self.length_B]
        self.seen_B5 += torch.stack([one_B, reward_B, *of_ended], 1)
        self.return_B, self.length_B = self.return_B * (1.0 - ended_B), self.length_B * (1.0 - ended_B)


@dataclass(frozen=True)
class Step:
    """What was seen, done and estimated in one step, and what came of it."""

    obs: Tree
    first_B: Tensor
    action_B: Tensor
    logp_B: Tensor
    value_B: Tensor
    final_B: Tensor | None
    """The value of `moved.final_obs`."""
    moved: Transition


@dataclass
class Draft:
    """A rollout of one group, made step by step."""

    policy: Policy
    group: Group
    key: int
    """Of the draws."""
    horizon: int
    fresh: State
    """The state of an episode that begins."""
    start_state: State
    steps: list[Step] = field(default_factory=list[Step])
    uniform_BTD: Tensor | None = None

    @classmethod
    def begin(cls, policy: Policy, group: Group, horizon: int, *, seed: int, iteration: int, exact: bool) -> Draft:
        """Before the first step of an iteration."""
        fresh = policy.start_state(len(group.env_B))
        group.begin_iteration(iteration, fresh, exact=exact)
        group.seen_B5 = torch.zeros_like(group.seen_B5)
        return cls(policy, group, rng.key(seed, "act", iteration), horizon, fresh, group.state)

    def step(self) -> None:
        """The next one."""
        group, obs, first_B = self.group, self.group.obs, self.group.first_B
        distribution, value_B, state = self.policy.act(obs, group.state)
        action_B = distribution.sample(self._draws(distribution.num_draws))
        moved = group.environment.step(action_B)
        final_B = None if moved.final_obs is None else self.policy.act(moved.final_obs, state)[1]
        self.steps.append(Step(obs, first_B, action_B, distribution.log_prob(action_B), value_B, final_B, moved))
        group.count(moved)
        group.first_B = moved.ended_B if moved.valid_B is None else moved.ended_B | ~moved.valid_B
        group.state = pytree.where(group.first_B, self.fresh, state) if state else state
        group.obs = group.environment.observe()

    def _draws(self, size: int) -> Tensor:
        """[B, D] uniform numbers of this step, which belong to (iteration, environment id)."""
        if self.uniform_BTD is None:
            env_B = self.group.env_B
            self.uniform_BTD = rng.uniform(self.key, env_B, self.horizon * size).view(len(env_B), self.horizon, size)
        return self.uniform_BTD[:, len(self.steps)]
