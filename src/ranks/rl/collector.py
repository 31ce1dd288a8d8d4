"""The collector acts with a policy in the environments of a rank and returns rollouts.

Legend: T steps, B environments.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import torch

from ranks.engine.distributed.poll_interval import PollInterval
from ranks.engine.distributed.world import World
from ranks.engine.update.evaluate import eval_mode
from ranks.errors import UserError
from ranks.rl import pytree
from ranks.rl.check_finite import CollectedValues, check_finite
from ranks.rl.config import PPOConfig
from ranks.rl.env_group import EnvGroup, RolloutBuilder
from ranks.rl.environments import EnvironmentIds, MakeVecEnv
from ranks.rl.episode_stats import metrics_of
from ranks.rl.policies.policy import NormalisesObservations, Policy
from ranks.rl.rollouts.moments import normalised_weights
from ranks.rl.rollouts.rollout import Rollout
from ranks.rl.running_mean_std import RunningMeanStd


class Collector:
    """Steps the environments of this rank, T steps an iteration, and continues their episodes.

    Every random number is a function of (seed, iteration, environment id), so an environment does
    the same on any number of ranks. The collector also keeps the running statistics that rewards
    are scaled by and observations are normalised with; they change after a rollout, never during
    one.
    """

    def __init__(
        self,
        policy: Policy,
        make_vec_env: MakeVecEnv,
        n_envs: int,
        n_steps: int,
        cfg: PPOConfig,
        world: World,
        *,
        cut_time: bool = False,
    ) -> None:
        """Make this rank's environments and reset them.

        `policy`: the shape of its recurrent state is needed, and the size of its observation
        normaliser if it has one (`NormalisesObservations`). `make_vec_env`: from a range of ids to
        these environments. `n_envs`: environments of all ranks together, a multiple of
        `cfg.minibatches`. `n_steps`: T. `cut_time`: minibatches hold single steps from anywhere in
        the rollout, not whole sequences (`cut_minibatches`); only for a policy without recurrent
        state. Raises UserError if T is below 1, if `n_envs` does not divide, if a rank would have no
        environment, or if minibatches cannot cut time.
        """
        if cut_time:
            _check_cut_time(policy, cfg)
        if n_steps < 1:
            raise UserError(f"--n-steps {n_steps}", "a rollout needs a step", "give --n-steps 1 or more")
        self.n_steps, self.cfg, self.world = n_steps, cfg, world
        self.rewards = RunningMeanStd(1)
        """Statistics of the discounted return, which rewards are scaled by."""
        self.observations: RunningMeanStd | None = None
        """Statistics that the policy normalises observations with; None for a policy that does
        not."""
        if isinstance(policy, NormalisesObservations):
            self.observations = RunningMeanStd(policy.normaliser.num_features)
        self.env_steps = n_envs * n_steps
        """Environment steps of one iteration, all ranks together; steps that only reset are counted
        too."""
        self.ids = EnvironmentIds(n_envs, cfg.minibatches, world, cut_time=cut_time)
        device = world.device
        self.groups = [EnvGroup.start(policy, make_vec_env(ids), ids, device) for ids in self.ids.groups]

    @property
    def plan(self) -> dict[str, Any]:
        """What the plan of a run says about rollouts and minibatches."""
        blocks = [len(self.world.assignment.items_of(rank, self.ids.num_blocks)) for rank in range(self.world.size)]
        return {
            "n_envs": self.ids.num_blocks * self.ids.block,
            "envs_per_rank": [self.ids.block * num_blocks for num_blocks in blocks],
            "n_steps": self.n_steps,
            "epochs": self.cfg.epochs,
            "minibatches": self.cfg.minibatches,
        }

    def collect(self, policy: Policy, iteration: int) -> Rollout:
        """Act for T steps and return the rollout [T, B] of this rank's environments.

        Every rank calls it.

        The policy normalises observations with the statistics of the iterations before. Raises
        Stopped, also between two steps, if a stop was requested; UserError if an environment
        returned a number that is not finite. Warns where an open run does not keep this collector.
        """
        world = self.world
        world.session.warn_unless_kept(self, "a Collector of this loop")
        if self.observations is not None and isinstance(policy, NormalisesObservations):
            policy.normaliser.set_statistics(self.observations.mean_F, self.observations.std_F)
        with world.session.timed("acting"), eval_mode(policy, world):
            builders = [
                RolloutBuilder.start(
                    policy, group, self.n_steps, seed=world.seed, iteration=iteration, exact=world.exact
                )
                for group in self.groups
            ]
            poll = PollInterval(world.comm)
            for step in range(self.n_steps):
                for builder in builders:
                    builder.step()
                world.session.progress("rollout", step + 1, self.n_steps)
                if poll.due():
                    world.check_stop()
            world.check_stop()
            parts = [self._rollout(builder) for builder in builders]
        collected = [c for builder, part in zip(builders, parts, strict=True) for c in values_to_check(builder, part)]
        check_finite(collected, world, iteration)
        world.session.count("env_steps", self.env_steps)
        rollout = Rollout.cat(parts)
        if rollout.weight_TB is not None:
            rollout = replace(rollout, weight_TB=normalised_weights(rollout.weight_TB, self.ids))
        if self.cfg.scale_rewards:
            self._update_reward_statistics(rollout)
        self._update_observation_statistics(policy, rollout)
        return rollout

    def _rollout(self, builder: RolloutBuilder) -> Rollout:
        """The rollout of one group, with the value after its last step as the bootstrap."""
        group = builder.group
        episode_steps = group.environment.episode_steps
        return Rollout.of_steps(
            builder.steps,
            env_B=group.env_B,
            start_state=builder.start_state,
            last_value_B=builder.policy.act(group.obs, group.state)[1],
            gamma=self.cfg.gamma,
            gae_lambda=self.cfg.gae_lambda,
            reward_std=float(self.rewards.std_F) if self.cfg.scale_rewards else None,
            starts_at_step_0=episode_steps is not None and episode_steps % self.n_steps == 0,
        )

    def _update_observation_statistics(self, policy: Policy, rollout: Rollout) -> None:
        """Add the rollout's observations to the statistics for the next rollouts."""
        if self.observations is None or not isinstance(policy, NormalisesObservations):
            return
        if len(self.observations.mean_F):
            features_TBF = policy.features_to_normalise(rollout.obs)
            self.observations.update(features_TBF, self.ids, rollout.weight_TB)

    def _update_reward_statistics(self, rollout: Rollout) -> None:
        """Add the discounted returns of the rollout, from unscaled rewards, to the statistics."""
        scale = float(self.rewards.std_F)
        running_B, returns = torch.cat([group.discounted_B for group in self.groups]), list[torch.Tensor]()
        reward_TB = rollout.reward_TB.double() * scale
        if rollout.weight_TB is not None:
            reward_TB = reward_TB * (rollout.weight_TB > 0)
        for reward_B, ended_B in zip(reward_TB, rollout.ended_TB, strict=True):
            running_B = running_B * self.cfg.gamma + reward_B
            returns.append(running_B)
            running_B = running_B * (~ended_B)
        for group, rows_B in zip(self.groups, running_B.split([len(g.env_B) for g in self.groups]), strict=True):
            group.discounted_B = rows_B
        self.rewards.update(torch.stack(returns)[..., None], self.ids, rollout.weight_TB)

    def statistics(self) -> dict[str, float]:
        """Metrics of the last rollout over all ranks: `episode_stats.metrics_of`.

        Every rank calls it.
        """
        return metrics_of(self.ids.gather(torch.cat([group.stats.columns() for group in self.groups])))

    def close(self) -> None:
        """Close the environments."""
        for group in self.groups:
            group.environment.close()

    def state_dict(self) -> dict[str, Any]:
        """The running episodes by environment id, gathered from all ranks, and the statistics.

        Every rank calls it.
        """
        self.world.session.kept.add(id(self))
        state: dict[str, Any] = {
            "environments": self.ids.gather_state([group.state_dict() for group in self.groups]),
            "rewards": self.rewards.state_dict(),
        }
        if self.observations is not None:
            state["observations"] = self.observations.state_dict()
        return state

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take over what `state_dict` returned, on any number of ranks."""
        self.world.session.kept.add(id(self))
        self.rewards.load_state_dict(state["rewards"])
        if self.observations is not None:
            self.observations.load_state_dict(state["observations"])
        for ids, group in zip(self.ids.groups, self.groups, strict=True):
            group.load_state_dict(self.ids.state_of(ids, state["environments"]))


def _check_cut_time(policy: Policy, cfg: PPOConfig) -> None:
    """Raises UserError where minibatches cannot hold single steps."""
    if policy.start_state(1):
        raise UserError(
            "Collector(cut_time=True)", "the policy has a recurrent state, which needs whole sequences", "leave it out"
        )
    if cfg.normalize_advantage == "minibatch":
        raise UserError(
            "--ppo.normalize-advantage minibatch",
            "minibatches of single steps, whose advantages are normalised over the rollout",
            "give --ppo.normalize-advantage rollout",
        )


def values_to_check(builder: RolloutBuilder, rollout: Rollout) -> list[CollectedValues]:
    """The rewards and observations of a group's rollout that PPO uses."""
    env_B, n_steps = rollout.env_B, builder.n_steps
    transitions = [step.transition for step in builder.steps]
    collected = [
        CollectedValues(env_B, "reward", range(n_steps), rollout.reward_TB),
        CollectedValues(env_B, "observation", range(n_steps), rollout.obs),
        CollectedValues(env_B, "observation", [n_steps], pytree.stack([builder.group.obs])),
    ]
    final = {t: m.final_obs for t, m in enumerate(transitions) if m.final_obs is not None}
    if final:
        truncated_NB = torch.stack([transitions[t].ended_B & (transitions[t].discount_B > 0) for t in final])
        last_obs = pytree.stack(list(final.values()))
        collected.append(CollectedValues(env_B, "last observation", list(final), last_obs, truncated_NB))
    return collected
