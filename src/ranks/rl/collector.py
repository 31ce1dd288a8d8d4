"""Acting: environments and their recurrent states go on from iteration to iteration, and come back from a checkpoint.

Legend: T steps, B environments.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from ranks.engine.distributed.poll_interval import PollInterval
from ranks.engine.distributed.world import World
from ranks.engine.update.evaluate import eval_mode
from ranks.errors import UserError
from ranks.rl import pytree
from ranks.rl.check_finite import Taken, refuse_unfit
from ranks.rl.config import PPOConfig
from ranks.rl.env_group import Draft, Group
from ranks.rl.environments import Environment, EnvironmentIds, MakeEnvironment
from ranks.rl.moments import RunningMoments
from ranks.rl.policy import Policy
from ranks.rl.returns import gae, next_values
from ranks.rl.rollout import Rollout, weighed


class Collector:
    """Acts with a policy in this rank's environments, T steps an iteration.

    Every random draw belongs to (iteration, environment id), so the number of ranks changes nobody's luck.
    """

    def __init__(
        self, policy: Policy, make: MakeEnvironment, num_environments: int, horizon: int, cfg: PPOConfig, world: World
    ) -> None:
        """`policy`: for the shape of its state. Raises UserError where the environments do not go round, or there is no
        step to make."""
        if horizon < 1:
            raise UserError(f"--horizon {horizon}", "there is nothing to learn from", "give --horizon 1 or more")
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
        """[T, B] of experience of this rank's environments, with advantages. Every rank calls it.

        Raises Stopped, also between two steps; UserError where an environment shows or rewards what is not finite.
        """
        world = self.world
        with world.session.timed("acting"), eval_mode(policy, world):
            drafts = [
                Draft.begin(policy, group, self.horizon, seed=world.seed, iteration=iteration, exact=world.exact)
                for group in self.groups
            ]
            pace = PollInterval(world.comm)
            for _ in range(self.horizon):
                for draft in drafts:
                    draft.step()
                if pace.due():
                    world.check_stop()
            world.check_stop()
            parts = [self._rollout(draft) for draft in drafts]
        world.session.count("env_steps", self.horizon * self.ids.num_blocks * self.ids.block)
        taken = [t for draft, part in zip(drafts, parts, strict=True) for t in taken_in(draft, part)]
        refuse_unfit(taken, world, iteration)
        rollout = Rollout.cat(parts)
        if rollout.valid_TB is not None:
            rollout = replace(rollout, valid_TB=weighed(rollout.valid_TB, self.ids))
        if self.cfg.scale_rewards:
            self._see_rewards(rollout)
        return rollout

    def _rollout(self, draft: Draft) -> Rollout:
        steps, moved = draft.steps, [step.moved for step in draft.steps]
        last_B = draft.policy.act(draft.group.obs, draft.group.state)[1]
        value_TB = in_default_dtype(torch.stack([step.value_B for step in steps]))
        next_value_TB = next_values(value_TB, in_default_dtype(last_B))
        for t, step in enumerate(steps):
            if step.final_B is not None:
                next_value_TB[t] = torch.where(moved[t].ended_B, in_default_dtype(step.final_B), next_value_TB[t])
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
        episode_steps = draft.group.environment.episode_steps
        whole = episode_steps is not None and episode_steps % self.horizon == 0
        return Rollout(
            env_B=draft.group.env_B.cpu(),
            start_state=draft.start_state,
            obs=pytree.stack([step.obs for step in steps]),
            first_TB=None if whole else torch.stack([step.first_B for step in steps]).cpu(),
            action_TB=torch.stack([step.action_B for step in steps]),
            logp_TB=torch.stack([step.logp_B for step in steps]),
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
        reward_TB = rollout.reward_TB.double() * scale
        if rollout.valid_TB is not None:
            reward_TB = reward_TB * (rollout.valid_TB > 0)
        for reward_B, ended_B in zip(reward_TB, rollout.ended_TB, strict=True):
            running_B = running_B * self.cfg.discount + reward_B
            seen.append(running_B)
            running_B = running_B * (~ended_B)
        for group, rows_B in zip(self.groups, running_B.split([len(g.env_B) for g in self.groups]), strict=True):
            group.discounted_B = rows_B
        self.rewards.update(torch.stack(seen)[..., None], self.ids, rollout.valid_TB)

    def statistics(self) -> dict[str, float]:
        """Of the last rollout, on all ranks: the mean reward of a step, the number of episodes that ended, and the
        means of what they brought and lasted; merged in float64 in the order of the environments' ids."""
        every_B5 = self.ids.gather(torch.cat([group.seen_B5 for group in self.groups]))
        steps, reward, episodes, total, length = every_B5.sum(0).tolist()
        means = {"ep_rew_mean": total / episodes, "ep_len_mean": length / episodes} if episodes else {}
        return {"step_rew_mean": reward / max(steps, 1.0), "episodes": episodes} | means

    def close(self) -> None:
        """End the environments."""
        for group in self.groups:
            group.environment.close()

    def state_dict(self) -> dict[str, Any]:
        """By environment id, gathered from all ranks."""
        every = self.ids.gather_state([group.state_dict() for group in self.groups])
        return {"environments": every, "rewards": self.rewards.state_dict()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.rewards.load_state_dict(state["rewards"])
        for ids, group in zip(self.ids.groups, self.groups, strict=True):
            group.load_state_dict(self.ids.state_of(ids, state["environments"]))


def taken_in(draft: Draft, rollout: Rollout) -> list[Taken]:
    """All that a group's environments gave in a rollout and that is learned from."""
    env_B, moved, horizon = rollout.env_B, [step.moved for step in draft.steps], draft.horizon
    taken = [
        Taken(env_B, "reward", range(horizon), rollout.reward_TB),
        Taken(env_B, "observation", range(horizon), rollout.obs),
        Taken(env_B, "observation", [horizon], pytree.stack([draft.group.obs])),
    ]
    cuts = {t: m.final_obs for t, m in enumerate(moved) if m.final_obs is not None}
    if cuts:
        cut_NB = torch.stack([moved[t].ended_B & (moved[t].discount_B > 0) for t in cuts])
        taken.append(Taken(env_B, "last observation", list(cuts), pytree.stack(list(cuts.values())), cut_NB))
    return taken


def in_default_dtype(value: Tensor) -> Tensor:
    """Values in the dtype of the weights."""
    return value.to(torch.get_default_dtype())
