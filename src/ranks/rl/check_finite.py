"""What environments show and reward has to be finite: one number that is not would stay in the running moments, and in
every checkpoint after it.

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
class Taken:
    """Numbers that came from a group of environments."""

    env_B: Tensor
    """int64 ids."""
    part: str
    """What they are, in words."""
    steps: Sequence[int]
    """N of them, of the rollout."""
    rows: Tree
    """[N, B, ...] each."""
    counts_NB: Tensor | None = None
    """bool: where they are used; None: everywhere."""

    def unfit(self) -> Iterator[tuple[str, Tensor]]:
        """By part: bool[N, B], where one is NaN or infinite. Whole numbers never are."""
        named = {self.part: self.rows} if isinstance(self.rows, Tensor) else self.rows
        for name, leaf in named.items():
            if leaf.is_floating_point():
                unfit_NB = ~leaf.isfinite().flatten(2).all(2) if leaf.ndim > 2 else ~leaf.isfinite()
                part = name if name == self.part else f"{self.part} {name}"
                yield part, unfit_NB if self.counts_NB is None else unfit_NB & self.counts_NB


def refuse_unfit(taken: Sequence[Taken], world: World, iteration: int) -> None:
    """Raises UserError, on every rank alike, that names the first number that is not finite: its step, environment and
    part. Every rank calls it; a device is waited for once."""
    found = [(t, part, unfit_NB) for t in taken for part, unfit_NB in t.unfit()]
    mine = bool(torch.stack([unfit_NB.any() for *_, unfit_NB in found]).any()) if found else False
    if not world.any(mine):
        return
    places = [
        (t.steps[n], int(t.env_B[b]), part) for t, part, unfit_NB in found for n, b in unfit_NB.nonzero().tolist()
    ]
    step, env, part = min(place for place in world.comm.gather_objects(min(places, default=None)) if place is not None)
    raise UserError(
        f"to learn from environment {env}",
        f"its {part} at step {step} of iteration {iteration} is not finite",
        "mend the environment; nothing of this iteration was kept, and the newest checkpoint is as it was",
    )
