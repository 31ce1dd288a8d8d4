"""Any gymnasium environment as a group of environments, whichever way its vector class begins episodes anew.

Ours (`from_gymnasium`) let gymnasium begin none by itself: an episode's seed belongs to (environment id, number of the
episode). So a running episode is restored by playing its actions again. An environment's own state is not asked for:
its wrappers keep a part of it (TimeLimit its steps), and what it shows could not be shown again.

Legend: B environments, L steps of their running episodes.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import signal
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import gymnasium
import numpy as np
import torch
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv, VectorEnv
from numpy.typing import NDArray
from torch import Tensor

from ranks.engine import draws
from ranks.errors import UserError
from ranks.experience.environments import Transition
from ranks.experience.gymnasium_spaces import carried_out, tensors_of
from ranks.experience.trees import Tree

MakeOne = Callable[[], gymnasium.Env[Any, Any]]
Vector = VectorEnv[Any, Any, Any]


def maker(env_id: str, **settings: Any) -> MakeOne:
    """`gymnasium.make` of this id. Raises UserError where gymnasium knows none, or cannot make it."""

    def make() -> gymnasium.Env[Any, Any]:
        try:
            return gymnasium.make(env_id, **settings)
        except (gymnasium.error.Error, ImportError) as error:
            do = "see `python -c 'import gymnasium; gymnasium.pprint_registry()'` for those there are"
            raise UserError(f"the environment {env_id}", " ".join(str(error).split()), do) from None

    return make


def from_gymnasium(
    make: MakeOne, seed: int, device: torch.device, *, workers: bool = False
) -> Callable[[range], ReplayedEnvironments]:
    """Groups of environments, for a Collector. `workers`: each in a process of its own, for slow ones."""

    def group(ids: range) -> ReplayedEnvironments:
        mode = AutoresetMode.DISABLED
        if workers:
            vector = AsyncVectorEnv([_in_worker(make)] * len(ids), autoreset_mode=mode)
            atexit.register(vector.close)
        else:
            vector = SyncVectorEnv([make] * len(ids), autoreset_mode=mode)
        return ReplayedEnvironments(vector, ids, seed, device)

    return group


def _in_worker(make: MakeOne) -> MakeOne:
    """`make` for a process of its own, which leaves signals to the rank that began it: Ctrl-C and Slurm signal whole
    groups of processes, and a rank needs its environments until it has saved."""
    rank = os.getpid()

    def make_there() -> gymnasium.Env[Any, Any]:
        if os.getpid() != rank:  # gymnasium makes one in the rank too, to see its spaces
            for signum in (signal.SIGTERM, signal.SIGINT):
                signal.signal(signum, signal.SIG_IGN)
        return make()

    return make_there


class ReplayedEnvironments:
    """Environments whose running episodes are known by seed and actions."""

    episode_steps = None

    def __init__(self, vector: Vector, ids: range, seed: int, device: torch.device) -> None:
        self.vector, self.ids, self.seed, self.device = vector, ids, seed, device
        self.episode_B = np.zeros(len(ids), dtype=np.int64)
        self.actions: list[list[NDArray[Any]]] = [[] for _ in ids]
        """Of each running episode, as they were carried out."""
        self._lost_B = np.zeros(len(ids), dtype=np.bool_)
        self._obs, _ = vector.reset(seed=self._seeds())

    def _seeds(self) -> Any:  # gymnasium's types allow no list
        return [
            draws.key(self.seed, f"episode/{env}", int(episode)) & (2**31 - 1)
            for env, episode in zip(self.ids, self.episode_B, strict=True)
        ]

    def _reset(self, mask_B: NDArray[np.bool_]) -> None:
        self._obs, _ = self.vector.reset(seed=self._seeds(), options={"reset_mask": mask_B})

    def observe(self) -> Tree:
        return tensors_of(self._obs, self.device)

    def step(self, action_B: Tensor) -> Transition:
        actions = carried_out(action_B, self.vector.single_action_space)
        self._obs, reward_B, terminated_B, truncated_B, _ = self.vector.step(actions)
        ended_B, final = terminated_B | truncated_B, None
        for row, action in enumerate(actions):
            self.actions[row].append(action)
        if ended_B.any():
            final = self.observe() if (ended_B & ~terminated_B).any() else None
            self.episode_B[ended_B] += 1
            for row in np.flatnonzero(ended_B):
                self.actions[row] = []
            self._reset(ended_B)
        return transition(reward_B, terminated_B, ended_B, final, self.device)

    def begin_iteration(self, iteration: int, *, exact: bool) -> Tensor | None:
        """Where the last checkpoint's episode did not repeat itself."""
        if not self._lost_B.any():
            return None
        anew_B, self._lost_B = self._lost_B, np.zeros_like(self._lost_B)
        return torch.from_numpy(anew_B).to(self.device)

    def state_dict(self) -> dict[str, Tensor]:
        """Episode numbers, actions of the running episodes, and a hash of what they show."""
        length_B = np.array([len(actions) for actions in self.actions])
        shape, dtype = self.vector.single_action_space.shape or (), self.vector.single_action_space.dtype
        action_BL = np.zeros((len(self.ids), int(length_B.max(initial=0)), *shape), dtype)
        for row, actions in enumerate(self.actions):
            if actions:
                action_BL[row, : len(actions)] = actions
        return {
            "episode_B": torch.from_numpy(self.episode_B.copy()),
            "length_B": torch.from_numpy(length_B),
            "action_BL": torch.from_numpy(action_BL),
            "shown_B": self._shown(),
        }

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Play the running episodes again; where one comes out elsewhere, a new one begins, and a line says so."""
        self.episode_B = state["episode_B"].cpu().numpy().copy()
        length_B, action_BL = state["length_B"].cpu().numpy(), state["action_BL"].cpu().numpy()
        steps, lost_B = int(length_B.max(initial=0)), np.zeros(len(length_B), dtype=np.bool_)
        self._obs, _ = self.vector.reset(seed=self._seeds())
        for step in range(steps):
            at_B = step - (steps - length_B)  # all end together: an environment with a short episode begins late
            back_B = (at_B <= 0) | lost_B
            if step and back_B.any():
                self._reset(back_B)  # one that waits is set back after each step
            action_B = torch.from_numpy(action_BL[np.arange(len(at_B)), np.maximum(at_B, 0)])
            self._obs, _, terminated_B, truncated_B, _ = self.vector.step(
                carried_out(action_B, self.vector.single_action_space)
            )
            lost_B |= (terminated_B | truncated_B) & (at_B >= 0)
        if steps and (length_B == 0).any():
            self._reset(length_B == 0)
        self.actions = [list(action_BL[row, :length]) for row, length in enumerate(length_B)]
        self._lost_B = lost_B | (self._shown() != state["shown_B"].cpu()).numpy()
        if self._lost_B.any():
            text = "environments did not repeat an episode from its seed and actions; new ones begin"
            warnings.warn(f"{int(self._lost_B.sum())} {text}", stacklevel=2)
            self.episode_B[self._lost_B] += 1
            for row in np.flatnonzero(self._lost_B):
                self.actions[row] = []
            self._reset(self._lost_B)

    def _shown(self) -> Tensor:
        """int64[B]: a hash of each environment's observation."""
        shown = self.observe()
        leaves = [shown] if isinstance(shown, Tensor) else [shown[name] for name in sorted(shown)]
        rows = [b"".join(leaf[row].cpu().numpy().tobytes() for leaf in leaves) for row in range(len(self.ids))]
        digests = [hashlib.blake2b(row, digest_size=8).digest() for row in rows]
        return torch.tensor([int.from_bytes(d, "little", signed=True) for d in digests])


class VectorEnvironments:
    """A vector environment of the user's own, which begins episodes anew by itself, in either of gymnasium's ways.

    Its episodes cannot be restored: where a run continues from a checkpoint new ones begin, with seeds that belong to
    (environment id, iteration). Under --exact they begin with every iteration, so that a stop at any of them changes
    nothing, and a line says so.
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
        self._lost = self._said = False
        self._begin(0)

    def _begin(self, iteration: int) -> None:
        seeds: Any = [draws.key(self.seed, f"begin/{env}", iteration) & (2**31 - 1) for env in self.ids]
        try:
            self._obs, _ = self.vector.reset(seed=seeds)
        except (TypeError, ValueError, AssertionError, gymnasium.error.Error) as error:
            found = f"its reset refuses a list of seeds, one for each environment: {' '.join(str(error).split())}"
            do = "let it take such a list, or give single environments to from_gymnasium"
            raise UserError(f"the vector environment {type(self.vector).__name__}", found, do) from None
        self._ended_B = np.zeros(len(self.ids), dtype=np.bool_)

    def begin_iteration(self, iteration: int, *, exact: bool) -> Tensor | None:
        """Everywhere after a checkpoint, and always under --exact."""
        if exact and not self._said:
            self._said = True
            text = "a vector environment's episodes cannot be restored"
            warnings.warn(f"{text}: under --exact new ones begin with every iteration", stacklevel=2)
        if not (exact or self._lost):
            return None
        self._lost = False
        self._begin(iteration)
        return torch.ones(len(self.ids), dtype=torch.bool, device=self.device)

    def observe(self) -> Tree:
        return tensors_of(self._obs, self.device)

    def step(self, action_B: Tensor) -> Transition:
        before_B = self._ended_B
        actions = carried_out(action_B, self.vector.single_action_space)
        self._obs, reward_B, terminated_B, truncated_B, info = self.vector.step(actions)
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


def transition(
    reward_B: NDArray[Any],
    terminated_B: NDArray[np.bool_],
    ended_B: NDArray[np.bool_],
    final: Tree | None,
    device: torch.device,
    valid_B: NDArray[np.bool_] | None = None,
) -> Transition:
    """Gymnasium's arrays on the device."""
    dtype = torch.get_default_dtype()
    return Transition(
        reward_B=torch.from_numpy(np.array(reward_B)).to(device, dtype),
        discount_B=torch.from_numpy(~terminated_B).to(device, dtype),
        ended_B=torch.from_numpy(ended_B.copy()).to(device),
        final_obs=final,
        valid_B=None if valid_B is None else torch.from_numpy(valid_B.copy()).to(device),
    )
