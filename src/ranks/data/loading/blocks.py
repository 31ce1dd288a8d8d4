"""Shared memory through which workers give tensors to the rank, without copies in the rank.

A block is a file in memory without a name (memfd), so nothing is left behind however a process ends, and the size
of /dev/shm is no limit. Each process maps it and closes its descriptor, so many blocks need no open files. The worker
that made a block fills it again once no tensor uses it, in the rank or in the worker, whose data set may keep some:

    worker: take a free block, write the leaves ── (block, where the layout is) ──► rank: tensors over the block
    worker: the block is free again ◄── its number, with the next task ──────────── rank: the last tensor was freed

Layout of a block: the leaves, each at a multiple of 64 bytes, then the pickled tree with a `Leaf` for each tensor.
"""

from __future__ import annotations

import mmap
import os
import pickle
import sys
import tempfile
import weakref
from collections import deque
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ranks.data.loading.tensor_tree import map_leaves

ALIGNMENT = 64
GROWTH = 1.25
"""A block that must grow becomes larger than needed by this factor, because sizes of batches vary."""


class Leaf:
    """A tensor in a block. `offset`: in bytes. (No dataclass: those are containers of a tree.)"""

    __slots__ = ("dtype", "offset", "shape")

    def __init__(self, offset: int, shape: tuple[int, ...], dtype: torch.dtype) -> None:
        self.offset, self.shape, self.dtype = offset, shape, dtype


@dataclass(frozen=True)
class Stored:
    """A tree in a block of a worker. `size`: of the whole block; `start` and `stop`: of the pickled tree; in bytes."""

    block: int
    size: int
    start: int
    stop: int
    is_new: bool
    """The rank does not have this memory; its descriptor follows."""


class SharedBlock:
    """The memory of one block, as one process sees it."""

    def __init__(self, descriptor: int | None, size: int) -> None:
        """`descriptor`: of memory that exists; without one it is new. It is mapped once and keeps its size, and needs
        the descriptor no more."""
        self.descriptor, self.size = _new_file() if descriptor is None else descriptor, size
        if descriptor is None:
            os.ftruncate(self.descriptor, size)
        # Python's mmap would keep a descriptor of its own
        place = f"/proc/self/fd/{self.descriptor}" if sys.platform == "linux" else f"/dev/fd/{self.descriptor}"
        self._bytes: np.ndarray[Any, Any] = torch.from_file(place, shared=True, size=size, dtype=torch.uint8).numpy()

    def view(self) -> np.ndarray[Any, Any]:
        """All bytes, as a new array whose life can be watched."""
        return self._bytes[:]

    def offset_of(self, tensor: Tensor) -> int | None:
        """Where a tensor lies in this block; None where it does not, or has gaps."""
        offset = tensor.data_ptr() - self._bytes.ctypes.data
        inside = offset >= 0 and offset + tensor.nbytes <= self.size
        return offset if inside and tensor.is_contiguous() else None


def _new_file() -> int:
    """The descriptor of an empty file in memory."""
    if sys.platform == "linux":
        return os.memfd_create("ranks-block", os.MFD_CLOEXEC)
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())


class WorkerBlocks:
    """The blocks of one worker, in the worker."""

    def __init__(self) -> None:
        self._blocks: dict[int, SharedBlock] = {}
        self._count = 0
        self._free: list[int] = []
        """Blocks that the rank does not use."""
        self._in_use: dict[int, weakref.ref[Any]] = {}
        """The memory that `empty` gave out of a block: it lives as long as a tensor over it."""
        self._current = self._used = 0
        """The block that is filled now, and how many of its bytes are in use."""
        self._memory: np.ndarray[Any, Any] | None = None
        """That of the block that is filled now; None while it has none."""

    def release(self, numbers: Sequence[int]) -> None:
        """The rank needs these no more."""
        self._free += numbers

    def begin(self) -> None:
        """Choose a block to fill."""
        found = next((n for n in reversed(self._free) if n not in self._in_use or self._in_use[n]() is None), None)
        if found is None:
            found, self._count = self._count, self._count + 1
        else:
            self._free.remove(found)
        self._current, self._used = found, 0
        if found in self._blocks:
            self._memory = self._blocks[found].view()
            self._in_use[found] = weakref.ref(self._memory)

    def give_back(self) -> None:
        """Nothing was stored in the block that was chosen."""
        self._free.append(self._current)
        self._memory = None

    def empty(self, shape: Sequence[int], dtype: torch.dtype) -> Tensor:
        """`torch.empty`, in the block that is filled now if it has room."""
        leaf = Leaf(self._used, tuple(shape), dtype)
        size = _num_bytes(leaf)
        if self._memory is None or self._used + size > len(self._memory):
            return torch.empty(leaf.shape, dtype=dtype)
        self._used = _aligned(self._used + size)
        return _tensor(torch.from_numpy(self._memory), leaf)

    def store(self, tree: Any) -> Stored:
        """Write a tree into the block. Tensors that `empty` made in it are there already. Raises OSError."""
        block, filled = self._blocks.get(self._current), self._used
        copies: list[tuple[Tensor, Leaf]] = []
        pickled = pickle.dumps(map_leaves(partial(self._place, block, copies), tree), pickle.HIGHEST_PROTOCOL)
        start, stop = self._used, self._used + len(pickled)
        is_new = block is None or stop > block.size
        if block is None or stop > block.size:
            larger = SharedBlock(None, -(-int(stop * GROWTH) // mmap.PAGESIZE) * mmap.PAGESIZE)
            if block is not None:
                larger.view()[:filled] = block.view()[:filled]
            block = self._blocks[self._current] = larger
        memory = torch.from_numpy(block.view())
        for tensor, leaf in copies:
            _tensor(memory, leaf).copy_(tensor)
        block.view()[start:stop] = np.frombuffer(pickled, np.uint8)
        self._memory = None
        return Stored(self._current, block.size, start, stop, is_new)

    @contextmanager
    def sent(self, number: int) -> Generator[int]:
        """The descriptor of a new block, to be sent to the rank. It is closed then."""
        descriptor = self._blocks[number].descriptor
        try:
            yield descriptor
        finally:
            os.close(descriptor)

    def _place(self, block: SharedBlock | None, copies: list[tuple[Tensor, Leaf]], value: Any) -> Any:
        """The leaf of a tensor; other values as they are."""
        if not isinstance(value, Tensor) or value.layout != torch.strided or value.device.type != "cpu":
            return value
        value = value.detach()
        offset = None if block is None else block.offset_of(value)
        leaf = Leaf(self._used if offset is None else offset, tuple(value.shape), value.dtype)
        if offset is None:
            self._used = _aligned(self._used + _num_bytes(leaf))
            copies.append((value, leaf))
        return leaf


class RankBlocks:
    """The blocks of one worker, in the rank."""

    def __init__(self) -> None:
        self._blocks: dict[int, SharedBlock] = {}
        self._released: deque[int] = deque()

    def read(self, stored: Stored, receive: Callable[[], int]) -> Any:
        """The tree, with tensors over the block's memory. `receive`: the descriptor of a new block."""
        if stored.is_new:
            descriptor = receive()
            try:
                self._blocks[stored.block] = SharedBlock(descriptor, stored.size)
            finally:
                os.close(descriptor)
        block = self._blocks[stored.block]
        memory = block.view()
        tree = pickle.loads(memory[stored.start : stored.stop].tobytes())
        # All tensors share one storage, which holds `memory`. Its end means that the last of them was freed.
        weakref.finalize(memory, self._released.append, stored.block).atexit = False
        return map_leaves(partial(_leaf_to_tensor, torch.from_numpy(memory)), tree)

    def take_released(self) -> list[int]:
        """The blocks that no tensor uses, each once."""
        return [self._released.popleft() for _ in range(len(self._released))]


def _leaf_to_tensor(memory: Tensor, value: Any) -> Any:
    return _tensor(memory, value) if isinstance(value, Leaf) else value


def _tensor(memory: Tensor, leaf: Leaf) -> Tensor:
    """A leaf of a block whose bytes are `memory`."""
    return memory[leaf.offset : leaf.offset + _num_bytes(leaf)].view(leaf.dtype).view(leaf.shape)


def _num_bytes(leaf: Leaf) -> int:
    return int(np.prod(leaf.shape, dtype=np.int64)) * leaf.dtype.itemsize


def _aligned(offset: int) -> int:
    return -(-offset // ALIGNMENT) * ALIGNMENT
