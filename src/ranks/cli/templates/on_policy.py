"""PPO in one file: a policy learns to act in a gymnasium environment, for example CartPole-v1.

    ranks train ./template.py          trains on all GPUs, or resumes; --help shows every setting
    ranks evaluate template            evaluates the newest checkpoint
    ranks export template              writes weights that plain PyTorch loads

Put your environment into `make`. Put your network in place of `ActorCritic`: it needs
`start_state`, `act` and `unroll`.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from functools import partial

import gymnasium

from ranks import Learner, OptimConfig, Run, Summary, World, at_least, free
from ranks.rl import ActorCritic, Collector, PPOConfig, evaluate_policy, ppo
from ranks.rl.gymnasium import from_gymnasium, make_env, spaces_of

SHAPE = "on-policy"


@dataclass(frozen=True)
class Config:
    """Every field is a flag. A field marked `free` may change between the sessions of one run."""

    env: str = "CartPole-v1"
    """The id of a gymnasium environment."""
    iterations: int = free(25)
    """Rollouts. Each is used for ppo.epochs x ppo.minibatches updates."""
    n_envs: int = 32
    """Environments of all ranks together; a multiple of ppo.minibatches."""
    n_steps: int = 64
    """Steps of each environment in one iteration."""
    workers: bool = free(False)
    """Run each environment in a subprocess, for slow ones."""
    hidden: int = 64
    """Width of the network's layers."""
    lstm_hidden: int = 0
    """Hidden size of an LSTM, for partially observed environments; 0: no LSTM."""
    ppo: PPOConfig = PPOConfig(epochs=10, ent_coef=0.005, target_kl=0.03, scale_rewards=True)
    optim: OptimConfig = OptimConfig(lr=1e-3, clip_norm=0.5, weight_decay=0.0, eps=1e-5, schedule="linear")
    eval_every: int = free(10)
    """Iterations between evaluations."""
    eval_episodes: int = 32
    """Episodes of one evaluation."""
    eval_steps: int = 10_000
    """Steps after which an evaluated episode is stopped."""

    def __post_init__(self) -> None:
        at_least(1, self, "iterations", "n_envs", "n_steps", "hidden", "eval_every", "eval_episodes", "eval_steps")
        at_least(0, self, "lstm_hidden")


def make(cfg: Config) -> gymnasium.Env:
    """YOUR ENVIRONMENT."""
    return make_env(cfg.env)


def build(cfg: Config) -> ActorCritic:
    """YOUR NETWORK."""
    with closing(make(cfg)) as env:
        return ActorCritic(*spaces_of(env), cfg.hidden, cfg.lstm_hidden)


def train(cfg: Config, world: World) -> Summary:
    policy, loss = build(cfg), partial(ppo.ppo_loss, cfg=cfg.ppo)
    updates = cfg.iterations * cfg.ppo.epochs * cfg.ppo.minibatches
    learner = Learner(policy, cfg.optim, world, global_batch=cfg.n_envs, updates=updates)
    make_vec_env = from_gymnasium(partial(make, cfg), world.seed, world.device, workers=cfg.workers)
    cut_time = not cfg.lstm_hidden  # minibatches of single steps; an LSTM needs whole sequences
    collector = Collector(policy, make_vec_env, cfg.n_envs, cfg.n_steps, cfg.ppo, world, cut_time=cut_time)
    keep = dict(learner=learner, collector=collector)
    with closing(collector), Run.open(cfg, world, keep=keep) as run:
        for iteration in run.iterations(cfg.iterations, long=True):  # a stop in a long one repeats it on resume
            rollout = collector.collect(policy, iteration)
            run.log(ppo.update(learner, loss, rollout, collector.ids, cfg.ppo, iteration))
            run.log(collector.statistics(), prefix="rollout")
            if run.every(cfg.eval_every):
                run.log(evaluate(policy, cfg, world), prefix="val")
                run.save()
    return run.finish(export=policy)


def evaluate(model: ActorCritic, cfg: Config, world: World) -> dict[str, float]:
    """Mean reward and length of whole episodes with the most likely actions and other seeds."""
    make_vec_env = from_gymnasium(partial(make, cfg), world.seed + 1_000_003, world.device, workers=cfg.workers)
    return evaluate_policy(model, make_vec_env, cfg.eval_episodes, world, max_steps=cfg.eval_steps).means()
