"""Shared memory through which workers give tensors to the rank, without copies in the rank.

A block is a file in memory without a name (memfd), so nothing is left behind however a process ends, and the size
of /dev/shm is no limit. The worker that made a block fills it again once no tensor of the rank uses it:

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
from collections.abc import Callable, Sequence
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
    """The rank does not know the block; its descriptor follows."""


class SharedBlock:
    """One block as one process sees it."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor, self.size = descriptor, 0
        self._bytes: np.ndarray[Any, Any] = np.empty(0, np.uint8)

    @classmethod
    def create(cls) -> SharedBlock:
        """An empty one."""
        if sys.platform == "linux":
            return cls(os.memfd_create("ranks-block", os.MFD_CLOEXEC))
        with tempfile.TemporaryFile() as file:
            return cls(os.dup(file.fileno()))

    def grow(self, size: int) -> None:
        """Make the block larger. What is in it stays."""
        os.ftruncate(self.descriptor, size)
        self.map(size)

    def map(self, size: int) -> None:
        """See the first `size` bytes. Tensors over an earlier view stay valid."""
        self.size = size
        self._bytes = np.frombuffer(mmap.mmap(self.descriptor, size), np.uint8)

    def view(self) -> np.ndarray[Any, Any]:
        """All bytes, as a new array whose life can be watched."""
        return self._bytes[:]

    def tensor(self, leaf: Leaf) -> Tensor:
        """The memory of a leaf."""
        return _tensor(torch.from_numpy(self._bytes), leaf)

    def offset_of(self, tensor: Tensor) -> int | None:
        """Where a tensor lies in this block; None where it does not, or has gaps."""
        offset = tensor.data_ptr() - self._bytes.ctypes.data
        inside = offset >= 0 and offset + tensor.nbytes <= self.size
        return offset if inside and tensor.is_contiguous() else None


class WorkerBlocks:
    """The blocks of one worker, in the worker."""

    def __init__(self) -> None:
        self.blocks: list[SharedBlock] = []
        self._free: list[int] = []
        self._known: set[int] = set()
        """Those that the rank has the descriptor of."""
        self._current = self._used = 0
        """The block that is filled now, and how many of its bytes are in use."""

    def release(self, numbers: Sequence[int]) -> None:
        """The rank needs these no more."""
        self._free += numbers

    def begin(self) -> None:
        """Choose a block to fill."""
        if not self._free:
            self._free.append(len(self.blocks))
            self.blocks.append(SharedBlock.create())
        self._current, self._used = self._free.pop(), 0

    def give_back(self) -> None:
        """Nothing was stored in the block that was chosen."""
        self._free.append(self._current)

    def empty(self, shape: Sequence[int], dtype: torch.dtype) -> Tensor:
        """`torch.empty`, in the block that is filled now if it has room."""
        leaf = Leaf(self._used, tuple(shape), dtype)
        block, size = self.blocks[self._current], _num_bytes(leaf)
        if self._used + size > block.size:
            return torch.empty(leaf.shape, dtype=dtype)
        self._used = _aligned(self._used + size)
        return block.tensor(leaf)

    def store(self, tree: Any) -> Stored:
        """Write a tree into the block. Tensors that `empty` made in it are there already."""
        block = self.blocks[self._current]
        copies: list[tuple[Tensor, Leaf]] = []
        pickled = pickle.dumps(map_leaves(partial(self._place, block, copies), tree), pickle.HIGHEST_PROTOCOL)
        start, stop = self._used, self._used + len(pickled)
        if stop > block.size:
            block.grow(-(-int(stop * GROWTH) // mmap.PAGESIZE) * mmap.PAGESIZE)
        for tensor, leaf in copies:
            block.tensor(leaf).copy_(tensor)
        block.view()[start:stop] = np.frombuffer(pickled, np.uint8)
        is_new = self._current not in self._known
        self._known.add(self._current)
        return Stored(self._current, block.size, start, stop, is_new)

    def _place(self, block: SharedBlock, copies: list[tuple[Tensor, Leaf]], value: Any) -> Any:
        """The leaf of a tensor; other values as they are."""
        if not isinstance(value, Tensor) or value.layout != torch.strided or value.device.type != "cpu":
            return value
        value = value.detach()
        offset = block.offset_of(value) if block.size else None
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
            self._blocks[stored.block] = SharedBlock(receive())
        block = self._blocks[stored.block]
        if block.size < stored.size:
            block.map(stored.size)
        memory = block.view()
        tree = pickle.loads(memory[stored.start : stored.stop].tobytes())
        # All tensors share one storage, which holds `memory`. Its end means that the last of them was freed.
        weakref.finalize(memory, self._released.append, stored.block).atexit = False
        return map_leaves(partial(_leaf_to_tensor, torch.from_numpy(memory)), tree)

    def take_released(self) -> list[int]:
        """The blocks that no tensor uses, each once."""
        return [self._released.popleft() for _ in range(len(self._released))]

    def close(self) -> None:
        """Close the descriptors. Tensors stay valid."""
        for block in self._blocks.values():
            os.close(block.descriptor)
        self._blocks.clear()


def _leaf_to_tensor(memory: Tensor, value: Any) -> Any:
    return _tensor(memory, value) if isinstance(value, Leaf) else value


def _tensor(memory: Tensor, leaf: Leaf) -> Tensor:
    """A leaf of a block whose bytes are `memory`."""
    return memory[leaf.offset : leaf.offset + _num_bytes(leaf)].view(leaf.dtype).view(leaf.shape)


def _num_bytes(leaf: Leaf) -> int:
    return int(np.prod(leaf.shape, dtype=np.int64)) * leaf.dtype.itemsize


def _aligned(offset: int) -> int:
    return -(-offset // ALIGNMENT) * ALIGNMENT
