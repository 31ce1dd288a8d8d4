"""ReplayedVecEnv: what a replay costs, what it detects, the action log, and errors of a user's
environment."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from ranks import UserError

pytest.importorskip("gymnasium")
import numpy as np
from gymnasium import spaces

from ranks.rl.gymnasium import action_log
from ranks.rl.gymnasium.action_log import ActionLog
from ranks.rl.gymnasium.environments import from_gymnasium
from ranks.rl.gymnasium.replayed_vec_env import ReplayedVecEnv
from tests.rl.environments.gymnasium_envs import CPU, Game


class Counted(Game):
    """Counts the resets, steps and closings of all instances."""

    resets = steps_made = closed = 0

    def reset(self, **keywords: Any) -> Any:
        Counted.resets += 1
        return super().reset(**keywords)

    def step(self, action: Any) -> Any:
        Counted.steps_made += 1
        return super().step(action)

    def close(self) -> None:
        Counted.closed += 1


def test_a_resume_costs_one_reset_and_the_recorded_steps_of_each_environment() -> None:
    old, new = (from_gymnasium(Counted, 0, CPU)(range(8)) for _ in range(2))
    for _ in range(20):
        old.step(torch.zeros(8))
    state = old.state_dict()
    Counted.resets = Counted.steps_made = Counted.closed = 0
    new.load_state_dict(state)
    assert Counted.resets == 8
    assert Counted.steps_made == int(state["length_B"].sum()) > 8
    new.close()
    assert Counted.closed == 8


class HiddenReward(Game):
    """Each episode has another reward, which the observations do not contain."""

    count = 0

    def reset(self, **keywords: Any) -> Any:
        HiddenReward.count += 1
        self.reward = HiddenReward.count
        return super().reset(**keywords)

    def step(self, action: Any) -> Any:
        observation, _, *rest = super().step(action)
        return observation, float(self.reward), *rest


class OtherFirstStep(HiddenReward):
    """Each episode has another observation in its first step, and the same ones from then on."""

    def step(self, action: Any) -> Any:
        observation, reward, *rest = Game.step(self, action)
        return observation + (self.reward if self.steps == 1 else 0), reward, *rest


@pytest.mark.parametrize("game", [HiddenReward, OtherFirstStep])
def test_a_difference_in_an_earlier_observation_or_reward_is_detected(game: type[Game]) -> None:
    environment = from_gymnasium(game, 0, CPU)(range(2))
    for _ in range(2):
        environment.step(torch.zeros(2))
    with pytest.warns(UserWarning, match="2 environments did not repeat"):
        environment.load_state_dict(environment.state_dict())


def test_the_log_holds_the_actions_of_running_episodes_zero_padded() -> None:
    log, rng = ActionLog(3, (2,), np.dtype(np.float32)), np.random.default_rng(0)
    expected: list[list[Any]] = [[], [], []]
    for step in range(100):
        actions = rng.random((3, 2), np.float32)
        log.append(actions)
        for row in range(3):
            expected[row].append(actions[row])
        ended_B = np.array([step % 7 == 6, step % 40 == 39, False])
        log.clear(ended_B)
        for row in np.flatnonzero(ended_B):
            expected[row].clear()
        assert log.length_B.tolist() == [len(row) for row in expected]
        assert log.action_BL.shape == (3, step + 1, 2)
        for row in range(3):
            assert np.array_equal(log.row(row), np.array(expected[row], np.float32).reshape(-1, 2))
            assert not log.action_BL[row, len(expected[row]) :].any()
    again = ActionLog(3, (2,), np.dtype(np.float32))
    again.load(log.length_B, log.action_BL)
    again.append(actions)
    log.append(actions)
    assert np.array_equal(again.action_BL, log.action_BL)


def test_the_log_is_copied_only_when_it_doubles(monkeypatch: pytest.MonkeyPatch) -> None:
    copies = list[int]()
    concatenate = np.concatenate
    monkeypatch.setattr(np, "concatenate", lambda *args: copies.append(1) or concatenate(*args))
    log = ActionLog(2, (), np.dtype(np.int64))
    for _ in range(1000):
        log.append(np.zeros(2, np.int64))
    assert len(copies) == 7, "16, 32, 64, ..., 1024"


@pytest.mark.parametrize(("limit", "value"), [("MANY_ACTIONS", 5), ("MANY_BYTES", 5 * 2 * 8)])
def test_a_very_long_episode_warns_once(limit: str, value: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(action_log, limit, value)
    log = ActionLog(2, (), np.dtype(np.int64))
    for _ in range(5):
        log.append(np.zeros(2, np.int64))
    with pytest.warns(UserWarning, match=r"6 actions: .* MB are copied .*; end episodes sooner"):
        log.append(np.zeros(2, np.int64))
    log.append(np.zeros(2, np.int64))


# Errors of a user's environment ---------------------------------------------------------------------------------------


class Broken(Game):
    """It fails in the way that `way` names."""

    observation_space = spaces.Box(-1, 1, (4,), np.float32)
    way = ""

    def step(self, action: Any) -> Any:
        observation, reward, terminated, truncated, info = super().step(action)
        if self.way == "raises":
            raise ValueError("the simulator\nlost its licence")
        if self.way == "old":
            return observation, reward, terminated, info
        if self.way == "shape":
            return observation[:2], reward, terminated, truncated, info
        return observation, np.array([reward]), terminated, truncated, info


class OldReset(Game):
    def reset(self) -> Any:  # type: ignore[override]
        return super().reset(), {}


class ShortReset(Game):
    def reset(self, **keywords: Any) -> Any:
        return super().reset(**keywords)[0]


def group_of(make: Any, ids: range, workers: bool) -> ReplayedVecEnv:
    return from_gymnasium(make, 0, CPU, workers=workers)(ids)


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
@pytest.mark.parametrize("workers", [False, True], ids=["in process", "in workers"])
@pytest.mark.parametrize(
    ("way", "message"),
    [
        (
            "raises",
            r"asked: step of environment 5\nfound: ValueError: the simulator lost its licence \(.*y:\d+\)",
        ),
        (
            "old",
            r"step of environment 5\nfound: it returned 4 values\n   do: let step return observation, reward, term",
        ),
        ("reward", r"step of environment 5\nfound: a reward of shape \(1,\)\n   do: return one number"),
        ("shape", r"the observation of environment 5\nfound: it does not fit Box.*\n   do: let reset and step return"),
    ],
)
def test_a_failing_step_is_reported_with_its_environment(
    way: str, message: str, workers: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Broken, "way", way)
    environment = group_of(Broken, range(5, 7), workers)
    with pytest.raises(UserError, match=message):
        step_and_observe(environment)
    environment.close()


def step_and_observe(environment: ReplayedVecEnv) -> None:
    environment.step(torch.zeros(2))
    environment.observe()


def no_environment() -> None:
    """A `make` that forgets to return its environment."""


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
@pytest.mark.parametrize("workers", [False, True], ids=["in process", "in workers"])
@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            OldReset,
            r"reset of environment 5\nfound: TypeError: .*'seed'.*\n   do: write reset\(self",
        ),
        (ShortReset, r"reset of environment 5\nfound: it returned a ndarray\n   do: write reset"),
        (no_environment, r"to make environment 5\nfound: a NoneType was made\n   do: return a gymnasium.Env"),
        (lambda: Game(1 / 0), r"to make environment 5\nfound: ZeroDivisionError: .* \(.*vec_env.py:\d+\)"),  # type: ignore[arg-type]
    ],
)
def test_a_failing_constructor_or_reset_is_reported_with_its_environment(
    make: Any, message: str, workers: bool
) -> None:
    with pytest.raises(UserError, match=message):
        group_of(make, range(5, 7), workers)


class CountsFrom1(Game):
    """Its discrete observations count from 1."""

    observation_space = spaces.Dict({"kinds": spaces.MultiDiscrete([4, 9])})

    def observation(self) -> Any:
        return {"kinds": np.array([4, 0])}


def test_an_observation_outside_its_space_is_rejected() -> None:
    message = r"the observation kinds of environment 5\nfound: 4, which is not in MultiDiscrete\(\[4 9\]\)"
    with pytest.raises(UserError, match=message):
        group_of(CountsFrom1, range(5, 7), workers=False).observe()


def test_environments_with_different_spaces_are_rejected() -> None:
    action_spaces = iter([spaces.Discrete(3), spaces.Discrete(4)])
    with pytest.raises(UserError, match="environment 6 and environment 5"):
        group_of(lambda: Game(next(action_spaces)), range(5, 7), workers=False)
