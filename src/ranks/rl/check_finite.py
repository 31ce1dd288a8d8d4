"""Stops a run whose environments return NaN or infinity.

The error names the environment, the step and the value.

One such number would stay in the running statistics, and in every later checkpoint.

Legend: N steps, B environments.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from ranks.engine.distributed.world import World
from ranks.errors import UserError
from ranks.rl.pytree import Tree


@dataclass(frozen=True)
class CollectedValues:
    """Numbers that the environments of this rank returned in some steps of a rollout."""

    env_B: Tensor
    """int64[B]: environment ids."""
    name: str
    """What the numbers are, for the message: reward, observation, last observation."""
    steps: Sequence[int]
    """The N step numbers within the rollout."""
    values: Tree
    """[N, B, ...] each."""
    used_NB: Tensor | None = None
    """bool[N, B]: where the numbers are used; None: everywhere."""

    def non_finite(self) -> Iterator[tuple[str, Tensor]]:
        """Yield (name, bool[N, B]: a used number is NaN or infinite) for each float tensor."""
        named = {self.name: self.values} if isinstance(self.values, Tensor) else self.values
        for name, leaf in named.items():
            if leaf.is_floating_point():
                non_finite_NB = ~leaf.isfinite().flatten(2).all(2) if leaf.ndim > 2 else ~leaf.isfinite()
                full_name = name if name == self.name else f"{self.name} {name}"
                yield full_name, non_finite_NB if self.used_NB is None else non_finite_NB & self.used_NB


def check_finite(collected: Sequence[CollectedValues], world: World, iteration: int) -> None:
    """Raise UserError, the same on every rank, if any collected number is not finite.

    The message names the earliest step and its environment. Every rank must call it. It
    synchronises with the device once.
    """
    found = [(c, name, non_finite_NB) for c in collected for name, non_finite_NB in c.non_finite()]
    on_this_rank = bool(torch.stack([non_finite_NB.any() for *_, non_finite_NB in found]).any()) if found else False
    if not world.any(on_this_rank):
        return
    places = [
        (c.steps[n], int(c.env_B[b]), name) for c, name, where_NB in found for n, b in where_NB.nonzero().tolist()
    ]
    step, env, name = min(place for place in world.comm.gather_objects(min(places, default=None)) if place is not None)
    raise UserError(
        f"to learn from environment {env}",
        f"its {name} at step {step} of iteration {iteration} is not finite",
        "fix the environment; nothing of this iteration was kept, and the newest checkpoint is unchanged",
    )
