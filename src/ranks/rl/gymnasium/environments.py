"""Gymnasium environments as a `VecEnv`: `from_gymnasium` and `GymnasiumVecEnv`.

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
from ranks.rl.gymnasium.env_pools import InProcessEnvs, SubprocessEnvs
from ranks.rl.gymnasium.replayed_vec_env import ReplayedVecEnv
from ranks.rl.gymnasium.single_env import MakeEnv, env_error
from ranks.rl.gymnasium.spaces import check_in_space, to_env_actions, to_tensors, to_transition
from ranks.rl.pytree import Tree


def make_env(env_id: str, **settings: Any) -> gymnasium.Env[Any, Any]:
    """`gymnasium.make(env_id, **settings)`.

    Raises UserError if gymnasium does not know the id or cannot make it.
    """
    try:
        return gymnasium.make(env_id, **settings)
    except (gymnasium.error.Error, ImportError) as error:
        raise UserError(f"the environment {env_id}", " ".join(str(error).split()), _advice(env_id, error)) from None


def _advice(env_id: str, error: Exception) -> str:
    if isinstance(error, gymnasium.error.DependencyNotInstalled | ImportError):
        return "install the package that the message names"
    if isinstance(error, gymnasium.error.NamespaceNotFound):
        return "install the package that registers it and import it in your file (ale_py for ALE/)"
    if isinstance(error, gymnasium.error.DeprecatedEnv):
        return "use the version that the message names"
    listing = "`python -c 'import gymnasium; gymnasium.pprint_registry()'` lists all ids"
    return nearest(env_id, list(gymnasium.registry), listing)


def from_gymnasium(
    make: MakeEnv, seed: int, device: torch.device, *, workers: bool = False
) -> Callable[[range], ReplayedVecEnv]:
    """Return the `make_vec_env` function of a Collector or `evaluate_policy`.

    `make`: returns one `gymnasium.Env`. `seed`: of the run; each episode has a seed of its own, a
    function of (seed, environment id, number of the episode). `workers`: run each environment in a
    subprocess, for slow ones.
    """

    def make_vec_env(ids: range) -> ReplayedVecEnv:
        pool = SubprocessEnvs(make, ids) if workers else InProcessEnvs(make, ids)
        return ReplayedVecEnv(pool, ids, seed, device)

    return make_vec_env


class GymnasiumVecEnv:
    """A `VecEnv` from a `gymnasium.vector.VectorEnv` with autoreset mode NEXT_STEP or SAME_STEP.

    Its running episodes cannot be restored from a checkpoint. A resumed run starts new ones, with
    seeds that are a function of (environment id, iteration), or of (first id, iteration) if its
    `reset` takes a single seed only. Under --exact new episodes start with every iteration, so that
    a stop at any of them changes nothing. It warns of both.
    """

    episode_steps = None

    def __init__(self, vector: VectorEnv[Any, Any, Any], ids: range, seed: int, device: torch.device) -> None:
        """`ids`: the ids of its environments.

        Raises UserError for another autoreset mode or number of environments.
        """
        mode = vector.metadata.get("autoreset_mode")
        asked = f"the vector environment {type(vector).__name__}"
        if mode not in (AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP):
            raise UserError(asked, f"autoreset_mode {mode} in its metadata", "make it with NEXT_STEP or SAME_STEP")
        if vector.num_envs != len(ids):
            found = f"it has {vector.num_envs} environments, {len(ids)} are needed"
            raise UserError(asked, found, "make it with num_envs=len(ids)")
        self.vector, self.ids, self.seed, self.device = vector, ids, seed, device
        self.next_step = mode == AutoresetMode.NEXT_STEP
        self._name = f"environments {ids.start} to {ids.stop - 1}, {asked}"
        self._not_restored, self._warnings = False, set[str]()
        self._reset(0)

    def _reset(self, iteration: int) -> None:
        """Start new episodes, with a seed for each environment if `reset` takes a list."""
        seeds: Any = [rng.key(self.seed, f"begin/{env}", iteration) & (2**31 - 1) for env in self.ids]
        try:
            self._obs, _ = self.vector.reset(seed=seeds)
        except Exception:  # each class rejects a list with another exception
            try:
                self._obs, _ = self.vector.reset(seed=seeds[0])
            except (Exception, SystemExit) as error:
                raise env_error(f"reset of {self._name}", error) from error
            self._warn_once("takes one seed for all: in fast mode its random numbers depend on the number of ranks")
        self._ended_B = np.zeros(len(self.ids), dtype=np.bool_)

    def _warn_once(self, text: str) -> None:
        if text not in self._warnings:
            self._warnings.add(text)
            warnings.warn(f"a vector environment {text}", stacklevel=3)

    def begin_iteration(self, iteration: int, *, exact: bool) -> Tensor | None:
        """Start new episodes: under `exact` always, else in the first iteration after a resume."""
        if exact:
            self._warn_once("cannot restore its episodes: under --exact new ones start with every iteration")
        if not (exact or self._not_restored):
            return None
        self._not_restored = False
        self._reset(iteration)
        return torch.ones(len(self.ids), dtype=torch.bool, device=self.device)

    def observe(self) -> Tree:
        """The current observations. Raises UserError where one is not in its space."""
        check_in_space(self._obs, self.vector.single_observation_space, self.ids)
        return to_tensors(self._obs, self.device)

    def step(self, action_B: Tensor) -> Transition:
        """Step all environments."""
        ended_before_B = self._ended_B
        actions = to_env_actions(action_B, self.vector.single_action_space)
        try:
            self._obs, reward_B, terminated_B, truncated_B, info = self.vector.step(actions)
        except (Exception, SystemExit) as error:
            raise env_error(f"step of {self._name}", error) from error
        ended_B, final = terminated_B | truncated_B, None
        if (ended_B & ~terminated_B).any():
            final = self.observe() if self.next_step else self._final_obs(info, ended_B)
        if not self.next_step:
            return to_transition(reward_B, terminated_B, ended_B, final, self.device)
        # NEXT_STEP: the step after an end only resets.
        self._ended_B = ended_B
        return to_transition(reward_B, terminated_B, ended_B, final, self.device, valid_B=~ended_before_B)

    def _final_obs(self, info: dict[str, Any], ended_B: NDArray[np.bool_]) -> Tree:
        """SAME_STEP: the observations, with the last one of the old episode where it ended."""
        rows = list(gymnasium.vector.utils.iterate(self.vector.observation_space, self._obs))
        for row in np.flatnonzero(ended_B):
            rows[row] = info["final_obs"][row]
        space = self.vector.single_observation_space
        out = gymnasium.vector.utils.create_empty_array(space, len(rows))
        return to_tensors(gymnasium.vector.utils.concatenate(space, rows, out), self.device)

    def state_dict(self) -> dict[str, Tensor]:
        """Empty: a vector environment cannot be restored."""
        return {}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Start new episodes in the next iteration."""
        self._not_restored = True

    def close(self) -> None:
        """Close the vector environment."""
        self.vector.close()
