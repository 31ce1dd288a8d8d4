"""Proximal policy optimisation: the loss, and the updates from one rollout.

Schulman et al. 2017, arXiv 1707.06347.

It works for any policy, recurrent or not. In a workload's loop:

    rollout = collector.collect(policy, iteration)
    run.log(ppo.update(learner, loss, rollout, collector.ids, cfg.ppo, iteration))

Legend: T steps, B environments, E environments of all ranks.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from torch import Tensor

from ranks.engine.update.learner import Learner, LossFunction
from ranks.engine.update.loss import Loss, Metric
from ranks.engine.update.step import StepStats
from ranks.rl import ppo_terms
from ranks.rl.config import PPOConfig
from ranks.rl.environments import EnvironmentIds
from ranks.rl.policies.policy import Policy
from ranks.rl.rollouts.minibatches import cut_minibatches, minibatches
from ranks.rl.rollouts.moments import UNSCALED, RolloutMoments, Scaling
from ranks.rl.rollouts.rollout import Rollout


def ppo_loss(policy: Policy, part: Rollout, *, cfg: PPOConfig) -> Loss:
    """The loss of PPO on B columns of T steps, the items of the `Loss` (minus eq. 9 of the paper).

        loss = policy_loss + vf_coef * value_loss - ent_coef * entropy

    A column is the sequence of an environment, or T single steps (`cut_minibatches`). Each term is the mean over the
    steps of a column, weighted with `Rollout.weight_TB`.
    `policy_loss` is minus the clipped surrogate objective. `value_loss` is the squared error
    without a factor 1/2, as in Stable-Baselines3; with `clip_range_vf` it is clipped. Metrics: the
    three terms, `approx_kl` (nats) and `clip_fraction`, the fraction of actions whose probability
    ratio is outside of the clip range.
    """
    distribution, value_TB = policy.unroll(part.obs, part.start_state, part.first_TB)
    log_ratio_TB = distribution.log_prob(part.action_TB) - part.logp_TB
    ratio_TB = log_ratio_TB.exp()
    policy_loss_TB = -ppo_terms.clipped_surrogate(ratio_TB, part.advantage_TB, cfg.clip_range)
    value_TB = value_TB.to(part.return_TB.dtype)
    if cfg.clip_range_vf is None:
        value_loss_TB = ppo_terms.value_loss(value_TB, part.return_TB)
    else:
        value_loss_TB = ppo_terms.clipped_value_loss(value_TB, part.value_TB, part.return_TB, cfg.clip_range_vf)
    entropy_TB = distribution.entropy()

    def mean(term_TB: Tensor) -> Tensor:
        return (term_TB if part.weight_TB is None else term_TB * part.weight_TB).mean(0)

    def metric(term_TB: Tensor) -> Metric:
        return mean(term_TB) if part.weight_TB is None else ((term_TB * part.weight_TB).sum(), part.weight_TB.sum())

    total_B = mean(cfg.vf_coef * value_loss_TB + policy_loss_TB - cfg.ent_coef * entropy_TB)
    return Loss(
        total_B.sum(),
        len(total_B),
        policy_loss=metric(policy_loss_TB),
        value_loss=metric(value_loss_TB),
        entropy=metric(entropy_TB),
        approx_kl=metric(ppo_terms.approx_kl(log_ratio_TB)),
        clip_fraction=metric(ppo_terms.is_clipped(ratio_TB, cfg.clip_range)),
    )


def update(
    learner: Learner,
    loss: LossFunction[Rollout],
    rollout: Rollout,
    ids: EnvironmentIds,
    cfg: PPOConfig,
    iteration: int,
) -> dict[str, float]:
    """Make all updates from one rollout and return the means of their metrics. Every rank calls it.

    An epoch uses every step once, in `cfg.minibatches` updates of whole sequences, or of single steps
    where `ids.cut_time` is set. Advantages are normalised
    over all ranks together. If the mean KL divergence of an epoch exceeds `cfg.target_kl`, all
    ranks end the updates after it. Besides the metrics of the loss there are `grad_norm` (before
    clipping), `num_updates`, and `explained_variance` of the rollout's values
    (`RolloutMoments.explained_variance`).
    """
    moments = RolloutMoments.of(rollout, ids)
    of_rollout = moments.advantage_scaling() if cfg.normalize_advantage == "rollout" else UNSCALED

    def scaling(env_K: Tensor) -> Scaling:
        return moments.advantage_scaling(env_K) if cfg.normalize_advantage == "minibatch" else of_rollout

    steps: list[StepStats] = []
    for epoch in range(cfg.epochs):
        step = iteration * cfg.epochs + epoch
        if ids.cut_time:
            batches = cut_minibatches(rollout, ids, step, of_rollout)
        else:
            batches = minibatches(rollout, ids, step, scaling, moments.weight_E)
        steps += [learner.step(loss, batch) for batch in batches]
        if cfg.target_kl is not None:
            learner.drain()
            if mean_metrics(steps[-cfg.minibatches :])["approx_kl"] > cfg.target_kl:
                break
    learner.drain()
    return mean_metrics(steps) | {"num_updates": len(steps), "explained_variance": moments.explained_variance()}


def mean_metrics(steps: Sequence[StepStats]) -> dict[str, float]:
    """The means of the metrics and gradient norms of some finished updates."""
    votes = [step.read() for step in steps]
    means = {name: math.fsum(vote.values[name] for vote in votes) / len(votes) for name in votes[0].values}
    return means | {"grad_norm": math.fsum(vote.grad_norm for vote in votes) / len(votes)}
