"""Our side of gymnasium_curves.py: the loop that `ranks new --shape on-policy` writes, without a run folder."""

from __future__ import annotations

from functools import partial

import task
from task import Game, Record, maker, play
from torch import nn

from ranks.engine.config import OptimConfig, RunConfig
from ranks.engine.distributed.world import World
from ranks.engine.update.learner import Learner
from ranks.rl import ppo
from ranks.rl.collector import Collector
from ranks.rl.config import PPOConfig
from ranks.rl.gymnasium.environments import from_gymnasium
from ranks.rl.gymnasium.spaces import action_space, observation_spaces
from ranks.rl.moments import RunningMoments, freeze
from ranks.rl.policies.actor_critic import ActorCritic


def learn(game: Game, record: Record, seed: int) -> nn.Module:
    """Advantages are normalised in each minibatch, as on the other side; its minibatches hold whole sequences."""
    cfg = PPOConfig(
        epochs=task.EPOCHS,
        minibatches=task.MINIBATCHES,
        clip=task.CLIP,
        value_weight=task.VALUE_WEIGHT,
        entropy_weight=task.ENTROPY_WEIGHT,
        discount=task.DISCOUNT,
        gae_lambda=task.LAMBDA,
        advantages="minibatch",
        scale_rewards=True,
    )
    optim = OptimConfig(lr=task.LR, weight_decay=0.0, eps=task.EPS, clip_norm=task.NORM, schedule="linear")
    world = World.join(RunConfig(seed=seed, threads=1), device="cpu", workload="benchmark")
    make = maker(game, record)
    env = make()
    spaces = {name: space.plain() for name, space in observation_spaces(env.observation_space, game.env_id).items()}
    action = action_space(env.action_space, game.env_id).plain()
    policy = ActorCritic(spaces, action, task.HIDDEN, task.MEMORY if game.recurrent else 0)
    learner = Learner(policy, optim, world, global_batch=game.environments, updates=game.updates)
    groups = from_gymnasium(make, seed, world.device)
    collector = Collector(policy, groups, game.environments, game.horizon, cfg, world)
    seen, loss = RunningMoments(policy.encoder.normaliser.num_features), partial(ppo.ppo_loss, cfg=cfg)
    for iteration in range(game.rollouts):
        freeze(seen, into=policy.encoder.normaliser)
        rollout = collector.collect(policy, iteration)
        ppo.update(learner, loss, rollout, collector.ids, cfg, iteration)
        seen.update(policy.encoder.numbers(rollout.obs), collector.ids)
    return policy


if __name__ == "__main__":
    play(learn)
