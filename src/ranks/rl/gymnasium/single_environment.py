"""One gymnasium environment, as a row of a group: what it shows, a digest of its episode, and its failures told.

It lives in the rank, or in a process of its own; what a user's code does wrong is told alike from both.
"""

from __future__ import annotations

import hashlib
import os
import struct
import traceback
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple, cast

import gymnasium
import numpy as np

from ranks.errors import UserError

MakeOne = Callable[[], gymnasium.Env[Any, Any]]
AnySpace = gymnasium.Space[Any]
Request = tuple[Literal["reset", "step", "play_again"], tuple[Any, ...]]
"""A method of `SingleEnvironment`, and its arguments."""

CONTINUE = "mend it and start again: the run continues from its last checkpoint"
RESET = "let it be reset(self, *, seed=None, options=None), call super().reset(seed=seed), return observation, info"
STEP = "let step return observation, reward, terminated, truncated, info"
LIBRARIES = [str(Path(__file__).parent.parent), str(Path(os.__file__).parent), "site-packages", "<"]
"""Where code is not the user's."""


class Seen(NamedTuple):
    """What a reset (without reward and end) or a step showed."""

    observation: Any
    digest: int
    """int64: of all observations and rewards of the episode so far."""
    reward: float = 0.0
    terminated: bool = False
    truncated: bool = False

    @property
    def is_end(self) -> bool:
        return self.terminated or self.truncated


class SingleEnvironment:
    """Environment `env_id`. Whatever its code raises becomes a UserError with the id, its text, and its line."""

    def __init__(self, make: MakeOne, env_id: int) -> None:
        self.asked = f"environment {env_id}"
        try:
            made: Any = make()
        except Exception as error:
            raise failure(f"to make {self.asked}", error) from error
        if not isinstance(made, gymnasium.Env):
            do = "return a gymnasium.Env; a vector environment goes into VectorEnvironments"
            raise UserError(f"to make {self.asked}", f"a {type(made).__name__} was made", do)
        self.env: gymnasium.Env[Any, Any] = made
        self._hash = hashlib.blake2b(digest_size=8)

    @property
    def spaces(self) -> tuple[AnySpace, AnySpace]:
        """Of observations, of actions."""
        return self.env.observation_space, self.env.action_space

    def answer(self, request: Request) -> Seen:
        """Carry out a request."""
        name, arguments = request
        return getattr(self, name)(*arguments)

    def reset(self, seed: int) -> Seen:
        """Begin the episode of this seed."""
        try:
            found: Any = self.env.reset(seed=seed)
        except Exception as error:
            raise failure(f"reset of {self.asked}", error) from error
        if not isinstance(found, tuple) or len(cast("tuple[Any, ...]", found)) != 2:
            raise UserError(f"reset of {self.asked}", f"it gave {_what(found)}", RESET)
        self._hash = hashlib.blake2b(digest_size=8)
        return Seen(found[0], self._digest(found[0], 0.0))

    def step(self, action: Any) -> Seen:
        """Act."""
        try:
            found: Any = self.env.step(action)
        except Exception as error:
            raise failure(f"step of {self.asked}", error) from error
        if not isinstance(found, tuple) or len(cast("tuple[Any, ...]", found)) != 5:
            raise UserError(f"step of {self.asked}", f"it gave {_what(found)}", STEP)
        observation, reward, terminated, truncated, _ = cast("tuple[Any, ...]", found)
        if np.ndim(reward):
            raise UserError(f"step of {self.asked}", f"a reward of shape {np.shape(reward)}", "let it be one number")
        reward = float(reward)
        return Seen(observation, self._digest(observation, reward), reward, bool(terminated), bool(truncated))

    def play_again(self, seed: int, actions: Sequence[Any]) -> Seen:
        """The episode of this seed and these actions, or as far as it goes; what its last step showed."""
        seen = self.reset(seed)
        for action in actions:
            if seen.is_end:
                break
            seen = self.step(action)
        return seen

    def _digest(self, observation: Any, reward: float) -> int:
        for part in _bytes_of(observation):
            self._hash.update(part)
        self._hash.update(struct.pack("d", reward))
        return int.from_bytes(self._hash.digest(), "little", signed=True)

    def close(self) -> None:
        """Close it."""
        try:
            self.env.close()
        except Exception as error:
            raise failure(f"to close {self.asked}", error) from error


def _bytes_of(observation: Any) -> Iterator[bytes]:
    if isinstance(observation, dict):
        for _, part in sorted(cast("dict[str, Any]", observation).items()):
            yield from _bytes_of(part)
    elif isinstance(observation, tuple):
        for part in cast("tuple[Any, ...]", observation):
            yield from _bytes_of(part)
    else:
        yield np.asarray(observation).tobytes()


def _what(found: object) -> str:
    return f"{len(cast('tuple[Any, ...]', found))} values" if isinstance(found, tuple) else f"a {type(found).__name__}"


def failure(asked: str, error: Exception) -> UserError:
    """What a user's code raised: its own text, and the deepest line that is the user's, if there is one."""
    if isinstance(error, UserError):
        return error
    text = " ".join(f"{type(error).__name__}: {error}".split())
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if not any(library in frame.filename for library in LIBRARIES)]
    where = f" ({own[-1].filename}:{own[-1].lineno})" if own else ""
    do = RESET if "'seed'" in text else STEP if "expected 5" in text else CONTINUE
    return UserError(asked, text + where, do)
