"""Any gymnasium environment as a group of environments, whichever way its vector class begins episodes anew.

Legend: B environments.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import Any

import gymnasium
import numpy as np
import torch
from gymnasium.vector import AutoresetMode, VectorEnv
from numpy.typing import NDArray
from torch import Tensor

from ranks.engine.sharding import rng
from ranks.errors import UserError, nearest
from ranks.rl.environments import Transition
from ranks.rl.gymnasium.replayed import ReplayedEnvironments
from ranks.rl.gymnasium.single_environment import MakeOne, failure
from ranks.rl.gymnasium.spaces import carried_out, refuse_outside, tensors_of, transition
from ranks.rl.gymnasium.workers import InRank, InWorkers
from ranks.rl.pytree import Tree

Vector = VectorEnv[Any, Any, Any]


def maker(env_id: str, **settings: Any) -> MakeOne:
    """`gymnasium.make` of this id. Raises UserError where gymnasium knows none, or cannot make it."""

    def make() -> gymnasium.Env[Any, Any]:
        try:
            return gymnasium.make(env_id, **settings)
        except (gymnasium.error.Error, ImportError) as error:
            raise UserError(f"the environment {env_id}", " ".join(str(error).split()), _do(env_id, error)) from None

    return make


def _do(env_id: str, error: Exception) -> str:
    if isinstance(error, gymnasium.error.DependencyNotInstalled | ImportError):
        return "install the package that is named there"
    if isinstance(error, gymnasium.error.NamespaceNotFound):
        return "install the package that brings it, and import that in your file: ALE/ is ale-py's, for one"
    if isinstance(error, gymnasium.error.DeprecatedEnv):
        return "take the version that is named there"
    every = "`python -c 'import gymnasium; gymnasium.pprint_registry()'` lists those there are"
    return nearest(env_id, list(gymnasium.registry), every)


def from_gymnasium(
    make: MakeOne, seed: int, device: torch.device, *, workers: bool = False
) -> Callable[[range], ReplayedEnvironments]:
    """Groups of environments, for a Collector. `workers`: each in a process of its own, for slow ones."""

    def group(ids: range) -> ReplayedEnvironments:
        singles = InWorkers(make, ids) if workers else InRank(make, ids)
        return ReplayedEnvironments(singles, ids, seed, device)

    return group


class VectorEnvironments:
    """A vector environment of the user's own, which begins episodes anew by itself, in either of gymnasium's ways.

    Its episodes cannot be restored: where a run continues from a checkpoint new ones begin, with seeds that belong to
    (environment id, iteration), or where its `reset` takes one seed for all, to (first id, iteration). Under --exact
    they begin with every iteration, so that a stop at any of them changes nothing. A line says so of either.
    """

    episode_steps = None

    def __init__(self, vector: Vector, ids: range, seed: int, device: torch.device) -> None:
        """Raises UserError where the vector class does not say how it begins episodes, or leaves that to others."""
        mode = vector.metadata.get("autoreset_mode")
        asked = f"the vector environment {type(vector).__name__}"
        if mode not in (AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP):
            raise UserError(asked, f"autoreset_mode {mode} in its metadata", "make it with NEXT_STEP or SAME_STEP")
        if vector.num_envs != len(ids):
            raise UserError(asked, f"{vector.num_envs} environments, {len(ids)} were asked for", "make as many")
        self.vector, self.ids, self.seed, self.device = vector, ids, seed, device
        self.next_step = mode == AutoresetMode.NEXT_STEP
        self._asked = f"environments {ids.start} to {ids.stop - 1}, {asked}"
        self._lost, self._said = False, set[str]()
        self._begin(0)

    def _begin(self, iteration: int) -> None:
        seeds: Any = [rng.key(self.seed, f"begin/{env}", iteration) & (2**31 - 1) for env in self.ids]
        try:
            self._obs, _ = self.vector.reset(seed=seeds)
        except Exception:  # each class refuses a list in its own way
            try:
                self._obs, _ = self.vector.reset(seed=seeds[0])
            except Exception as error:
                raise failure(f"reset of {self._asked}", error) from error
            self._say("takes one seed for all: in fast mode the luck depends on the number of ranks")
        self._ended_B = np.zeros(len(self.ids), dtype=np.bool_)

    def _say(self, text: str) -> None:
        """Once."""
        if text not in self._said:
            self._said.add(text)
            warnings.warn(f"a vector environment {text}", stacklevel=3)

    def begin_iteration(self, iteration: int, *, exact: bool) -> Tensor | None:
        """Everywhere after a checkpoint, and always under --exact."""
        if exact:
            self._say("cannot restore its episodes: under --exact new ones begin with every iteration")
        if not (exact or self._lost):
            return None
        self._lost = False
        self._begin(iteration)
        return torch.ones(len(self.ids), dtype=torch.bool, device=self.device)

    def observe(self) -> Tree:
        refuse_outside(self._obs, self.vector.single_observation_space, self.ids)
        return tensors_of(self._obs, self.device)

    def step(self, action_B: Tensor) -> Transition:
        before_B = self._ended_B
        actions = carried_out(action_B, self.vector.single_action_space)
        try:
            self._obs, reward_B, terminated_B, truncated_B, info = self.vector.step(actions)
        except Exception as error:
            raise failure(f"step of {self._asked}", error) from error
        ended_B, final = terminated_B | truncated_B, None
        if (ended_B & ~terminated_B).any():
            final = self.observe() if self.next_step else self._final(info, ended_B)
        if not self.next_step:
            return transition(reward_B, terminated_B, ended_B, final, self.device)
        self._ended_B = ended_B
        return transition(reward_B, terminated_B, ended_B, final, self.device, valid_B=~before_B)

    def _final(self, info: dict[str, Any], ended_B: NDArray[np.bool_]) -> Tree:
        """Observations in which those that ended show how they ended."""
        rows = list(gymnasium.vector.utils.iterate(self.vector.observation_space, self._obs))
        for row in np.flatnonzero(ended_B):
            rows[row] = info["final_obs"][row]
        space = self.vector.single_observation_space
        out = gymnasium.vector.utils.create_empty_array(space, len(rows))
        return tensors_of(gymnasium.vector.utils.concatenate(space, rows, out), self.device)

    def state_dict(self) -> dict[str, Tensor]:
        """Nothing."""
        return {}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        self._lost = True

    def close(self) -> None:
        self.vector.close()
