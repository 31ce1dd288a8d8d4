"""`ReplayedVecEnv`: gymnasium environments, saved as seeds and actions of their episodes.

The seed of an episode is a function of (environment id, number of the episode). A resumed run
restores a running episode by replaying its actions. The internal state of an environment is not
saved: its wrappers hold a part of it (for example the step count of TimeLimit), and the last
observation could not be produced again.

Legend: B environments, L actions of the longest running episode.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping

import numpy as np
import torch
from gymnasium.vector.utils import concatenate, create_empty_array
from numpy.typing import NDArray
from torch import Tensor

from ranks.engine.sharding import rng
from ranks.errors import UserError
from ranks.rl.environments import Transition
from ranks.rl.gymnasium.action_log import ActionLog
from ranks.rl.gymnasium.env_pools import EnvPool
from ranks.rl.gymnasium.single_env import Request, StepResult
from ranks.rl.gymnasium.spaces import check_in_space, to_env_actions, to_tensors, to_transition
from ranks.rl.pytree import Tree


class ReplayedVecEnv:
    """A `VecEnv` of single gymnasium environments; made by `from_gymnasium`."""

    episode_steps = None

    def __init__(self, pool: EnvPool, ids: range, seed: int, device: torch.device) -> None:
        self.pool, self.ids, self.seed, self.device = pool, ids, seed, device
        self.observation_space, self.action_space = pool.spaces
        self.episode_B = np.zeros(len(ids), dtype=np.int64)
        """The number of each running episode."""
        self.log = ActionLog(len(ids), self.action_space.shape or (), np.dtype(self.action_space.dtype))
        self._not_restored_B = np.zeros(len(ids), dtype=np.bool_)
        self._last: dict[int, StepResult] = {}
        """By row: the result of the last step or reset."""
        self._reset(range(len(ids)))

    def _seed(self, row: int) -> int:
        return rng.key(self.seed, f"episode/{self.ids[row]}", int(self.episode_B[row])) & (2**31 - 1)

    def _reset(self, rows: Iterable[int]) -> None:
        self._last |= self.pool.call({row: ("reset", (self._seed(row),)) for row in rows})

    def _start_next_episode(self, mask_B: NDArray[np.bool_]) -> None:
        self.episode_B[mask_B] += 1
        self.log.clear(mask_B)
        self._reset(np.flatnonzero(mask_B).tolist())

    def observe(self) -> Tree:
        """The current observations. Raises UserError where one is not in its space."""
        space, observations = self.observation_space, [self._last[row].observation for row in range(len(self.ids))]
        try:
            batch = concatenate(space, observations, create_empty_array(space, len(observations)))
        except (ValueError, TypeError, KeyError, IndexError) as error:
            wrong = [env for env, one in zip(self.ids, observations, strict=True) if not space.contains(one)]
            found = f"it does not fit {space}: {' '.join(str(error).split())}"
            do = "let reset and step return observations of observation_space"
            raise UserError(f"the observation of environment {wrong[0] if wrong else '?'}", found, do) from error
        check_in_space(batch, space, self.ids)
        return to_tensors(batch, self.device)

    def step(self, action_B: Tensor) -> Transition:
        """Step all environments and reset those whose episode ended."""
        actions = to_env_actions(action_B, self.action_space)
        self._last = self.pool.call({row: ("step", (action,)) for row, action in enumerate(actions)})
        self.log.append(actions)
        results = self._last.values()
        reward_B = np.array([result.reward for result in results])
        terminated_B = np.array([result.terminated for result in results])
        ended_B, final = np.array([result.ended for result in results]), None
        if ended_B.any():
            final = self.observe() if (ended_B & ~terminated_B).any() else None
            self._start_next_episode(ended_B)
        return to_transition(reward_B, terminated_B, ended_B, final, self.device)

    def begin_iteration(self, iteration: int, *, exact: bool) -> Tensor | None:
        """Where the checkpoint's episode could not be replayed, so that a new one has started."""
        if not self._not_restored_B.any():
            return None
        restarted_B, self._not_restored_B = self._not_restored_B, np.zeros_like(self._not_restored_B)
        return torch.from_numpy(restarted_B).to(self.device)

    def state_dict(self) -> dict[str, Tensor]:
        """The running episodes: numbers, lengths, actions, digests of observations and rewards."""
        return {
            "episode_B": torch.from_numpy(self.episode_B.copy()),
            "length_B": torch.from_numpy(self.log.length_B.copy()),
            "action_BL": torch.from_numpy(self.log.action_BL.copy()),
            "digest_B": self._digest_B(),
        }

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Replay the running episodes. Where a digest differs, warn and start a new episode."""
        self.episode_B = state["episode_B"].cpu().numpy().copy()
        self.log.load(state["length_B"].cpu().numpy(), state["action_BL"].cpu().numpy())
        replays: dict[int, Request] = {
            row: ("replay", (self._seed(row), self.log.row(row))) for row in range(len(self.ids))
        }
        self._last = self.pool.call(replays)
        ended_B = np.array([result.ended for result in self._last.values()])
        self._not_restored_B = ended_B | (self._digest_B() != state["digest_B"].cpu()).numpy()
        if self._not_restored_B.any():
            text = "environments did not repeat an episode from its seed and actions; new episodes start there"
            warnings.warn(f"{int(self._not_restored_B.sum())} {text}", stacklevel=2)
            self._start_next_episode(self._not_restored_B)

    def close(self) -> None:
        """Close all environments."""
        self.pool.close()

    def _digest_B(self) -> Tensor:
        return torch.tensor([self._last[row].digest for row in range(len(self.ids))])
