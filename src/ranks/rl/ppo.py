"""Proximal policy optimisation (Schulman et al. 2017, arXiv 1707.06347) on rollouts of any policy, recurrent or not.

In a workload's loop:

    rollout = collector.collect(policy, iteration)
    run.log(ppo.update(learner, loss, rollout, collector.ids, cfg.ppo, iteration))

Legend: T steps, B environments.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from torch import Tensor

from ranks.engine.update.learner import Learner, LossFunction
from ranks.engine.update.loss import Loss, Metric
from ranks.engine.update.step import StepStats
from ranks.rl import ppo_terms
from ranks.rl import rollout as rollouts
from ranks.rl.config import PPOConfig
from ranks.rl.environments import EnvironmentIds
from ranks.rl.policy import Policy
from ranks.rl.rollout import RAW, Rollout, Scaling


def ppo_loss(policy: Policy, part: Rollout, *, cfg: PPOConfig) -> Loss:
    """One item an environment: the mean over its T steps of surrogate, value and entropy terms (eq. 9 there), each
    with what it weighs (`Rollout.valid_TB`)."""
    distribution, value_TB = policy.unroll(part.obs, part.start_state, part.first_TB)
    log_ratio_TB = distribution.log_prob(part.action_TB) - part.logp_TB
    ratio_TB = log_ratio_TB.exp()
    gain_TB = ppo_terms.clipped_surrogate(ratio_TB, part.advantage_TB, cfg.clip)
    value_TB = value_TB.to(part.return_TB.dtype)
    if cfg.value_clip is None:
        miss_TB = ppo_terms.value_loss(value_TB, part.return_TB)
    else:
        miss_TB = ppo_terms.clipped_value_loss(value_TB, part.value_TB, part.return_TB, cfg.value_clip)
    entropy_TB = distribution.entropy()

    def mean(term_TB: Tensor) -> Tensor:
        return (term_TB if part.valid_TB is None else term_TB * part.valid_TB).mean(0)

    def metric(term_TB: Tensor) -> Metric:
        return mean(term_TB) if part.valid_TB is None else ((term_TB * part.valid_TB).sum(), part.valid_TB.sum())

    total_B = mean(cfg.value_weight * miss_TB - gain_TB - cfg.entropy_weight * entropy_TB)
    return Loss(
        total_B.sum(),
        len(total_B),
        policy_gain=metric(gain_TB),
        value_loss=metric(miss_TB),
        entropy=metric(entropy_TB),
        approx_kl=metric(ppo_terms.approx_kl(log_ratio_TB)),
        clipped=metric(ppo_terms.clipped_share(ratio_TB, cfg.clip)),
    )


def update(
    learner: Learner,
    loss: LossFunction[Rollout],
    rollout: Rollout,
    ids: EnvironmentIds,
    cfg: PPOConfig,
    iteration: int,
) -> dict[str, float]:
    """All updates from one rollout, and the means of what they found. Every rank calls it.

    An epoch takes every environment once, in `cfg.minibatches` updates. Advantages are normalised over all ranks
    together. After an epoch whose mean KL passed the target there is no further one: all ranks read the same votes.
    """
    moments_B3 = rollouts.advantage_moments(rollout, ids)
    of_all = rollouts.scaling_of(moments_B3) if cfg.advantages == "rollout" else RAW

    def scaling(env_B: Tensor) -> Scaling:
        return rollouts.scaling_of(moments_B3[env_B]) if cfg.advantages == "minibatch" else of_all

    steps: list[StepStats] = []
    for epoch in range(cfg.epochs):
        batches = rollouts.minibatches(rollout, ids, iteration * cfg.epochs + epoch, scaling, moments_B3[:, 0])
        steps += [learner.step(loss, batch) for batch in batches]
        if cfg.target_kl is not None:
            learner.drain()
            if mean_of(steps[-cfg.minibatches :])["approx_kl"] > cfg.target_kl:
                break
    learner.drain()
    return mean_of(steps) | {"num_updates": len(steps)}


def mean_of(steps: Sequence[StepStats]) -> dict[str, float]:
    """The means of what some updates found, once their votes are in."""
    votes = [step.read() for step in steps]
    means = {name: math.fsum(vote.values[name] for vote in votes) / len(votes) for name in votes[0].values}
    return means | {"grad_norm": math.fsum(vote.grad_norm for vote in votes) / len(votes)}
