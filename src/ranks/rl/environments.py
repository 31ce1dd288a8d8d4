"""The protocol of environments that step together, and which environment ids each rank has.

Legend: B environments of one group.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import torch
from torch import Tensor

from ranks.engine.distributed.world import World
from ranks.errors import UserError
from ranks.rl.pytree import Tree


@dataclass(frozen=True)
class Transition:
    """The result of one step of B environments.

    Environments whose episode ended are reset already.
    """

    reward_B: Tensor
    """float[B]."""
    discount_B: Tensor
    """float[B]: 0 where the episode terminated, so that no reward can follow; else 1."""
    ended_B: Tensor
    """bool[B]: the episode terminated or was truncated."""
    final_obs: Tree | None = None
    """The observations before the resets, [B, ...] each. Required where an episode was truncated;
    None otherwise."""
    valid_B: Tensor | None = None
    """bool[B]: False where the step did nothing but reset (gymnasium's NEXT_STEP autoreset); None:
    all are valid."""


class VecEnv(Protocol):
    """B environments that step together.

    What happens in one depends on its id and its actions only.
    """

    @property
    def episode_steps(self) -> int | None:
        """The length of every episode, or None if an episode can end anywhere.

        A length means that all episodes have it and start together.
        """
        ...

    def observe(self) -> Tree:
        """Return the current observations, [B, ...] each, on the device."""
        ...

    def step(self, action_B: Tensor, /) -> Transition:
        """Step all environments. An environment whose episode ended is reset at once."""
        ...

    def state_dict(self) -> dict[str, Tensor]:
        """The state, one row for each environment.

        Tensors of two dimensions or more may be zero-padded at the end.
        """
        ...

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Take over the rows of this group's environments."""
        ...

    def close(self) -> None:
        """Release processes, windows and files. No other method is called after it."""
        ...


@runtime_checkable
class RestartsEpisodes(Protocol):
    """A method of a VecEnv that cannot always restore its episodes from a checkpoint."""

    def begin_iteration(self, iteration: int, *, exact: bool) -> Tensor | None:
        """Return where a new episode started although the one before had not ended: bool[B].

        None: nowhere. It is called before the first step of each iteration. Under `exact` the
        result must not depend on whether the run was resumed before this iteration.
        """
        ...


MakeVecEnv = Callable[[range], VecEnv]
"""A function that gets a range of environment ids and returns these environments."""


class EnvironmentIds:
    """The environment ids of each rank: whole blocks of `block` consecutive ids.

    A minibatch takes one environment of each block, or, where minibatches cut time, as many single
    steps of the block's environments. So it needs no data of another rank, and it holds the same
    steps on any number of ranks.
    """

    def __init__(self, n_envs: int, block: int, world: World, *, cut_time: bool = False) -> None:
        """`n_envs`: of all ranks together. `block`: the number of minibatches. `cut_time`: see
        `Collector`.

        Raises UserError if `n_envs` is no multiple of `block`, or if a rank would have no
        environment.
        """
        asked = f"{n_envs} environments in {block} minibatches"
        if n_envs < 1 or n_envs % block:
            raise UserError(asked, "they do not divide evenly", f"give a multiple of {block} environments")
        self.world, self.block, self.num_blocks = world, block, n_envs // block
        self.cut_time = cut_time
        parts = [blocks for _, blocks in world.shard_items(self.num_blocks)] if world.exact else []
        self.groups = [
            range(part.start * block, part.stop * block)
            for part in (parts or [world.items(self.num_blocks)])
            if len(part)
        ]
        """Ids of the environments that step together: those of one shard with --exact, else all of
        a rank."""
        if world.comm.max_host(float(not self.groups)):
            raise UserError(f"{asked} on {world.size} ranks", "a rank has none", _enough_environments(block, world))

    @property
    def local(self) -> range:
        """The ids of this rank's environments."""
        return range(self.groups[0].start, self.groups[-1].stop)

    def gather(self, rows_B: Tensor) -> Tensor:
        """Gather the rows of all ranks' environments, in the order of their ids.

        Tensors of two dimensions or more may have another second dimension on each rank; they are
        zero-padded. Every rank calls it and gets the same result.
        """
        if rows_B.ndim > 1:
            longest = int(self.world.comm.max_host(float(rows_B.shape[1])))
            missing = rows_B.new_zeros((len(rows_B), longest - rows_B.shape[1], *rows_B.shape[2:]))
            rows_B = torch.cat([rows_B, missing], 1)
        blocks = rows_B.reshape(len(rows_B) // self.block, self.block, *rows_B.shape[1:])
        return self.world.gather_rows(blocks, self.num_blocks).flatten(0, 1)

    def gather_state(self, groups: Sequence[Mapping[str, Tensor]]) -> dict[str, Any]:
        """Gather the state of all environments from the states of this rank's groups."""
        return {name: self.gather(_cat_padded([group[name] for group in groups])) for name in sorted(groups[0])}

    def state_of(self, group: range, state: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """The rows of one group's ids in the state of all environments."""
        return {name: rows[group.start : group.stop] for name, rows in state.items()}


def _enough_environments(block: int, world: World) -> str:
    """The advice for a rank without environments: the smallest number that gives each rank some."""
    for num_blocks in range(1, world.shards + 1):
        if all(world.assignment.items_of(rank, num_blocks) for rank in range(world.size)):
            return f"give {num_blocks * block} environments, fewer ranks, or fewer minibatches"
    return "give every rank a share"


def _cat_padded(rows: list[Tensor]) -> Tensor:
    """`torch.cat` of the rows of several groups, zero-padded along the second dimension."""
    if rows[0].ndim < 2:
        return torch.cat(rows)
    longest = max(part.shape[1] for part in rows)
    padded = [torch.cat([p, p.new_zeros((len(p), longest - p.shape[1], *p.shape[2:]))], 1) for p in rows]
    return torch.cat(padded)
