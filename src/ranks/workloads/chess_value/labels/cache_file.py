"""The arrays of a label file: keys, checks and scores, with what engine and limit they belong to.

    key_N    uint64[N]   Zobrist keys, ascending, each once
    check_N  uint64[N]   the second hash of each position
    cp_N     int16[N]    scores, see `units`
    about_B  uint8[B]    JSON: format, engine, limit, and the sha256 of the other arrays

Legend: N labels, M positions looked up, B bytes.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ranks.engine.files.strict_json import parse_object
from ranks.workloads.chess_value.config import LIMIT, STATIC
from ranks.workloads.chess_value.labels.units import MATE_CP

FORMAT = 1
ARRAYS = {"key_N": np.dtype(np.uint64), "check_N": np.dtype(np.uint64), "cp_N": np.dtype(np.int16)}
BYTES_PER_LABEL = 18


class UnfitLabels(Exception):
    """A file that holds no labels, or those of another engine, limit or version; the text says which."""


class CacheAbout(NamedTuple):
    """What a label depends on besides the position."""

    engine: str
    """Name, version and net: 'Stockfish 15.1, nn-ad9b42354671.nnue'."""
    limit: str
    """nodes:N, depth:D or static."""

    def __str__(self) -> str:
        return f"{self.engine}, {self.limit}"


class CachedLabels(NamedTuple):
    """Labels in the order of their keys."""

    key_N: NDArray[np.uint64]
    check_N: NDArray[np.uint64]
    cp_N: NDArray[np.int16]

    def rows(self, begin: int, end: int) -> CachedLabels:
        """Consecutive labels."""
        return CachedLabels(self.key_N[begin:end], self.check_N[begin:end], self.cp_N[begin:end])

    def places(self, key_M: NDArray[np.uint64], check_M: NDArray[np.uint64]) -> NDArray[np.int64]:
        """int64[M]: the row of each position, given by key and check; -1 where there is none."""
        if not len(self.key_N):
            return np.full(len(key_M), -1)
        at_M = np.minimum(np.searchsorted(self.key_N, key_M), len(self.key_N) - 1)
        return np.where((self.key_N[at_M] == key_M) & (self.check_N[at_M] == check_M), at_M, -1)

    def arrays(self, about: CacheAbout) -> dict[str, NDArray[Any]]:
        """The named arrays of a file."""
        text = json.dumps({"format": FORMAT, **about._asdict(), "sha256": self.sha256()}, sort_keys=True)
        return {**self._asdict(), "about_B": np.frombuffer(text.encode(), np.uint8)}

    def sha256(self) -> str:
        """Of the three arrays, in little-endian order."""
        digest = hashlib.sha256()
        for array in (self.key_N, self.check_N, self.cp_N):
            digest.update(np.ascontiguousarray(array).tobytes())
        return digest.hexdigest()


def in_order(key_N: NDArray[np.uint64], check_N: NDArray[np.uint64], cp_N: NDArray[np.int16]) -> CachedLabels:
    """Labels sorted by key; of several with one key the first."""
    _, first = np.unique(key_N, return_index=True)
    return CachedLabels(key_N[first], check_N[first], cp_N[first])


def merged(parts: list[CachedLabels]) -> CachedLabels:
    """The labels of all parts; of several with one key that of the earliest part."""
    return in_order(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))


def about_of(arrays: dict[str, NDArray[Any]]) -> tuple[CacheAbout, str]:
    """What labels belong to, and their sha256. Raises UnfitLabels."""
    try:
        about = parse_object(arrays["about_B"].tobytes())
        if about["format"] != FORMAT:
            raise UnfitLabels(f"labels of format {about['format']}, this version reads {FORMAT}")
        engine, limit = str(about["engine"]), str(about["limit"])
        engine.encode()  # a lone surrogate is a ValueError
        if limit != STATIC and LIMIT.fullmatch(limit) is None:  # it is part of a folder's name
            raise UnfitLabels(f"labels of the limit {limit[:40]!r}, not of nodes:N, depth:D or static")
        return CacheAbout(engine, limit), str(about["sha256"])
    except (KeyError, ValueError) as error:
        raise UnfitLabels(f"no file of labels ({type(error).__name__}: {error})"[:200]) from None


def labels_of(arrays: dict[str, NDArray[Any]], wanted: CacheAbout | None = None) -> CachedLabels:
    """The labels of a file, not hashed. Raises UnfitLabels where they are damaged or belong to another engine or
    limit than `wanted`."""
    about, _ = about_of(arrays)
    if wanted is not None and about != wanted:
        raise UnfitLabels(f"labels of {about}, not of {wanted}")
    if any(name not in arrays or arrays[name].dtype != dtype for name, dtype in ARRAYS.items()):
        raise UnfitLabels("an array is missing or has another type")
    labels = CachedLabels(*(arrays[name] for name in ARRAYS))
    if any(array.ndim != 1 or len(array) != len(labels.key_N) for array in labels):
        raise UnfitLabels("its arrays have different lengths")
    if (labels.key_N[1:] <= labels.key_N[:-1]).any():
        raise UnfitLabels("its keys are out of order")
    if (np.abs(labels.cp_N.astype(np.int32)) > MATE_CP).any():
        raise UnfitLabels("a score is out of range")
    return labels
