"""Gymnasium environments whose running episodes are known by seed and actions.

An episode's seed belongs to (environment id, number of the episode). So a running episode is restored by playing its
actions again. An environment's own state is not asked for: its wrappers keep a part of it (TimeLimit its steps), and
what it shows could not be shown again.

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
from ranks.rl.gymnasium.single_environment import Request, Seen
from ranks.rl.gymnasium.spaces import carried_out, refuse_outside, tensors_of, transition
from ranks.rl.gymnasium.workers import SingleEnvironments
from ranks.rl.pytree import Tree


class ReplayedEnvironments:
    """Single environments as a group; made by `from_gymnasium`."""

    episode_steps = None

    def __init__(self, singles: SingleEnvironments, ids: range, seed: int, device: torch.device) -> None:
        self.singles, self.ids, self.seed, self.device = singles, ids, seed, device
        self.observation_space, self.action_space = singles.spaces
        self.episode_B = np.zeros(len(ids), dtype=np.int64)
        self.log = ActionLog(len(ids), self.action_space.shape or (), np.dtype(self.action_space.dtype))
        self._lost_B = np.zeros(len(ids), dtype=np.bool_)
        self._seen: dict[int, Seen] = {}
        """By row: what it showed last."""
        self._reset(range(len(ids)))

    def _seed(self, row: int) -> int:
        return rng.key(self.seed, f"episode/{self.ids[row]}", int(self.episode_B[row])) & (2**31 - 1)

    def _reset(self, rows: Iterable[int]) -> None:
        self._seen |= self.singles.ask({row: ("reset", (self._seed(row),)) for row in rows})

    def _begin_next(self, mask_B: NDArray[np.bool_]) -> None:
        self.episode_B[mask_B] += 1
        self.log.forget(mask_B)
        self._reset(np.flatnonzero(mask_B).tolist())

    def observe(self) -> Tree:
        """Raises UserError where an observation does not fit its space."""
        space, shown = self.observation_space, [self._seen[row].observation for row in range(len(self.ids))]
        try:
            together = concatenate(space, shown, create_empty_array(space, len(shown)))
        except (ValueError, TypeError, KeyError, IndexError) as error:
            wrong = [env for env, one in zip(self.ids, shown, strict=True) if not space.contains(one)]
            found = f"it does not fit {space}: {' '.join(str(error).split())}"
            do = "let reset and step show what observation_space says"
            raise UserError(f"the observation of environment {wrong[0] if wrong else '?'}", found, do) from error
        refuse_outside(together, space, self.ids)
        return tensors_of(together, self.device)

    def step(self, action_B: Tensor) -> Transition:
        actions = carried_out(action_B, self.action_space)
        self._seen = self.singles.ask({row: ("step", (action,)) for row, action in enumerate(actions)})
        self.log.append(actions)
        seen = self._seen.values()
        reward_B = np.array([one.reward for one in seen])
        terminated_B = np.array([one.terminated for one in seen])
        ended_B, final = np.array([one.is_end for one in seen]), None
        if ended_B.any():
            final = self.observe() if (ended_B & ~terminated_B).any() else None
            self._begin_next(ended_B)
        return transition(reward_B, terminated_B, ended_B, final, self.device)

    def begin_iteration(self, iteration: int, *, exact: bool) -> Tensor | None:
        """Where the last checkpoint's episode did not repeat itself."""
        if not self._lost_B.any():
            return None
        anew_B, self._lost_B = self._lost_B, np.zeros_like(self._lost_B)
        return torch.from_numpy(anew_B).to(self.device)

    def state_dict(self) -> dict[str, Tensor]:
        """Of the running episodes: numbers, actions, and a digest of what they showed and brought."""
        return {
            "episode_B": torch.from_numpy(self.episode_B.copy()),
            "length_B": torch.from_numpy(self.log.length_B.copy()),
            "action_BL": torch.from_numpy(self.log.action_BL.copy()),
            "digest_B": self._digest_B(),
        }

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Play the running episodes again; where one comes out elsewhere, a new one begins, and a line says so."""
        self.episode_B = state["episode_B"].cpu().numpy().copy()
        self.log.load(state["length_B"].cpu().numpy(), state["action_BL"].cpu().numpy())
        again: dict[int, Request] = {
            row: ("play_again", (self._seed(row), self.log.row(row))) for row in range(len(self.ids))
        }
        self._seen = self.singles.ask(again)
        is_end_B = np.array([one.is_end for one in self._seen.values()])
        self._lost_B = is_end_B | (self._digest_B() != state["digest_B"].cpu()).numpy()
        if self._lost_B.any():
            text = "environments did not repeat an episode from its seed and actions; new ones begin"
            warnings.warn(f"{int(self._lost_B.sum())} {text}", stacklevel=2)
            self._begin_next(self._lost_B)

    def close(self) -> None:
        self.singles.close()

    def _digest_B(self) -> Tensor:
        return torch.tensor([self._seen[row].digest for row in range(len(self.ids))])
