"""A group of environments with its running episodes, and the builder of its rollouts.

Legend: T steps, B environments, U uniform random numbers of one action.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import torch
from torch import Tensor

from ranks.engine.sharding import rng
from ranks.rl import pytree
from ranks.rl.environments import RestartsEpisodes, Transition, VecEnv
from ranks.rl.episode_stats import EpisodeStats
from ranks.rl.policies.policy import Policy
from ranks.rl.pytree import State, Tree
from ranks.rl.rollouts.rollout import RolloutStep


@dataclass
class EnvGroup:
    """B environments that step together, and the state of their running episodes."""

    env_B: Tensor
    """int64[B]: environment ids, on the device."""
    environment: VecEnv
    obs: Tree
    """The current observations."""
    state: State
    """The policy's recurrent state."""
    first_B: Tensor
    """bool: an episode starts with the next step."""
    return_B: Tensor
    """float64: the sum of rewards of the running episode."""
    length_B: Tensor
    """float64: its steps."""
    discounted_B: Tensor
    """float64: its discounted return so far, for reward scaling (Engstrom et al. 2020, arXiv
    2005.12729)."""
    stats: EpisodeStats
    """Of the last rollout."""

    KEPT = ("first_B", "return_B", "length_B", "discounted_B")

    @classmethod
    def start(cls, policy: Policy, environment: VecEnv, ids: range, device: torch.device) -> EnvGroup:
        """The environments `ids`, which have just been reset."""
        zero_B = torch.zeros(len(ids), dtype=torch.float64, device=device)
        return cls(
            env_B=torch.arange(ids.start, ids.stop, device=device),
            environment=environment,
            obs=environment.observe(),
            state=policy.start_state(len(ids)),
            first_B=torch.ones(len(ids), dtype=torch.bool, device=device),
            return_B=zero_B,
            length_B=zero_B,
            discounted_B=zero_B,
            stats=EpisodeStats.zeros(len(ids), device),
        )

    def state_dict(self) -> dict[str, Tensor]:
        """The running episodes, recurrent state and environments, one row for each environment."""
        episodes = {name: getattr(self, name) for name in self.KEPT}
        recurrent = {f"state.{name}": rows for name, rows in self.state.items()}
        return episodes | recurrent | {f"environment.{n}": rows for n, rows in self.environment.state_dict().items()}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Take over what `state_dict` returned."""

        def under(prefix: str) -> dict[str, Tensor]:
            return {n.removeprefix(prefix): rows for n, rows in state.items() if n.startswith(prefix)}

        for name in self.KEPT:
            setattr(self, name, state[name].to(self.first_B.device))
        self.state = {name: rows.to(self.first_B.device) for name, rows in under("state.").items()}
        self.environment.load_state_dict(under("environment."))
        self.obs = self.environment.observe()

    def begin_iteration(self, iteration: int, initial_state: State, *, exact: bool) -> None:
        """Reset the running values of environments that restarted since the last step."""
        if not isinstance(self.environment, RestartsEpisodes):
            return
        restarted_B = self.environment.begin_iteration(iteration, exact=exact)
        if restarted_B is not None:
            self.first_B = self.first_B | restarted_B
            self.state = pytree.where(restarted_B, initial_state, self.state) if self.state else self.state
            self.return_B, self.length_B = self.return_B * (~restarted_B), self.length_B * (~restarted_B)
            self.discounted_B = self.discounted_B * (~restarted_B)
            self.obs = self.environment.observe()

    def count(self, transition: Transition) -> None:
        """Add a step to the running episodes and the statistics; reset episodes that ended."""
        valid_B = transition.valid_B
        one_B = torch.ones_like(self.return_B) if valid_B is None else valid_B.double()
        reward_B = transition.reward_B.double() * one_B
        self.return_B = self.return_B + reward_B
        self.length_B = self.length_B + one_B
        ended_B = transition.ended_B.double()
        self.stats.add(one_B, reward_B, ended_B, self.return_B, self.length_B)
        self.return_B, self.length_B = self.return_B * (1.0 - ended_B), self.length_B * (1.0 - ended_B)


@dataclass
class RolloutBuilder:
    """Collects the steps of one rollout of one group."""

    policy: Policy
    group: EnvGroup
    key: int
    """Of the random numbers of this iteration."""
    n_steps: int
    initial_state: State
    """The recurrent state at the start of an episode."""
    start_state: State
    """The recurrent state before the first step of the rollout."""
    steps: list[RolloutStep] = field(default_factory=list[RolloutStep])
    uniform_BTU: Tensor | None = None

    @classmethod
    def start(
        cls, policy: Policy, group: EnvGroup, n_steps: int, *, seed: int, iteration: int, exact: bool
    ) -> RolloutBuilder:
        """A builder without steps.

        It begins the iteration in the group and resets its statistics.
        """
        initial_state = policy.start_state(len(group.env_B))
        group.begin_iteration(iteration, initial_state, exact=exact)
        group.stats = EpisodeStats.zeros(len(group.env_B), group.env_B.device)
        return cls(policy, group, rng.key(seed, "act", iteration), n_steps, initial_state, group.state)

    def step(self) -> None:
        """Sample an action in each environment, step them, and record the result."""
        group, obs, first_B = self.group, self.group.obs, self.group.first_B
        distribution, value_B, state = self.policy.act(obs, group.state)
        action_B = distribution.sample(self._uniform(distribution.num_uniforms))
        transition = group.environment.step(action_B)
        # A truncated episode is bootstrapped with the value of its last observation.
        final_obs = transition.final_obs
        final_value_B = None if final_obs is None else self.policy.act(final_obs, state)[1]
        log_prob_B = distribution.log_prob(action_B)
        self.steps.append(RolloutStep(obs, first_B, action_B, log_prob_B, value_B, final_value_B, transition))
        group.count(transition)
        # The next step starts an episode after an end, and after a step that only reset.
        ended_B, valid_B = transition.ended_B, transition.valid_B
        group.first_B = ended_B if valid_B is None else ended_B | ~valid_B
        group.state = pytree.where(group.first_B, self.initial_state, state) if state else state
        group.obs = group.environment.observe()

    def _uniform(self, size: int) -> Tensor:
        """The random numbers of this step, float64[B, U] in [0, 1).

        They are a function of (iteration, environment id).
        """
        if self.uniform_BTU is None:
            env_B = self.group.env_B
            self.uniform_BTU = rng.uniform(self.key, env_B, self.n_steps * size).view(len(env_B), self.n_steps, size)
        return self.uniform_BTU[:, len(self.steps)]
