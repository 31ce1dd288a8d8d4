"""One gymnasium environment, with a digest of its running episode, and its errors as a `UserError`.

It runs in the process of a rank or in a subprocess; errors in a user's code read the same from
both.
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

MakeEnv = Callable[[], gymnasium.Env[Any, Any]]
AnySpace = gymnasium.Space[Any]
Request = tuple[Literal["reset", "step", "replay"], tuple[Any, ...]]
"""The name of a method of `SingleEnv`, and its arguments."""

CONTINUE = "fix it and run the same command again: the run resumes from its newest checkpoint"
RESET = "write reset(self, *, seed=None, options=None), call super().reset(seed=seed), return observation, info"
STEP = "let step return observation, reward, terminated, truncated, info"
LIBRARIES = [str(Path(__file__).parent.parent), str(Path(os.__file__).parent), "site-packages", "<"]
"""Parts of file names of code that is not the user's."""


class StepResult(NamedTuple):
    """The result of a step, or of a reset (with reward 0 and no end)."""

    observation: Any
    digest: int
    """int64: a hash of all observations and rewards of the episode so far."""
    reward: float = 0.0
    terminated: bool = False
    truncated: bool = False

    @property
    def ended(self) -> bool:
        """The episode terminated or was truncated."""
        return self.terminated or self.truncated


class SingleEnv:
    """Environment `env_id`.

    Any exception of its code becomes a UserError with the id, the text and the line.
    """

    def __init__(self, make: MakeEnv, env_id: int) -> None:
        self.name = f"environment {env_id}"
        try:
            made: Any = make()
        except (Exception, SystemExit) as error:
            raise env_error(f"to make {self.name}", error) from error
        if not isinstance(made, gymnasium.Env):
            do = "return a gymnasium.Env; for a vector environment use GymnasiumVecEnv"
            raise UserError(f"to make {self.name}", f"a {type(made).__name__} was made", do)
        self.env: gymnasium.Env[Any, Any] = made
        self._hash = hashlib.blake2b(digest_size=8)

    @property
    def spaces(self) -> tuple[AnySpace, AnySpace]:
        """The observation space and the action space."""
        return self.env.observation_space, self.env.action_space

    def handle(self, request: Request) -> StepResult:
        """Call the requested method."""
        name, arguments = request
        return getattr(self, name)(*arguments)

    def reset(self, seed: int) -> StepResult:
        """Start the episode of this seed."""
        try:
            result: Any = self.env.reset(seed=seed)
        except (Exception, SystemExit) as error:
            raise env_error(f"reset of {self.name}", error) from error
        if not isinstance(result, tuple) or len(cast("tuple[Any, ...]", result)) != 2:
            raise UserError(f"reset of {self.name}", f"it returned {_describe(result)}", RESET)
        self._hash = hashlib.blake2b(digest_size=8)
        return StepResult(result[0], self._digest(result[0], 0.0))

    def step(self, action: Any) -> StepResult:
        """Do one step."""
        try:
            result: Any = self.env.step(action)
        except (Exception, SystemExit) as error:
            raise env_error(f"step of {self.name}", error) from error
        if not isinstance(result, tuple) or len(cast("tuple[Any, ...]", result)) != 5:
            raise UserError(f"step of {self.name}", f"it returned {_describe(result)}", STEP)
        observation, reward, terminated, truncated, _ = cast("tuple[Any, ...]", result)
        if np.ndim(reward):
            raise UserError(f"step of {self.name}", f"a reward of shape {np.shape(reward)}", "return one number")
        if np.asarray(reward).dtype.kind not in "biuf":
            raise UserError(f"step of {self.name}", f"the reward {reward!r}", "return one number")
        for end in (terminated, truncated):
            if np.ndim(end) or np.asarray(end).dtype.kind not in "biu":
                raise UserError(f"step of {self.name}", f"{end!r} as terminated or truncated", STEP)
        reward = float(reward)
        return StepResult(observation, self._digest(observation, reward), reward, bool(terminated), bool(truncated))

    def replay(self, seed: int, actions: Sequence[Any]) -> StepResult:
        """Repeat an episode with these actions, until it ends; return its last result."""
        result = self.reset(seed)
        for action in actions:
            if result.ended:
                break
            result = self.step(action)
        return result

    def _digest(self, observation: Any, reward: float) -> int:
        for part in _bytes_of(observation):
            self._hash.update(part)
        self._hash.update(struct.pack("d", reward))
        return int.from_bytes(self._hash.digest(), "little", signed=True)

    def close(self) -> None:
        """Close the environment."""
        try:
            self.env.close()
        except (Exception, SystemExit) as error:
            raise env_error(f"to close {self.name}", error) from error


def _bytes_of(observation: Any) -> Iterator[bytes]:
    if isinstance(observation, dict):
        for _, part in sorted(cast("dict[str, Any]", observation).items()):
            yield from _bytes_of(part)
    elif isinstance(observation, tuple):
        for part in cast("tuple[Any, ...]", observation):
            yield from _bytes_of(part)
    else:
        yield np.asarray(observation).tobytes()


def _describe(result: object) -> str:
    if isinstance(result, tuple):
        return f"{len(cast('tuple[Any, ...]', result))} values"
    return f"a {type(result).__name__}"


def env_error(asked: str, error: Exception | SystemExit) -> UserError:
    """Convert an exception of a user's code, with the deepest line in the user's own files."""
    if isinstance(error, UserError):
        return error
    text = " ".join(f"{type(error).__name__}: {error}".split())
    if isinstance(error, SystemExit):
        text = f"it calls sys.exit({error.code!r}), which would end the whole run"
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if not any(library in frame.filename for library in LIBRARIES)]
    where = f" ({own[-1].filename}:{own[-1].lineno})" if own else ""
    do = RESET if "'seed'" in text else STEP if "expected 5" in text else CONTINUE
    return UserError(asked, text + where, do)
