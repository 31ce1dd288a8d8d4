"""The environments, settings and recording of gymnasium_curves.py, imported by both sides."""

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
"""Two layers of 64 each for actor and critic; a recurrent policy has an LSTM of 64."""
EPOCHS, MINIBATCHES = 10, 4
CLIP_RANGE, NORM, GAE_LAMBDA, VF_COEF, ENT_COEF = 0.2, 0.5, 0.95, 0.5, 0.0
EPS = 1e-5
"""Of Adam."""
SOLVED = 475.0
"""Mean reward of WINDOW episodes at which gymnasium calls CartPole-v1 solved."""
WINDOW, POINTS = 100, 60
"""Episodes in a mean, and points of a curve."""


@dataclass(frozen=True)
class Game:
    """`samples`: steps of all environments together, a multiple of n_envs x n_steps."""

    env_id: str
    samples: int
    n_envs: int
    n_steps: int
    recurrent: bool = False
    """Velocities are hidden, and the policy is recurrent."""
    lr: float = 3e-4
    """Of Adam; it falls linearly to zero over the samples."""
    gamma: float = 0.99

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
    "Pendulum-v1": Game("Pendulum-v1", 204_800, n_envs=32, n_steps=64, lr=1e-3, gamma=0.9),
}


class HideVelocities(gymnasium.ObservationWrapper[Any, Any, Any]):
    """CartPole with observations of position and angle only; a policy needs memory to infer velocities."""

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
        """Add an episode that ended after `env_steps` steps of its environment; all environments step together."""
        steps, every = env_steps * self.game.n_envs, self.game.samples // POINTS
        self.last.append(reward)
        if self.curve and self.curve[-1][0] // every == steps // every:
            self.curve.pop()
        self.curve.append((steps, round(float(np.mean(self.last)), 3)))


class Recorded(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Adds each episode that ends to a record."""

    def __init__(self, env: gymnasium.Env[Any, Any], record: Record) -> None:
        super().__init__(env)
        self.record, self.steps, self.reward = record, 0, 0.0

    def step(self, action: Any) -> Any:
        transition = self.env.step(action)
        self.steps, self.reward = self.steps + 1, self.reward + float(transition[1])
        if transition[2] or transition[3]:
            self.record.ended(self.steps, self.reward)
            self.reward = 0.0
        return transition


def maker(game: Game, record: Record) -> Callable[[], gymnasium.Env[Any, Any]]:
    """One environment of the game, recorded."""

    def make() -> gymnasium.Env[Any, Any]:
        env = gymnasium.make(game.env_id)
        return Recorded(HideVelocities(env) if game.recurrent else env, record)

    return make


def main(learn: Callable[[Game, Record, int], torch.nn.Module]) -> None:
    """Train on the game of the command line with one thread and print one line of JSON.

    `learn`: the training of a side with a seed; it returns the policy.
    """
    asked = json.loads(sys.argv[1])
    torch.set_num_threads(1)
    game = Game(**asked["game"])
    record, started = Record(game), time.process_time()
    policy = learn(game, record, asked["seed"])
    found = {
        "curve": record.curve,
        "parameters": sum(p.numel() for p in policy.parameters()),
        "updates": game.updates,
        "cpu_s": round(time.process_time() - started, 1),
        "versions": {name: metadata.version(name) for name in PACKAGES if find_spec(name.replace("-", "_"))},
    }
    print(json.dumps(found), flush=True)
