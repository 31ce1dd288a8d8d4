"""Items -> a batch, with the rules of `torch.utils.data.default_collate`. (It makes a list of a tuple; here it stays
one.)"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor

from ranks.data.loading.place import empty


def collate(items: Sequence[Any]) -> Any:
    """N items of the same structure -> one batch: tensors [...] are stacked to [N, ...], numbers become
    tensors [N] (float64, int64 or bool), texts a list.

    Containers (dicts, lists, tuples, named tuples, dataclasses) stay, with a batch in place of each
    value. Raises ValueError where the items differ.
    """
    first = items[0]
    if isinstance(first, Tensor):
        return _stack(cast("Sequence[Tensor]", items))
    if isinstance(first, np.ndarray):
        return _stack([torch.from_numpy(item) for item in items])
    if isinstance(first, str | bytes):  # also numpy's
        return list(items)
    if isinstance(first, np.generic):
        return torch.from_numpy(np.stack(items))
    if isinstance(first, float):
        return torch.tensor(items, dtype=torch.float64)
    if isinstance(first, bool | int):
        return torch.tensor(items)
    if isinstance(first, Mapping):
        names = cast("Mapping[Any, Any]", first)
        other = next((item for item in items if item.keys() != names.keys()), first)
        if other is not first:
            differ = sorted(map(str, names.keys() ^ other.keys()))
            raise ValueError(f"some items have {', '.join(differ)}, others not: give all items the same names")
        return {name: collate([item[name] for item in items]) for name in names}
    if isinstance(first, tuple | list):
        columns = [collate(column) for column in zip(*items, strict=True)]
        return type(first)(*columns) if hasattr(first, "_fields") else type(first)(columns)
    if dataclasses.is_dataclass(first) and not isinstance(first, type):
        names = [field.name for field in dataclasses.fields(first)]
        return dataclasses.replace(first, **{n: collate([getattr(item, n) for item in items]) for n in names})
    return list(items)


def _stack(tensors: Sequence[Tensor]) -> Tensor:
    """As `torch.stack`; in a worker straight into shared memory."""
    shapes = {tensor.shape for tensor in tensors}
    if len(shapes) > 1:
        listed = ", ".join(str(tuple(shape)) for shape in sorted(shapes)[:3])
        raise ValueError(f"items of different shapes ({listed}) do not stack: give a collate that pads them")
    first = tensors[0]
    if first.device.type != "cpu" or first.requires_grad:
        return torch.stack([tensor.detach() for tensor in tensors])
    return torch.stack(list(tensors), out=empty((len(tensors), *first.shape), first.dtype))
