"""Which of a source's positions are used: quiet ones, each once, and mirrored.

Legend: N positions, 13 words of a position.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ranks.chess.core.rules import full_key
from ranks.chess.core.words import CASTLING_WORD, EN_PASSANT_WORD, KEY_WORD, SIDE_WORD
from ranks.chess.engine.search.quiet import quiet_mask
from ranks.workloads.chess_value.positions.sourced import SourcedPositions, joined

BITBOARDS = (*range(SIDE_WORD), EN_PASSANT_WORD)
"""The words of a position that mirroring reverses: pieces and the en passant square."""
_SWAPS = (
    (np.uint64(1), np.uint64(0x5555555555555555)),
    (np.uint64(2), np.uint64(0x3333333333333333)),
    (np.uint64(4), np.uint64(0x0F0F0F0F0F0F0F0F)),
)


class SeenKeys:
    """The Zobrist keys of all positions so far: 8 bytes each, in sorted arrays of which each is twice as long as the
    next one."""

    def __init__(self) -> None:
        self._sorted: list[NDArray[np.uint64]] = []

    def __len__(self) -> int:
        return sum(len(keys) for keys in self._sorted)

    def new(self, key_N: NDArray[np.uint64]) -> NDArray[np.intp]:
        """The indices of positions that were not seen before, each key once, in order. From now on they are seen."""
        _, first = np.unique(key_N, return_index=True)
        for keys in self._sorted:
            at = np.minimum(np.searchsorted(keys, key_N[first]), len(keys) - 1)
            first = first[keys[at] != key_N[first]]
        if len(first):
            self._sorted.append(np.sort(key_N[first]))
        while len(self._sorted) > 1 and len(self._sorted[-2]) <= 2 * len(self._sorted[-1]):
            self._sorted[-2:] = [np.sort(np.concatenate(self._sorted[-2:]), kind="stable")]
        return np.sort(first)


def filter_positions(found: SourcedPositions, seen: SeenKeys, *, quiet: bool, mirror: bool) -> SourcedPositions:
    """The positions that are used, each once among all chunks of a source."""
    if quiet:
        found = found.take(quiet_mask(found.boards_N13))
    if mirror:
        found = joined([found, mirrored(found)])
    return found.take(seen.new(found.boards_N13[:, KEY_WORD]))


def mirrored(found: SourcedPositions) -> SourcedPositions:
    """The positions in which no side may castle, with files a to h as h to a. Scores and results stay."""
    free = found.take(found.boards_N13[:, CASTLING_WORD] == 0)
    boards_N13 = free.boards_N13.copy()
    for word in BITBOARDS:
        boards_N13[:, word] = _reversed_ranks(boards_N13[:, word])
    for row in range(len(boards_N13)):
        boards_N13[row, KEY_WORD] = full_key(boards_N13, row)
    return free._replace(boards_N13=boards_N13)


def _reversed_ranks(set_N: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Bitboards with the bits of each byte in reverse order."""
    for shift, mask in _SWAPS:
        set_N = ((set_N >> shift) & mask) | ((set_N & mask) << shift)
    return set_N
