"""Any map-style data set, of torch, of Hugging Face, or a plain list, as a data set of a stream."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
import torch
from torch import Tensor

from ranks.data.default_collate import collate as stack_items
from ranks.data.loading.place import current_key, note_item
from ranks.data.loading.tensor_tree import map_leaves
from ranks.engine.sharding import rng
from ranks.errors import UserError

B = TypeVar("B")
SAMPLED = 8
"""How many items the default sha256 reads."""


class SupportsGetItem(Protocol):
    """What torch calls a map-style data set."""

    def __len__(self) -> int: ...
    def __getitem__(self, item: int, /) -> Any: ...


class MapStyle(Generic[B]):
    """Made by `from_map_style`. `gather` loads items one by one and collates them, on the CPU."""

    on_host = True

    def __init__(
        self,
        items: SupportsGetItem,
        collate: Callable[[Sequence[Any]], B],
        cost: Tensor | None,
        random: bool,
        describe: Callable[[int], str] | None,
    ) -> None:
        self.items, self.collate, self.cost, self.random = items, collate, cost, random
        self._describe = describe
        self.sha256 = ""

    def __len__(self) -> int:
        return len(self.items)

    def __getstate__(self) -> dict[str, Any]:
        """What workers get: all but `describe`, which only the rank calls, and which is often a lambda."""
        return {**self.__dict__, "_describe": None}

    def gather(self, ids: Tensor) -> B:
        """int64[N] item ids -> their batch on the CPU."""
        items: list[Any] = []
        seeds: list[int] = rng.bits(current_key(), ids, 1)[:, 0].tolist() if self.random else []
        with kept_generators() if self.random else nullcontext():
            for index, item in enumerate(ids.tolist()):
                note_item(item)
                if self.random:
                    seed_generators(seeds[index])
                items.append(self.items[item])
            return self.collate(items)

    def describe(self, item: int) -> str:
        """What a person knows the item by, for errors."""
        return self._describe(item) if self._describe is not None else f"{type(self.items).__name__}[{item}]"


def from_map_style(
    items: SupportsGetItem,
    *,
    collate: Callable[[Sequence[Any]], B] = stack_items,
    sha256: str | None = None,
    cost: Tensor | None = None,
    random: bool = False,
    describe: Callable[[int], str] | None = None,
) -> MapStyle[B]:
    """A data set for `stream` from anything with `len(items)` and `items[i]`, such as torch's or
    Hugging Face's (`with_format("torch")`).

    `collate`: items -> a batch of tensors on the CPU; by default `ranks.data.collate`. `sha256`: of
    the data; by default of the length and of eight items, so that most other data make another run.
    `cost`: float64[len], above zero, where items differ in cost. `random`: items draw from the
    generators of torch, NumPy or Python (augmentation); these are then seeded by seed, epoch and
    item id, so that a batch does not depend on the worker that loads it. `describe`: an item id ->
    its file, for errors. Raises UserError where an item cannot be read.
    """
    made = MapStyle(items, collate, cost, random, describe)
    made.sha256 = sha256 if sha256 is not None else sample_sha256(made)
    return made


def sample_sha256(dataset: MapStyle[Any]) -> str:
    """The sha256 of the length and of up to `SAMPLED` items, spread evenly. Raises UserError where an item cannot be
    read, or is another one when it is read again: its augmentation would make each start another run."""
    count = len(dataset)
    digest = hashlib.sha256(f"{count}".encode())
    for item in sorted({index * (count - 1) // max(1, SAMPLED - 1) for index in range(SAMPLED)} if count else ()):
        asked = f"item {item} of the data set"
        try:
            once, again = (content_of(dataset.gather(torch.tensor([item]))) for _ in range(2))
        except UserError:
            raise
        except Exception as error:
            found = f"{type(error).__name__}: {error}"
            raise UserError(asked, found, "correct the data set, or give from_map_style a collate") from error
        if once != again:
            do = "where items draw random numbers, give from_map_style random=True; else give sha256="
            raise UserError(asked, "it is another one when it is read again", do)
        digest.update(once)
    return digest.hexdigest()


def content_of(batch: Any) -> bytes:
    """All leaves of a batch, tensors with their type and shape."""
    parts: list[bytes] = []

    def add(leaf: Any) -> None:
        if isinstance(leaf, Tensor):
            parts.append(f"{leaf.dtype}{tuple(leaf.shape)}".encode())
            parts.append(leaf.detach().cpu().contiguous().view(-1).view(torch.uint8).numpy().tobytes())
        else:
            parts.append(repr(leaf).encode())

    map_leaves(add, batch)
    return b"".join(parts)


def seed_generators(seed: int) -> None:
    """Seed torch, NumPy and Python with 64 random bits."""
    torch.default_generator.manual_seed(seed)
    np.random.seed(seed & 0xFFFFFFFF)
    random.seed(seed)


@contextmanager
def kept_generators() -> Generator[None]:
    """The generators of torch, NumPy and Python are afterwards what they were: the model draws from them too."""
    before = torch.default_generator.get_state(), np.random.get_state(), random.getstate()
    try:
        yield
    finally:
        torch.default_generator.set_state(before[0])
        np.random.set_state(before[1])
        random.setstate(before[2])
