"""Functions on observations and recurrent states, which are one tensor or a dict of tensors."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar, cast

import torch
from torch import Tensor

Tree = Tensor | Mapping[str, Tensor]
"""One tensor, or tensors by name that share their leading dimensions."""
State = dict[str, Tensor]
"""A recurrent state: tensors by name, one row for each environment; empty for a policy without
memory."""
T = TypeVar("T", bound=Tree)


def tree_map(fn: Callable[[Tensor], Tensor], tree: T) -> T:
    """Apply `fn` to each tensor."""
    if isinstance(tree, Tensor):
        return cast("T", fn(tree))
    return cast("T", {name: fn(leaf) for name, leaf in cast("Mapping[str, Tensor]", tree).items()})


def combine(fn: Callable[[list[Tensor]], Tensor], pytrees: Sequence[T]) -> T:
    """Combine several pytrees into one: `fn` gets the list of tensors with the same name."""
    if isinstance(pytrees[0], Tensor):
        return cast("T", fn(cast("list[Tensor]", list(pytrees))))
    named = cast("Sequence[Mapping[str, Tensor]]", pytrees)
    return cast("T", {name: fn([tree[name] for tree in named]) for name in named[0]})


def stack(pytrees: Sequence[T]) -> T:
    """`torch.stack` of each tensor, along a new first dimension."""
    return combine(torch.stack, pytrees)


def cat(pytrees: Sequence[T], dim: int = 0) -> T:
    """`torch.cat` of each tensor along `dim`."""
    return combine(lambda leaves: torch.cat(leaves, dim), pytrees)


def where(mask_B: Tensor, yes: T, no: T) -> T:
    """`torch.where` of each tensor by rows: `yes` where bool[B] is true. Tensors are [B, ...]."""

    def pick(leaves: list[Tensor]) -> Tensor:
        mask = mask_B.reshape(-1, *[1] * (leaves[0].ndim - 1))
        return torch.where(mask, leaves[0], leaves[1])

    return combine(pick, [yes, no])
