"""What both sides of gymnasium_curves.py learn, with which settings, and how it is recorded. Imported by both."""

from __future__ import annotations

import json
import sys
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from importlib import metadata
from importlib.util import find_spec
from typing import Any

import gymnasium
import numpy as np
import torch

PACKAGES = ("torch", "numpy", "gymnasium", "stable-baselines3", "sb3-contrib")
HIDDEN, MEMORY = 64, 64
"""Two layers of 64 for actor and for critic; where there is a memory, an LSTM of 64."""
EPOCHS, MINIBATCHES = 10, 4
CLIP_RANGE, NORM, GAMMA, GAE_LAMBDA, VF_COEF, ENT_COEF = 0.2, 0.5, 0.99, 0.95, 0.5, 0.0
LR, EPS = 3e-4, 1e-5
"""Adam's; the rate falls linearly to zero over the samples."""
SOLVED = 475.0
"""Mean reward of WINDOW episodes at which gymnasium calls CartPole-v1 solved."""
WINDOW, POINTS = 100, 60
"""Episodes that a mean is taken over, and points of a curve."""


@dataclass(frozen=True)
class Game:
    """`samples`: steps of all environments together, a multiple of n_envs x n_steps."""

    env_id: str
    samples: int
    n_envs: int
    n_steps: int
    recurrent: bool = False
    """Velocities are hidden, and the policy has a memory."""

    @property
    def rollouts(self) -> int:
        return self.samples // (self.n_envs * self.n_steps)

    @property
    def updates(self) -> int:
        return self.rollouts * EPOCHS * MINIBATCHES


GAMES = {
    "CartPole-v1, velocities hidden": Game("CartPole-v1", 143_360, n_envs=32, n_steps=64, recurrent=True),
    "CartPole-v1": Game("CartPole-v1", 100_352, n_envs=8, n_steps=128),
    "Acrobot-v1": Game("Acrobot-v1", 102_400, n_envs=16, n_steps=128),
}


class HideVelocities(gymnasium.ObservationWrapper[Any, Any, Any]):
    """CartPole that shows place and angle alone: who does not remember cannot know how fast they change."""

    SHOWN = (0, 2)

    def __init__(self, env: gymnasium.Env[Any, Any]) -> None:
        super().__init__(env)
        full = env.observation_space
        assert isinstance(full, gymnasium.spaces.Box)
        low, high = full.low[list(self.SHOWN)], full.high[list(self.SHOWN)]
        self.observation_space = gymnasium.spaces.Box(low, high, dtype=np.float32)

    def observation(self, observation: np.ndarray) -> np.ndarray:
        return observation[list(self.SHOWN)]


class Record:
    """Rewards of the episodes as they end, as the environment gives them.

    `curve`: [steps of all environments, mean over the last WINDOW episodes], POINTS of them where episodes are short;
    empty before one has ended.
    """

    def __init__(self, game: Game) -> None:
        self.game, self.last = game, deque[float](maxlen=WINDOW)
        self.curve: list[tuple[int, float]] = []

    def ended(self, env_steps: int, reward: float) -> None:
        """An episode, after so many steps of its own environment; all of them step together."""
        steps, every = env_steps * self.game.n_envs, self.game.samples // POINTS
        self.last.append(reward)
        if self.curve and self.curve[-1][0] // every == steps // every:
            self.curve.pop()
        self.curve.append((steps, round(float(np.mean(self.last)), 3)))


class Recorded(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Tells a record of each episode that ends."""

    def __init__(self, env: gymnasium.Env[Any, Any], record: Record) -> None:
        super().__init__(env)
        self.record, self.steps, self.reward = record, 0, 0.0

    def step(self, action: Any) -> Any:
        moved = self.env.step(action)
        self.steps, self.reward = self.steps + 1, self.reward + float(moved[1])
        if moved[2] or moved[3]:
            self.record.ended(self.steps, self.reward)
            self.reward = 0.0
        return moved


def maker(game: Game, record: Record) -> Callable[[], gymnasium.Env[Any, Any]]:
    """One environment of the game, recorded."""

    def make() -> gymnasium.Env[Any, Any]:
        env = gymnasium.make(game.env_id)
        return Recorded(HideVelocities(env) if game.recurrent else env, record)

    return make


def play(learn: Callable[[Game, Record, int], torch.nn.Module]) -> None:
    """Learn the game that the parent named, with one thread, and tell it one line of JSON. `learn`: a side's training
    with a seed; the policy comes back."""
    asked = json.loads(sys.argv[1])
    torch.set_num_threads(1)
    game = Game(**asked["game"])
    record, begin = Record(game), time.process_time()
    policy = learn(game, record, asked["seed"])
    found = {
        "curve": record.curve,
        "parameters": sum(p.numel() for p in policy.parameters()),
        "updates": game.updates,
        "cpu_s": round(time.process_time() - begin, 1),
        "versions": {name: metadata.version(name) for name in PACKAGES if find_spec(name.replace("-", "_"))},
    }
    print(json.dumps(found), flush=True)
