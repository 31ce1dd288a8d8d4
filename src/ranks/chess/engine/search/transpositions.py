"""The transposition table: results of earlier searches, by Zobrist key.

    table   uint64[T, 2]      word 0: key ^ word 1        an entry that two threads wrote half each matches no key
                              word 1:                     (Hyatt & Mann 2002)

    bits    0-15   score + 32768           32-47  static evaluation + 32768     56-57  bound
            16-31  move                    48-55  depth                         58-63  generation

SLOTS neighbouring entries, one cache line, form a bucket. A new entry replaces that of the same position, else the
one with the least depth; entries of older searches count as less deep. Mate scores are stored relative to the node.
"""

from __future__ import annotations

import numpy as np

from ranks.chess.core.alphabeta_state import EXACT, MATE_FLOOR, Number
from ranks.chess.core.bits import Word
from ranks.chess.core.tables import Words
from ranks.jit import inlined

SLOTS = 4
ENTRY_BYTES = 16
GENERATIONS = 64
OLDER = 4
"""An entry counts as so many plies less deep for each search that it is older than the present one."""
NO_EVAL = -32768
"""The static evaluation of a position in check, which has none."""


def table_entries(most: int) -> int:
    """The largest power of two up to `most`, at least one bucket."""
    return max(SLOTS, 1 << (most.bit_length() - 1))


def new_table(entries: int) -> Words:
    """An empty table; entries: as `table_entries` gives it."""
    return np.zeros((entries, 2), np.uint64)


def largest_table(entries: int) -> Words:
    """An empty table, with half as many entries and so on until it fits into the memory."""
    while True:
        try:
            return new_table(entries)
        except MemoryError:
            if entries <= SLOTS:
                raise
            entries //= 2


@inlined
def find_slot(table: Words, key: Word) -> Number:
    """The first slot of a key's bucket."""
    return np.int64(key & np.uint64(len(table) - 1)) & ~(SLOTS - 1)


@inlined
def probe(table: Words, key: Word) -> Number:
    """The word of a position's entry, or 0."""
    at = find_slot(table, key)
    for slot in range(at, at + SLOTS):
        word = table[slot, 1]
        if table[slot, 0] ^ word == key and word != np.uint64(0):
            return np.int64(word)
    return 0


@inlined
def score_of(entry: Number, level: int) -> Number:
    """The score of an entry as seen from a level."""
    score = (entry & 0xFFFF) - 32768
    if score > MATE_FLOOR:
        return score - level
    if score < -MATE_FLOOR:
        return score + level
    return score


@inlined
def move_of(entry: Number) -> Number:
    return entry >> 16 & 0xFFFF


@inlined
def eval_of(entry: Number) -> Number:
    return (entry >> 32 & 0xFFFF) - 32768


@inlined
def depth_of(entry: Number) -> Number:
    return entry >> 48 & 0xFF


@inlined
def bound_of(entry: Number) -> Number:
    return entry >> 56 & 3


@inlined
def worth(word: Word, generation: int) -> Number:
    """How much an entry is worth keeping."""
    entry = np.int64(word)
    age = (generation - (entry >> 58 & (GENERATIONS - 1))) & (GENERATIONS - 1)
    return depth_of(entry) - OLDER * age


@inlined
def store_result(
    table: Words,
    key: Word,
    level: int,
    score: Number,
    move: Number,
    static_eval: Number,
    depth: Number,
    bound: Number,
    generation: int,
) -> None:
    """Store the result of a node."""
    at = find_slot(table, key)
    chosen = at
    for slot in range(at, at + SLOTS):
        word = table[slot, 1]
        if table[slot, 0] ^ word == key:
            # keep a deeper entry of this search, and the best move where there is no new one
            old = np.int64(word)
            if bound != EXACT and depth + OLDER < depth_of(old) and worth(word, generation) == depth_of(old):
                return
            if move == 0:
                move = move_of(old)
            chosen = slot
            break
        if worth(word, generation) < worth(table[chosen, 1], generation):
            chosen = slot
    if score > MATE_FLOOR:
        score += level
    elif score < -MATE_FLOOR:
        score -= level
    entry = score + 32768 | move << 16 | (static_eval + 32768) << 32 | max(depth, 0) << 48 | bound << 56
    word = np.uint64(entry) | np.uint64(generation) << np.uint64(58)
    table[chosen, 0], table[chosen, 1] = key ^ word, word
