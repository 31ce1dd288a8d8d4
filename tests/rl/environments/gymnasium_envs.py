"""Small gymnasium environments for tests.

Call `pytest.importorskip("gymnasium")` before you import this module.
"""

from __future__ import annotations

import itertools
from functools import partial
from typing import Any

import gymnasium
import numpy as np
import torch
from gymnasium import spaces
from numpy.typing import NDArray

from ranks.rl import ActorCritic
from ranks.rl.gymnasium import spaces_of

CPU = torch.device("cpu")
INF = float("inf")
BOX = spaces.Box(-1, 1, (3,), np.float32)
IMAGE = spaces.Box(0, 255, (12, 10, 3), np.uint8)
ACTION_SPACES: dict[str, tuple[Any, tuple[int, ...]]] = {
    "discrete": (spaces.Discrete(3), ()),
    "multi-discrete": (spaces.MultiDiscrete([2, 3]), (2,)),
    "multi-binary": (spaces.MultiBinary(2), (2,)),
    "box": (spaces.Box(-0.1, 0.1, (2,), np.float32), (2,)),
}
"""Action spaces by name, with the shape of one action."""


class Game(gymnasium.Env[NDArray[np.float32], Any]):
    """An episode has a number n: 3 + n % 4 steps, truncated if n is odd, else terminated; n is
    random or counted.

    An observation is (steps, sum of actions, n, noise); the reward is the number of steps so far.
    """

    observation_space = spaces.Box(-INF, INF, (4,), np.float32)

    def __init__(
        self, action_space: spaces.Space[Any] | None = None, *, counted: bool = False, truncates: bool = True
    ) -> None:
        self.action_space = action_space or spaces.Discrete(3)
        self.counted, self.truncates = counted, truncates
        self.episodes, self.actions = 0, list[Any]()

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[NDArray[np.float32], dict[str, Any]]:
        super().reset(seed=seed)
        self.turn, self.steps, self.total = self.next_turn(), 0, 0.0
        self.episodes += 1
        return self.observation(), {}

    def next_turn(self) -> int:
        return self.episodes if self.counted else int(self.np_random.integers(8))

    def observation(self) -> NDArray[np.float32]:
        noise = 0.0 if self.counted else self.np_random.random()
        return np.array([self.steps, self.total, self.turn, noise], np.float32)

    def step(self, action: Any) -> tuple[NDArray[np.float32], float, bool, bool, dict[str, Any]]:
        assert self.action_space.contains(action), f"{action!r} is not in {self.action_space}"
        assert self.steps < 3 + self.turn % 4, "a step after the end"
        self.actions.append(action)
        self.steps, self.total = self.steps + 1, self.total + float(np.sum(action))
        ended, truncated = self.steps == 3 + self.turn % 4, self.truncates and self.turn % 2 == 1
        return self.observation(), float(self.steps), ended and not truncated, ended and truncated, {}


class NonDeterministic(Game):
    """Each episode is another one, whatever the seed."""

    numbers = itertools.count()

    def next_turn(self) -> int:
        return next(self.numbers)


class RandomObservations(gymnasium.Env[Any, Any]):
    """Observations are samples of a space.

    Any action of the action space is accepted. Episodes have five steps.
    """

    def __init__(self, observation: spaces.Space[Any], action: spaces.Space[Any]) -> None:
        self.observation_space, self.action_space = observation, action

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.observation_space.seed(seed)
        self.steps = 0
        return self.observation_space.sample(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        assert self.action_space.contains(action), f"{action!r} is not in {self.action_space}"
        self.steps += 1
        return self.observation_space.sample(), 1.0, False, self.steps == 5, {}


class NamedObservations(gymnasium.ObservationWrapper[Any, Any, Any]):
    """The observation of a `Game` as a Dict of two."""

    def __init__(self, env: gymnasium.Env[Any, Any]) -> None:
        super().__init__(env)
        self.observation_space = spaces.Dict({"all": Game.observation_space, "steps": spaces.Discrete(9)})

    def observation(self, observation: NDArray[np.float32]) -> dict[str, Any]:
        return {"all": observation, "steps": int(observation[0])}


counting = partial(Game, spaces.Discrete(1), counted=True)


def policy_of(env: Any, lstm_hidden: int = 0) -> ActorCritic:
    torch.manual_seed(1)
    return ActorCritic(*spaces_of(env), 8, lstm_hidden)
