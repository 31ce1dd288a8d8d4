"""Gymnasium environments for tests, which say what they are told; `pytest.importorskip("gymnasium")` goes before."""

from __future__ import annotations

import itertools
from functools import partial
from typing import Any

import gymnasium
import numpy as np
import torch
from gymnasium import spaces
from numpy.typing import NDArray

from ranks.rl.gymnasium.spaces import action_space, observation_spaces
from ranks.rl.policies.actor_critic import ActorCritic

CPU = torch.device("cpu")
INF = float("inf")
BOX = spaces.Box(-1, 1, (3,), np.float32)
IMAGE = spaces.Box(0, 255, (12, 10, 3), np.uint8)
TAKEN: dict[str, tuple[Any, tuple[int, ...]]] = {
    "discrete": (spaces.Discrete(3), ()),
    "multi-discrete": (spaces.MultiDiscrete([2, 3]), (2,)),
    "multi-binary": (spaces.MultiBinary(2), (2,)),
    "box": (spaces.Box(-0.1, 0.1, (2,), np.float32), (2,)),
}
"""Spaces of actions, and the shape of one."""


class Game(gymnasium.Env[NDArray[np.float32], Any]):
    """An episode of turn n has 3 + n % 4 steps; where n is odd it is cut off, else it ends in a terminal state. The
    turn is drawn from the seed, or counted. It shows steps, sum of actions, turn, noise; the steps are the reward."""

    observation_space = spaces.Box(-INF, INF, (4,), np.float32)

    def __init__(self, taken: spaces.Space[Any] | None = None, *, counted: bool = False, cut: bool = True) -> None:
        self.action_space = taken or spaces.Discrete(3)
        self.counted, self.cut = counted, cut
        self.episodes, self.seen = 0, list[Any]()

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[NDArray[np.float32], dict[str, Any]]:
        super().reset(seed=seed)
        self.turn, self.steps, self.total = self.next_turn(), 0, 0.0
        self.episodes += 1
        return self.show(), {}

    def next_turn(self) -> int:
        return self.episodes if self.counted else int(self.np_random.integers(8))

    def show(self) -> NDArray[np.float32]:
        noise = 0.0 if self.counted else self.np_random.random()
        return np.array([self.steps, self.total, self.turn, noise], np.float32)

    def step(self, action: Any) -> tuple[NDArray[np.float32], float, bool, bool, dict[str, Any]]:
        assert self.action_space.contains(action), f"{action!r} is not in {self.action_space}"
        assert self.steps < 3 + self.turn % 4, "a step after the end"
        self.seen.append(action)
        self.steps, self.total = self.steps + 1, self.total + float(np.sum(action))
        ended, cut = self.steps == 3 + self.turn % 4, self.cut and self.turn % 2 == 1
        return self.show(), float(self.steps), ended and not cut, ended and cut, {}


class Fickle(Game):
    """No two episodes are alike, whatever the seed."""

    lives = itertools.count()

    def next_turn(self) -> int:
        return next(self.lives)


class Shows(gymnasium.Env[Any, Any]):
    """It shows samples of a space, and takes any action of another for five steps."""

    def __init__(self, shown: spaces.Space[Any], taken: spaces.Space[Any]) -> None:
        self.observation_space, self.action_space = shown, taken

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.observation_space.seed(seed)
        self.steps = 0
        return self.observation_space.sample(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        assert self.action_space.contains(action), f"{action!r} is not in {self.action_space}"
        self.steps += 1
        return self.observation_space.sample(), 1.0, False, self.steps == 5, {}


class Named(gymnasium.ObservationWrapper[Any, Any, Any]):
    """What a game shows, under two names."""

    def __init__(self, env: gymnasium.Env[Any, Any]) -> None:
        super().__init__(env)
        self.observation_space = spaces.Dict({"all": Game.observation_space, "steps": spaces.Discrete(9)})

    def observation(self, observation: NDArray[np.float32]) -> dict[str, Any]:
        return {"all": observation, "steps": int(observation[0])}


counting = partial(Game, spaces.Discrete(1), counted=True)


def policy_of(env: Any, memory: int = 0) -> ActorCritic:
    torch.manual_seed(1)
    shown = observation_spaces(env.observation_space, "the test")
    taken = action_space(env.action_space, "the test")
    return ActorCritic({name: space.to_json() for name, space in shown.items()}, taken.to_json(), 8, memory)
