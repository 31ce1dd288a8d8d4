"""Where a `gather` runs: which item it is at, what its random numbers depend on, where its tensors are made.

The values belong to the thread. In the rank's own thread nothing is noted and tensors are ordinary ones.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from enum import IntEnum

import torch
from torch import Tensor

ROW = 8
"""Numbers of int64 in a worker's row: 64 bytes, so that no two workers write to the same cache line."""


class RowField(IntEnum):
    """The index of each number of a worker's row, which the rank reads."""

    ITEMS = 0
    """Items begun."""
    ITEM = 1
    """The id of the last one."""


class _Place(threading.local):
    row: memoryview | None = None
    key: int = 0
    empty: Callable[[Sequence[int], torch.dtype], Tensor] | None = None


_place = _Place()
_ITEMS, _ITEM = RowField.ITEMS.value, RowField.ITEM.value


def note_item(item: int) -> None:
    """Say which item a `gather` works on, for the error of a worker that dies, hangs or raises. Costs a
    fifth of a microsecond."""
    row = _place.row
    if row is not None:
        row[_ITEM] = item
        row[_ITEMS] += 1


def items_begun() -> int:
    """How many items this worker has noted; 0 in the rank."""
    return 0 if _place.row is None else _place.row[_ITEMS]


def last_item() -> int:
    """The item that this worker has noted last; -1 in the rank."""
    return -1 if _place.row is None else _place.row[_ITEM]


def current_key() -> int:
    """What the random numbers of the items depend on, next to their ids: another one in each epoch."""
    return _place.key


def empty(shape: Sequence[int], dtype: torch.dtype, *, pinned: bool = False) -> Tensor:
    """`torch.empty` for a tensor of a batch; in a worker process it is in shared memory. `pinned`: elsewhere in pinned
    memory."""
    if _place.empty is not None:
        return _place.empty(shape, dtype)
    return torch.empty(tuple(shape), dtype=dtype, pin_memory=pinned)


def enter_worker(row: memoryview, make_empty: Callable[[Sequence[int], torch.dtype], Tensor] | None = None) -> None:
    """This thread is a worker from now on. `row`: its `ROW` numbers."""
    _place.row, _place.empty = row, make_empty


@contextmanager
def item_key(key: int) -> Generator[None]:
    """What `current_key` returns inside the block."""
    before, _place.key = _place.key, key
    try:
        yield
    finally:
        _place.key = before
