"""PPO in one file: a policy learns to act in any gymnasium environment, such as CartPole-v1.

    ranks train ./template.py          on all that this machine has; again: it continues; --help: every setting
    ranks evaluate template            then: ranks export template, for weights that plain PyTorch loads

Put your environment into `make`, and your network in the place of `ActorCritic` (it needs start_state, act and unroll).
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from functools import partial

import gymnasium

from ranks import Learner, OptimConfig, Run, Summary, World, at_least, free
from ranks.rl import ppo
from ranks.rl.collector import Collector
from ranks.rl.config import PPOConfig
from ranks.rl.evaluate_policy import play_episodes
from ranks.rl.gymnasium.environments import from_gymnasium, maker
from ranks.rl.gymnasium.spaces import action_space, observation_spaces
from ranks.rl.moments import RunningMoments, freeze
from ranks.rl.policies.actor_critic import ActorCritic

SHAPE = "on-policy"


@dataclass(frozen=True)
class Config:
    """Every field is a flag. A field marked `free` may change between the sessions of one run."""

    env: str = "CartPole-v1"
    """Name of a gymnasium environment."""
    iterations: int = free(25)
    """Rollouts; each is learned from in ppo.epochs x ppo.minibatches updates."""
    environments: int = 32
    """That act at once, all ranks together; a multiple of ppo.minibatches."""
    horizon: int = 64
    """Steps of each environment in one iteration."""
    workers: bool = free(False)
    """Each environment in a process of its own: for slow ones."""
    hidden: int = 64
    memory: int = 0
    """Hidden numbers of an LSTM, for environments that do not show everything; 0: none."""
    ppo: PPOConfig = PPOConfig(epochs=10, entropy_weight=0.005, target_kl=0.03, scale_rewards=True)
    optim: OptimConfig = OptimConfig(lr=1e-3, clip_norm=0.5, weight_decay=0.0, eps=1e-5, schedule="linear")
    eval_every: int = free(10)
    eval_episodes: int = 32
    eval_steps: int = 10_000
    """After which an evaluated episode is cut off."""

    def __post_init__(self) -> None:
        counts = ("iterations", "environments", "horizon", "hidden", "eval_every", "eval_episodes", "eval_steps")
        at_least(1, self, *counts)
        at_least(0, self, "memory")


def make(cfg: Config) -> gymnasium.Env:
    """YOUR ENVIRONMENT."""
    return maker(cfg.env)()


def build(cfg: Config) -> ActorCritic:
    """YOUR NETWORK."""
    env = make(cfg)
    asked = f"the environment {type(env.unwrapped).__name__}"
    spaces, action = observation_spaces(env.observation_space, asked), action_space(env.action_space, asked)
    env.close()
    return ActorCritic({name: s.plain() for name, s in spaces.items()}, action.plain(), cfg.hidden, cfg.memory)


def train(cfg: Config, world: World) -> Summary:
    policy, loss = build(cfg), partial(ppo.ppo_loss, cfg=cfg.ppo)
    updates = cfg.iterations * cfg.ppo.epochs * cfg.ppo.minibatches
    learner = Learner(policy, cfg.optim, world, global_batch=cfg.environments, updates=updates)
    groups = from_gymnasium(partial(make, cfg), world.seed, world.device, workers=cfg.workers)
    collector = Collector(policy, groups, cfg.environments, cfg.horizon, cfg.ppo, world)
    seen = RunningMoments(policy.encoder.normaliser.num_features)
    keep = dict(learner=learner, collector=collector, seen=seen)
    with closing(collector), Run.open(cfg, world, keep=keep) as run:
        for iteration in run.iterations(cfg.iterations, long=True):
            freeze(seen, into=policy.encoder.normaliser)
            rollout = collector.collect(policy, iteration)
            run.log(ppo.update(learner, loss, rollout, collector.ids, cfg.ppo, iteration))
            run.log(collector.statistics(), prefix="rollout")
            if policy.encoder.normaliser.num_features:
                seen.update(policy.encoder.numbers(rollout.obs), collector.ids, rollout.valid_TB)
            if run.every(cfg.eval_every):
                run.log(evaluate(policy, cfg, world), prefix="val")
                run.save()
    return run.finish(export=policy)


def evaluate(model: ActorCritic, cfg: Config, world: World) -> dict[str, float]:
    """Mean reward and length of whole episodes with the likeliest action each time, from seeds of their own."""
    groups = from_gymnasium(partial(make, cfg), world.seed + 1_000_003, world.device, workers=cfg.workers)
    return play_episodes(model, groups, cfg.eval_episodes, world, max_steps=cfg.eval_steps).means()
