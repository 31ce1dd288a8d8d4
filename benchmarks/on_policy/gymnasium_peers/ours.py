"""Our side of gymnasium_curves.py: the loop that `ranks new --shape on-policy` writes, without a run folder."""

from __future__ import annotations

from functools import partial

import task
from task import Game, Record, main, maker
from torch import nn

from ranks import Learner, OptimConfig, RunConfig, World
from ranks.rl import ActorCritic, Collector, PPOConfig, ppo
from ranks.rl.gymnasium import from_gymnasium, spaces_of


def learn(game: Game, record: Record, seed: int) -> nn.Module:
    """A policy without memory gets minibatches of single steps, as on the other side, and advantages that are
    normalised over the rollout; a recurrent one minibatches of whole sequences, each normalised."""
    cfg = PPOConfig(
        epochs=task.EPOCHS,
        minibatches=task.MINIBATCHES,
        clip_range=task.CLIP_RANGE,
        vf_coef=task.VF_COEF,
        ent_coef=task.ENT_COEF,
        gamma=game.gamma,
        gae_lambda=task.GAE_LAMBDA,
        normalize_advantage="minibatch" if game.recurrent else "rollout",
        scale_rewards=True,
    )
    optim = OptimConfig(lr=game.lr, weight_decay=0.0, eps=task.EPS, clip_norm=task.NORM, schedule="linear")
    world = World.join(RunConfig(seed=seed, threads=1), device="cpu", workload="benchmark")
    make = maker(game, record)
    policy = ActorCritic(*spaces_of(make()), task.HIDDEN, task.MEMORY if game.recurrent else 0)
    learner = Learner(policy, optim, world, global_batch=game.n_envs, updates=game.updates)
    make_vec_env = from_gymnasium(make, seed, world.device)
    collector = Collector(policy, make_vec_env, game.n_envs, game.n_steps, cfg, world, cut_time=not game.recurrent)
    loss = partial(ppo.ppo_loss, cfg=cfg)
    for iteration in range(game.rollouts):
        rollout = collector.collect(policy, iteration)
        ppo.update(learner, loss, rollout, collector.ids, cfg, iteration)
    return policy


if __name__ == "__main__":
    main(learn)
