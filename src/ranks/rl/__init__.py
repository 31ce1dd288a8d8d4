"""On-policy reinforcement learning: PPO with any environment and policy, on any number of ranks.

    cfg = PPOConfig(clip_range=0.2, ent_coef=0.01)
    make_vec_env = from_gymnasium(partial(make_env, "CartPole-v1"), world.seed, world.device)
    collector = Collector(policy, make_vec_env, n_envs, n_steps, cfg, world)
    loss = partial(ppo.ppo_loss, cfg=cfg)
    for iteration in run.iterations(iterations, long=True):
        rollout = collector.collect(policy, iteration)
        run.log(ppo.update(learner, loss, rollout, collector.ids, cfg, iteration))
        run.log(collector.statistics(), prefix="rollout")

`ranks new my_agent --shape on-policy` writes a complete file. The names below are imported when
they are first used, so `import ranks.rl` does not import torch. What needs gymnasium is in
`ranks.rl.gymnasium`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ranks.rl import ppo as ppo
    from ranks.rl.collector import Collector as Collector
    from ranks.rl.config import PPOConfig as PPOConfig
    from ranks.rl.environments import Transition as Transition
    from ranks.rl.environments import VecEnv as VecEnv
    from ranks.rl.evaluation import evaluate_policy as evaluate_policy
    from ranks.rl.policies.actor_critic import ActorCritic as ActorCritic
    from ranks.rl.policies.distributions import Bernoulli as Bernoulli
    from ranks.rl.policies.distributions import Categorical as Categorical
    from ranks.rl.policies.distributions import DiagonalGaussian as DiagonalGaussian
    from ranks.rl.policies.distributions import Distribution as Distribution
    from ranks.rl.policies.distributions import MultiCategorical as MultiCategorical
    from ranks.rl.policies.policy import Policy as Policy
    from ranks.rl.policies.recurrent import initial_lstm_state as initial_lstm_state
    from ranks.rl.policies.recurrent import unroll_lstm as unroll_lstm
    from ranks.rl.pytree import State as State
    from ranks.rl.pytree import Tree as Tree
    from ranks.rl.returns import gae as gae
    from ranks.rl.rollouts.rollout import Rollout as Rollout

HOMES = {
    "ranks.rl.collector": ("Collector",),
    "ranks.rl.config": ("PPOConfig",),
    "ranks.rl.policies.distributions": (
        "Bernoulli",
        "Categorical",
        "DiagonalGaussian",
        "Distribution",
        "MultiCategorical",
    ),
    "ranks.rl.environments": ("Transition", "VecEnv"),
    "ranks.rl.evaluation": ("evaluate_policy",),
    "ranks.rl.policies.actor_critic": ("ActorCritic",),
    "ranks.rl.policies.recurrent": ("initial_lstm_state", "unroll_lstm"),
    "ranks.rl.policies.policy": ("Policy",),
    "ranks.rl.pytree": ("State", "Tree"),
    "ranks.rl.returns": ("gae",),
    "ranks.rl.rollouts.rollout": ("Rollout",),
}
PUBLIC = {name: home for home, names in HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name == "ppo":
        return import_module("ranks.rl.ppo")
    if name not in PUBLIC:
        raise AttributeError(f"module 'ranks.rl' has no attribute {name!r}")
    return getattr(import_module(PUBLIC[name]), name)


def __dir__() -> list[str]:
    return [*PUBLIC, "ppo"]
