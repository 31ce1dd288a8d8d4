"""What a data set is: `Dataset`, and what it may say on top of that."""

from __future__ import annotations

from typing import Any, Protocol, TypeVar

from torch import Tensor

B = TypeVar("B", covariant=True)


class Dataset(Protocol[B]):
    """A map-style data set. `gather`: int64[N] item ids -> a batch on the rank's device. `cost`:
    float64[len], above zero, or None where every item costs 1. `sha256`: of the data, for the run's
    identity.

    It may also have `on_host = True`: `gather` returns tensors on the CPU, and the stream copies
    them to the rank's device. Read ahead by workers (`ranks.data.stream`), it must do that. It may
    have `describe(id) -> str`, which names the file of an item in an error.
    """

    @property
    def cost(self) -> Tensor | None: ...
    @property
    def sha256(self) -> str: ...
    def __len__(self) -> int: ...
    def gather(self, ids: Tensor) -> B: ...


def is_on_host(dataset: Dataset[Any]) -> bool:
    """Whether `gather` returns tensors on the CPU that have to be copied to the rank's device."""
    return bool(getattr(dataset, "on_host", False))


def described(dataset: Dataset[Any], item: int) -> str:
    """'item 17' or 'item 17 (clips/a.mp4)', for an error."""
    describe: Any = getattr(dataset, "describe", None)
    if describe is None:
        return f"item {item}"
    try:
        return f"item {item} ({describe(item)})"
    except Exception as error:  # the user's function; the error that it belongs to is the one to show
        return f"item {item} (its describe raised {type(error).__name__}: {error})"
