"""What an environment's own code may do wrong in one step, and the error that names it."""

from __future__ import annotations

import sys
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from ranks.errors import UserError
from ranks.rl.gymnasium.env_pools import SubprocessEnvs
from ranks.rl.gymnasium.single_env import SingleEnv


class Returns(gymnasium.Env[Any, Any]):
    """Its step returns what it was made with, or ends the process."""

    observation_space, action_space = spaces.Box(0, 1, (2,)), spaces.Discrete(2)

    def __init__(self, reward: Any = 0.0, terminated: Any = False, leaves_in: str = "") -> None:
        self.reward, self.terminated, self.leaves_in = reward, terminated, leaves_in

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        if self.leaves_in == "reset":
            sys.exit("no data")
        return np.zeros(2, np.float32), {}

    def step(self, action: Any) -> tuple[Any, Any, Any, bool, dict[str, Any]]:
        if self.leaves_in == "step":
            sys.exit()
        return np.zeros(2, np.float32), self.reward, self.terminated, False, {}

    def close(self) -> None:
        if self.leaves_in == "close":
            sys.exit(0)


@pytest.mark.parametrize("reward", ["1.5", "much", None, b"1", 1j, {}, [1.0]], ids=repr)
def test_a_reward_that_is_no_number(reward: Any) -> None:
    env = SingleEnv(lambda: Returns(reward), 3)
    env.reset(0)
    with pytest.raises(UserError, match=r"step of environment 3\n.*reward.*\n.*return one number"):
        env.step(0)


@pytest.mark.parametrize("reward", [1, True, np.float32(1), np.array(1.0), np.int64(1)], ids=repr)
def test_all_kinds_of_numbers_are_rewards(reward: Any) -> None:
    env = SingleEnv(lambda: Returns(reward), 3)
    env.reset(0)
    assert env.step(0).reward == 1.0


@pytest.mark.parametrize("terminated", ["no", None, [False], np.zeros(2)], ids=repr)
def test_an_end_that_is_neither_true_nor_false(terminated: Any) -> None:
    env = SingleEnv(lambda: Returns(terminated=terminated), 3)
    env.reset(0)
    with pytest.raises(UserError, match="as terminated or truncated"):
        env.step(0)


@pytest.mark.parametrize("method", ["make", "reset", "step", "close"])
def test_an_environment_that_ends_the_process(method: str) -> None:
    """A run would end with exit code 0 in the middle."""

    def make() -> Returns:
        return sys.exit(3) if method == "make" else Returns(leaves_in=method)

    def use() -> None:
        env = SingleEnv(make, 3)
        env.reset(0)
        env.step(0)
        env.close()

    with pytest.raises(UserError, match=r"environment 3\nfound: it calls sys.exit\(.*which would end the whole run"):
        use()


def test_a_worker_whose_environment_ends_the_process() -> None:
    pool = SubprocessEnvs(lambda: Returns(leaves_in="step"), range(3, 4))
    try:
        pool.call({0: ("reset", (0,))})
        with pytest.raises(UserError, match=r"it calls sys.exit\(None\)"):
            pool.call({0: ("step", (0,))})
    finally:
        pool.close()
