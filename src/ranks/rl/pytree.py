"""Observations and recurrent states: one tensor, or several by name, treated alike."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar, cast

import torch
from torch import Tensor

Tree = Tensor | Mapping[str, Tensor]
"""One tensor, or tensors by name, which share their leading dimensions."""
State = dict[str, Tensor]
"""A recurrent state, one row for each environment; empty where a policy has none."""
T = TypeVar("T", bound=Tree)


def map_tree(fn: Callable[[Tensor], Tensor], tree: T) -> T:
    """`fn` of each tensor."""
    if isinstance(tree, Tensor):
        return cast("T", fn(tree))
    return cast("T", {name: fn(leaf) for name, leaf in cast("Mapping[str, Tensor]", tree).items()})


def join(fn: Callable[[list[Tensor]], Tensor], trees: Sequence[T]) -> T:
    """One tree of several: `fn` of the tensors that bear the same name (torch.stack, torch.cat)."""
    if isinstance(trees[0], Tensor):
        return cast("T", fn(cast("list[Tensor]", list(trees))))
    named = cast("Sequence[Mapping[str, Tensor]]", trees)
    return cast("T", {name: fn([tree[name] for tree in named]) for name in named[0]})


def stack(trees: Sequence[T]) -> T:
    """A new first dimension."""
    return join(torch.stack, trees)


def cat(trees: Sequence[T], dim: int = 0) -> T:
    """Along a dimension that is there."""
    return join(lambda leaves: torch.cat(leaves, dim), trees)


def where(mask_B: Tensor, yes: T, no: T) -> T:
    """Row by row: `yes` where the bool mask holds."""

    def pick(leaves: list[Tensor]) -> Tensor:
        wide = mask_B.reshape(-1, *[1] * (leaves[0].ndim - 1))
        return torch.where(wide, leaves[0], leaves[1])

    return join(pick, [yes, no])
