"""Episodes that are played again: what it costs, what is noticed, and the log of actions."""

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
from ranks.rl.gymnasium.replayed_vec_env import ReplayedEnvironments
from tests.rl.games import CPU, Game


class Counted(Game):
    """Of all made, resets, steps and closings are counted."""

    resets = steps_made = closed = 0

    def reset(self, **keywords: Any) -> Any:
        Counted.resets += 1
        return super().reset(**keywords)

    def step(self, action: Any) -> Any:
        Counted.steps_made += 1
        return super().step(action)

    def close(self) -> None:
        Counted.closed += 1


def test_a_resume_costs_one_reset_an_environment_and_as_many_steps_as_actions() -> None:
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


class Secret(Game):
    """Every life has another reward, which it does not show."""

    lives = 0

    def reset(self, **keywords: Any) -> Any:
        Secret.lives += 1
        self.secret = Secret.lives
        return super().reset(**keywords)

    def step(self, action: Any) -> Any:
        observation, _, *rest = super().step(action)
        return observation, float(self.secret), *rest


class Detour(Secret):
    """Every life shows something else in its first step, and the same from then on."""

    def step(self, action: Any) -> Any:
        observation, reward, *rest = Game.step(self, action)
        return observation + (self.secret if self.steps == 1 else 0), reward, *rest


@pytest.mark.parametrize("game", [Secret, Detour])
def test_a_difference_that_the_last_observation_does_not_show_is_noticed(game: type[Game]) -> None:
    environment = from_gymnasium(game, 0, CPU)(range(2))
    for _ in range(2):
        environment.step(torch.zeros(2))
    with pytest.warns(UserWarning, match="2 environments did not repeat"):
        environment.load_state_dict(environment.state_dict())


def test_a_log_holds_the_actions_of_running_episodes_and_zeros_behind_them() -> None:
    log, rng = ActionLog(3, (2,), np.dtype(np.float32)), np.random.default_rng(0)
    expected: list[list[Any]] = [[], [], []]
    for step in range(100):
        actions = rng.random((3, 2), np.float32)
        log.append(actions)
        for row in range(3):
            expected[row].append(actions[row])
        ended_B = np.array([step % 7 == 6, step % 40 == 39, False])
        log.forget(ended_B)
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


def test_a_log_is_copied_as_often_as_it_doubles(monkeypatch: pytest.MonkeyPatch) -> None:
    copies = list[int]()
    concatenate = np.concatenate
    monkeypatch.setattr(np, "concatenate", lambda *args: copies.append(1) or concatenate(*args))
    log = ActionLog(2, (), np.dtype(np.int64))
    for _ in range(1000):
        log.append(np.zeros(2, np.int64))
    assert len(copies) == 7, "16, 32, 64, ..., 1024"


@pytest.mark.parametrize(("limit", "value"), [("MANY_ACTIONS", 5), ("MANY_BYTES", 5 * 2 * 8)])
def test_of_an_episode_that_gets_very_long_one_line_says_what_it_costs(
    limit: str, value: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(action_log, limit, value)
    log = ActionLog(2, (), np.dtype(np.int64))
    for _ in range(5):
        log.append(np.zeros(2, np.int64))
    with pytest.warns(UserWarning, match=r"6 actions: .* MB are copied .*; end episodes sooner"):
        log.append(np.zeros(2, np.int64))
    log.append(np.zeros(2, np.int64))


# What fails -----------------------------------------------------------------------------------------------------------


class Broken(Game):
    """It fails in one way."""

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


def group_of(make: Any, ids: range, workers: bool) -> ReplayedEnvironments:
    return from_gymnasium(make, 0, CPU, workers=workers)(ids)


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
@pytest.mark.parametrize("workers", [False, True], ids=["in process", "in workers"])
@pytest.mark.parametrize(
    ("way", "said"),
    [
        (
            "raises",
            r"asked: step of environment 5\nfound: ValueError: the simulator lost its licence \(.*y:\d+\)",
        ),
        ("old", r"step of environment 5\nfound: it gave 4 values\n   do: let step return observation, reward, term"),
        ("reward", r"step of environment 5\nfound: a reward of shape \(1,\)\n   do: let it be one number"),
        ("shape", r"the observation of environment 5\nfound: it does not fit Box.*\n   do: let reset and step show"),
    ],
)
def test_a_step_that_fails_is_told_with_its_environment(
    way: str, said: str, workers: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Broken, "way", way)
    environment = group_of(Broken, range(5, 7), workers)
    with pytest.raises(UserError, match=said):
        step_and_look(environment)
    environment.close()


def step_and_look(environment: ReplayedEnvironments) -> None:
    environment.step(torch.zeros(2))
    environment.observe()


def nothing() -> None:
    """A function that forgets to return its environment."""


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
@pytest.mark.parametrize("workers", [False, True], ids=["in process", "in workers"])
@pytest.mark.parametrize(
    ("make", "said"),
    [
        (
            OldReset,
            r"reset of environment 5\nfound: TypeError: .*'seed'.*\n   do: let it be reset\(self",
        ),
        (ShortReset, r"reset of environment 5\nfound: it gave a ndarray\n   do: let it be reset"),
        (nothing, r"to make environment 5\nfound: a NoneType was made\n   do: return a gymnasium.Env"),
        (lambda: Game(1 / 0), r"to make environment 5\nfound: ZeroDivisionError: .* \(.*replay.py:\d+\)"),  # type: ignore[arg-type]
    ],
)
def test_an_environment_that_cannot_be_made_or_reset_is_told_too(make: Any, said: str, workers: bool) -> None:
    with pytest.raises(UserError, match=said):
        group_of(make, range(5, 7), workers)


class Miscounts(Game):
    """Its choices count from 1."""

    observation_space = spaces.Dict({"kinds": spaces.MultiDiscrete([4, 9])})

    def show(self) -> Any:
        return {"kinds": np.array([4, 0])}


def test_a_choice_that_its_space_does_not_hold_is_told() -> None:
    said = r"the observation kinds of environment 5\nfound: 4, which MultiDiscrete\(\[4 9\]\) does not hold"
    with pytest.raises(UserError, match=said):
        group_of(Miscounts, range(5, 7), workers=False).observe()


def test_environments_of_a_group_have_the_same_spaces() -> None:
    taken = iter([spaces.Discrete(3), spaces.Discrete(4)])
    with pytest.raises(UserError, match="environment 6 beside environment 5"):
        group_of(lambda: Game(next(taken)), range(5, 7), workers=False)
