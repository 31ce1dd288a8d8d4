"""Gymnasium environments for `ranks.rl`: `pip install 'ranks[gymnasium]'`.

    make_vec_env = from_gymnasium(partial(make_env, "CartPole-v1"), world.seed, world.device)
    policy = ActorCritic(*spaces_of(make_env("CartPole-v1")))

The names below are imported when they are first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ranks.rl.gymnasium.environments import GymnasiumVecEnv as GymnasiumVecEnv
    from ranks.rl.gymnasium.environments import from_gymnasium as from_gymnasium
    from ranks.rl.gymnasium.environments import make_env as make_env
    from ranks.rl.gymnasium.spaces import spaces_of as spaces_of

HOMES = {
    "ranks.rl.gymnasium.environments": ("GymnasiumVecEnv", "from_gymnasium", "make_env"),
    "ranks.rl.gymnasium.spaces": ("spaces_of",),
}
PUBLIC = {name: home for home, names in HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in PUBLIC:
        raise AttributeError(f"module 'ranks.rl.gymnasium' has no attribute {name!r}")
    return getattr(import_module(PUBLIC[name]), name)


def __dir__() -> list[str]:
    return [*PUBLIC]
