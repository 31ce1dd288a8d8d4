"""Batches as nested containers of tensors: dicts, lists, tuples, named tuples and dataclasses."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from typing import Any, cast

from torch import Tensor


def map_leaves(fn: Callable[[Any], Any], tree: Any) -> Any:
    """The same containers with `fn(leaf)` in place of each leaf. A leaf is what is no container."""
    if isinstance(tree, Tensor):
        return fn(tree)
    if isinstance(tree, dict):
        return {name: map_leaves(fn, part) for name, part in cast("dict[Any, Any]", tree).items()}
    if isinstance(tree, Mapping):
        return {name: map_leaves(fn, part) for name, part in cast("Mapping[Any, Any]", tree).items()}
    if isinstance(tree, tuple | list):
        parts = [map_leaves(fn, part) for part in cast("list[Any]", tree)]
        return type(tree)(*parts) if hasattr(tree, "_fields") else type(tree)(parts)
    if is_dataclass(tree) and not isinstance(tree, type):
        mapped = copy.copy(tree)
        for field in fields(tree):
            object.__setattr__(mapped, field.name, map_leaves(fn, getattr(tree, field.name)))
        return mapped
    return fn(tree)


def map_tensors(fn: Callable[[Tensor], Tensor], tree: Any) -> Any:
    """The same containers with `fn(tensor)` in place of each tensor; other leaves stay."""
    return map_leaves(lambda leaf: fn(leaf) if isinstance(leaf, Tensor) else leaf, tree)
