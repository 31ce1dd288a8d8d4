"""Acting: environments and their recurrent states go on from iteration to iteration, and come back from a checkpoint.

Legend: T steps, B environments of a group, D draws of one step.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ranks.engine import draws
from ranks.engine.evaluate import acting
from ranks.engine.world import World
from ranks.experience import trees
from ranks.experience.config import PPOConfig
from ranks.experience.environments import BeginsAnew, Environment, EnvironmentIds, MakeEnvironment, Transition
from ranks.experience.moments import RunningMoments
from ranks.experience.policy import Policy
from ranks.experience.returns import gae, next_values
from ranks.experience.rollout import Rollout
from ranks.experience.trees import State, Tree


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
            self.state = trees.where(anew_B, fresh, self.state) if self.state else self.state
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


class Collector:
    """Acts with a policy in this rank's environments, T steps an iteration.

    Every random draw belongs to (iteration, environment id), so the number of ranks changes nobody's luck.
    """

    def __init__(
        self, policy: Policy, make: MakeEnvironment, num_environments: int, horizon: int, cfg: PPOConfig, world: World
    ) -> None:
        """`policy`: for the shape of its state. Raises UserError where the environments do not go round."""
        self.horizon, self.cfg, self.world = horizon, cfg, world
        self.rewards = RunningMoments(1)
        self.ids = EnvironmentIds(num_environments, cfg.minibatches, world)
        self.groups = [self._group(policy, ids, make(ids)) for ids in self.ids.groups]

    def _group(self, policy: Policy, ids: range, environment: Environment) -> Group:
        device, num = self.world.device, len(ids)

        def zeros(*shape: int) -> Tensor:
            return torch.zeros(shape, dtype=torch.float64, device=device)

        return Group(
            env_B=torch.arange(ids.start, ids.stop, device=device),
            environment=environment,
            obs=environment.observe(),
            state=policy.start_state(num),
            first_B=torch.ones(num, dtype=torch.bool, device=device),
            return_B=zeros(num),
            length_B=zeros(num),
            discounted_B=zeros(num),
            seen_B5=zeros(num, 5),
        )

    def collect(self, policy: Policy, iteration: int) -> Rollout:
        """[T, B] of experience of this rank's environments, with advantages. Raises Stopped."""
        with acting(policy, self.world):
            rollout = Rollout.cat([self._collect(policy, group, iteration) for group in self.groups])
        self.world.check_stop()
        if self.cfg.scale_rewards:
            self._see_rewards(rollout)
        return rollout

    def _collect(self, policy: Policy, group: Group, iteration: int) -> Rollout:
        num, steps = len(group.env_B), list[dict[str, Any]]()
        key = draws.key(self.world.seed, "act", iteration)
        uniform_BTD: Tensor | None = None
        fresh = policy.start_state(num)
        group.begin_iteration(iteration, fresh, exact=self.world.exact)
        start_state = group.state
        group.seen_B5 = torch.zeros_like(group.seen_B5)
        for t in range(self.horizon):
            obs, first_B = group.obs, group.first_B
            distribution, value_B, state = policy.act(obs, group.state)
            if uniform_BTD is None:
                size = distribution.num_draws
                uniform_BTD = draws.uniform(key, group.env_B, self.horizon * size).view(num, self.horizon, size)
            action_B = distribution.sample(uniform_BTD[:, t])
            moved = group.environment.step(action_B)
            final_B = None if moved.final_obs is None else policy.act(moved.final_obs, state)[1]
            steps.append(
                {
                    "obs": obs,
                    "first": first_B,
                    "action": action_B,
                    "logp": distribution.log_prob(action_B),
                    "value": value_B,
                    "final": final_B,
                    "moved": moved,
                }
            )
            group.count(moved)
            group.first_B = moved.ended_B if moved.valid_B is None else moved.ended_B | ~moved.valid_B
            group.state = trees.where(group.first_B, fresh, state) if state else state
            group.obs = group.environment.observe()
        last_B = policy.act(group.obs, group.state)[1]
        return self._rollout(group, start_state, steps, last_B)

    def _rollout(self, group: Group, start_state: State, steps: list[dict[str, Any]], last_B: Tensor) -> Rollout:
        def stacked(name: str) -> Tensor:
            return torch.stack([step[name] for step in steps])

        moved: list[Transition] = [step["moved"] for step in steps]
        value_TB = in_default_dtype(stacked("value"))
        next_value_TB = next_values(value_TB, in_default_dtype(last_B))
        for t, step in enumerate(steps):
            if step["final"] is not None:
                next_value_TB[t] = torch.where(moved[t].ended_B, in_default_dtype(step["final"]), next_value_TB[t])
        reward_TB = torch.stack([m.reward_B for m in moved]).to(value_TB.dtype)
        discount_TB = torch.stack([m.discount_B for m in moved]).to(value_TB.dtype)
        ended_TB = torch.stack([m.ended_B for m in moved])
        if self.cfg.scale_rewards:
            reward_TB = reward_TB / float(self.rewards.std_F)
        discounts_TB = self.cfg.discount * discount_TB
        advantage_TB = gae(reward_TB, value_TB, next_value_TB, discounts_TB, ended_TB, self.cfg.gae_lambda)
        valid_TB = None
        if moved[0].valid_B is not None:
            valid_TB = torch.stack([m.valid_B for m in moved if m.valid_B is not None]).to(value_TB.dtype)
        episode_steps = group.environment.episode_steps
        return Rollout(
            env_B=group.env_B.cpu(),
            start_state=start_state,
            obs=trees.stack([step["obs"] for step in steps]),
            first_TB=None if episode_steps is not None and episode_steps % self.horizon == 0 else stacked("first"),
            action_TB=stacked("action"),
            logp_TB=stacked("logp"),
            value_TB=value_TB,
            next_value_TB=next_value_TB,
            reward_TB=reward_TB,
            discount_TB=discount_TB,
            ended_TB=ended_TB,
            valid_TB=valid_TB,
            advantage_TB=advantage_TB,
            return_TB=advantage_TB + value_TB,
        )

    def _see_rewards(self, rollout: Rollout) -> None:
        """Take the rollout's rewards, as the environments gave them, into the deviation that the next ones are scaled
        by."""
        scale = float(self.rewards.std_F)
        running_B, seen = torch.cat([group.discounted_B for group in self.groups]), list[Tensor]()
        for reward_B, ended_B in zip(rollout.reward_TB.double() * scale, rollout.ended_TB, strict=True):
            running_B = running_B * self.cfg.discount + reward_B
            seen.append(running_B)
            running_B = running_B * (~ended_B)
        for group, rows_B in zip(self.groups, running_B.split([len(g.env_B) for g in self.groups]), strict=True):
            group.discounted_B = rows_B
        self.rewards.update(torch.stack(seen)[..., None], self.ids)

    def statistics(self) -> dict[str, float]:
        """Of the last rollout, on all ranks: the mean reward of a step, the number of episodes that ended, and the
        means of what they brought and lasted; merged in float64 in the order of the environments' ids."""
        every_B5 = self.ids.gather(torch.cat([group.seen_B5 for group in self.groups]))
        steps, reward, episodes, total, length = every_B5.sum(0).tolist()
        means = {"ep_rew_mean": total / episodes, "ep_len_mean": length / episodes} if episodes else {}
        return {"step_rew_mean": reward / max(steps, 1.0), "episodes": episodes} | means

    def state_dict(self) -> dict[str, Any]:
        """By environment id, gathered from all ranks."""
        every = self.ids.gather_state([group.state_dict() for group in self.groups])
        return {"environments": every, "rewards": self.rewards.state_dict()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.rewards.load_state_dict(state["rewards"])
        for ids, group in zip(self.ids.groups, self.groups, strict=True):
            group.load_state_dict(self.ids.state_of(ids, state["environments"]))


def in_default_dtype(value: Tensor) -> Tensor:
    """Values in the dtype of the weights."""
    return value.to(torch.get_default_dtype())
