"""What a collector asks of environments, and which rank carries which of them.

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
    """What one step of a group of environments brought; environments whose episode ended have begun the next one."""

    reward_B: Tensor
    """float[B]."""
    discount_B: Tensor
    """float[B]: 0 where the episode ended in a terminal state, after which nothing comes; else 1."""
    ended_B: Tensor
    """bool[B]: the episode ended, in a terminal state or because its time was up (truncated)."""
    final_obs: Tree | None = None
    """The observations before the next episodes began, needed where an episode was cut off; None where none was."""
    valid_B: Tensor | None = None
    """bool[B]: False where the step was none (a reset that took a step of its own); None where all were steps."""


class Environment(Protocol):
    """A group of environments that step together. What happens to one depends on its id and its actions alone."""

    @property
    def episode_steps(self) -> int | None:
        """Every episode lasts exactly so many steps, the first ones began together; None: one may end anywhere."""
        ...

    def observe(self) -> Tree:
        """What each environment shows now, on the device, one row each."""
        ...

    def step(self, action_B: Tensor, /) -> Transition:
        """Act in all of them; an ended episode is followed by the next one at once."""
        ...

    def state_dict(self) -> dict[str, Tensor]:
        """One row for each environment. Rows of two dimensions or more may be padded with zeros at the end."""
        ...

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """The rows of this group's environments."""
        ...

    def close(self) -> None:
        """Let go of what they hold (processes, windows, files). Nothing is asked of them after it."""
        ...


@runtime_checkable
class BeginsAnew(Protocol):
    """What environments offer beside `Environment` whose running episodes a checkpoint may not bring back."""

    def begin_iteration(self, iteration: int, *, exact: bool) -> Tensor | None:
        """Called before the first step of each iteration. bool[B]: where a new episode has begun since the last step
        though the one before it did not end; None: nowhere. Under `exact` a checkpoint before this iteration, or none,
        must make no difference."""
        ...


MakeEnvironment = Callable[[range], Environment]
"""Environment ids -> these environments."""


class EnvironmentIds:
    """Which environments this rank carries: whole blocks of consecutive ids, so that a minibatch, which takes one
    environment of each block, is local to its rank and as large on any deal."""

    def __init__(self, num_environments: int, block: int, world: World) -> None:
        """Raises UserError where the blocks do not go round."""
        asked = f"{num_environments} environments in {block} minibatches"
        if num_environments < 1 or num_environments % block:
            raise UserError(asked, "they do not divide evenly", f"give a multiple of {block} environments")
        self.world, self.block, self.num_blocks = world, block, num_environments // block
        parts = [blocks for _, blocks in world.shard_items(self.num_blocks)] if world.exact else []
        self.groups = [
            range(part.start * block, part.stop * block)
            for part in (parts or [world.items(self.num_blocks)])
            if len(part)
        ]
        """Ids of the environments that act together: those of a shard under --exact, all of a rank otherwise."""
        if world.comm.max_host(float(not self.groups)):
            raise UserError(f"{asked} on {world.size} ranks", "a rank has none", _more_or_fewer(block, world))

    @property
    def mine(self) -> range:
        """Ids of all environments of this rank."""
        return range(self.groups[0].start, self.groups[-1].stop)

    def gather(self, rows_B: Tensor) -> Tensor:
        """This rank's rows, one for each of its environments -> those of all environments, in the order of their ids.

        Rows of two dimensions or more may be longer on one rank than on another; they are padded with zeros.
        """
        if rows_B.ndim > 1:
            longest = int(self.world.comm.max_host(float(rows_B.shape[1])))
            missing = rows_B.new_zeros((len(rows_B), longest - rows_B.shape[1], *rows_B.shape[2:]))
            rows_B = torch.cat([rows_B, missing], 1)
        blocks = rows_B.reshape(len(rows_B) // self.block, self.block, *rows_B.shape[1:])
        return self.world.gather_rows(blocks, self.num_blocks).flatten(0, 1)

    def gather_state(self, groups: Sequence[Mapping[str, Tensor]]) -> dict[str, Any]:
        """State of each group of this rank -> state of all environments."""
        return {name: self.gather(_together([group[name] for group in groups])) for name in sorted(groups[0])}

    def state_of(self, group: range, state: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """One group's rows of the state of all environments."""
        return {name: rows[group.start : group.stop] for name, rows in state.items()}


def _more_or_fewer(block: int, world: World) -> str:
    """What to do where a rank has no environment: the fewest of which each has some, or fewer to share them."""
    for num_blocks in range(1, world.shards + 1):
        if all(world.assignment.items_of(rank, num_blocks) for rank in range(world.size)):
            return f"give {num_blocks * block} environments, fewer ranks, or fewer minibatches"
    return "give every rank a share"


def _together(rows: list[Tensor]) -> Tensor:
    """Rows of several groups one below the other, padded with zeros along the second dimension."""
    if rows[0].ndim < 2:
        return torch.cat(rows)
    longest = max(part.shape[1] for part in rows)
    padded = [torch.cat([p, p.new_zeros((len(p), longest - p.shape[1], *p.shape[2:]))], 1) for p in rows]
    return torch.cat(padded)
