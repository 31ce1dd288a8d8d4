"""Connect Four solved exactly, as an oracle: who wins from a position when nobody errs.

Alpha-beta over won, drawn and lost with bounds kept in a table, the centre first, and of the moves only those that do
not lose at once (Allis 1988; the bit patterns follow Pons, Solving Connect Four). A loop with an explicit stack, since
cached kernels must not call themselves.
"""

from __future__ import annotations

import numpy as np
from numba import types

from ranks.jit import helper, kernel
from ranks.search.evaluation import Words
from ranks.search.game import KEYS
from ranks.search.games.connect_four import BOTTOM, COLUMN, FULL, NOTHING, SEVEN

TABLE_BITS = 20
MIXER = np.uint64(0x9E3779B97F4A7C15)
CENTRE_FIRST = np.array([3, 2, 4, 1, 5, 0, 6], np.uint64)
UNKNOWN = np.uint64(0b1000)
"""An entry is the key times 16, plus 4 * (highest possible value + 1) + (lowest possible value + 1)."""


@helper
def completing(stones: np.uint64, taken: np.uint64) -> np.uint64:
    """The empty squares that would make four of these stones, whether or not a stone can lie there yet."""
    found = (stones << np.uint64(1)) & (stones << np.uint64(2)) & (stones << np.uint64(3))
    for shift in (np.uint64(6), np.uint64(7), np.uint64(8)):
        two, three = shift + shift, shift + shift + shift
        pair = (stones << shift) & (stones << two)
        found |= pair & (stones << three) | pair & (stones >> shift)
        pair = (stones >> shift) & (stones >> two)
        found |= pair & (stones >> three) | pair & (stones << shift)
    return found & (FULL ^ taken)


@helper
def safe_moves(mine: np.uint64, theirs: np.uint64) -> np.uint64:
    """The squares that can be taken now without the other side winning with its next stone."""
    taken = mine | theirs
    playable = (taken + BOTTOM) & FULL
    threats = completing(theirs, taken)
    forced = playable & threats
    if forced != NOTHING:
        if forced & (forced - np.uint64(1)) != NOTHING:
            return NOTHING
        playable = forced
    return playable & ~(threats >> np.uint64(1))


@kernel(types.int64(types.uint64, types.uint64, KEYS))
def solve(mine: np.uint64, theirs: np.uint64, table: Words) -> int:
    """The value for the side to move of a position in which nobody has four: -1 lost, 0 drawn, 1 won.

    `table` is uint64[2**TABLE_BITS], of zeros at first; it may serve any number of positions.
    """
    stack, untried = np.zeros((43, 2), np.uint64), np.zeros(43, np.uint64)
    floors, alphas, betas = np.zeros(43, np.int64), np.zeros(43, np.int64), np.zeros(43, np.int64)
    stack[0, 0], stack[0, 1] = mine, theirs
    alphas[0], betas[0] = -1, 1
    depth, value, entering = 0, 0, True
    while True:
        own, other = stack[depth, 0], stack[depth, 1]
        taken = own | other
        key = own + taken + BOTTOM
        place = (key * MIXER) >> np.uint64(64 - TABLE_BITS)
        known = table[place] & np.uint64(15) if table[place] >> np.uint64(4) == key else UNKNOWN
        lowest, highest = np.int64(known & np.uint64(3)) - 1, np.int64(known >> np.uint64(2)) - 1
        returning = True
        if entering:
            entering = False
            untried[depth] = safe_moves(own, other)
            alphas[depth] = max(alphas[depth], lowest)
            betas[depth] = min(betas[depth], highest)
            floors[depth] = alphas[depth]
            if taken == FULL:
                value = 0
            elif (taken + BOTTOM) & completing(own, taken) != NOTHING:
                value = 1
            elif untried[depth] == NOTHING:
                value = -1
            elif alphas[depth] >= betas[depth]:
                value = alphas[depth]
            else:
                returning = False
        else:
            alphas[depth] = max(alphas[depth], -value)
            if alphas[depth] >= betas[depth] or untried[depth] == NOTHING:
                value = alphas[depth]
                if value > floors[depth]:
                    lowest = max(lowest, value)
                if value < betas[depth]:
                    highest = min(highest, value)
                table[place] = (key << np.uint64(4)) | np.uint64(4 * (highest + 1) + lowest + 1)
            else:
                returning = False
        if returning:
            if depth == 0:
                return value
            depth -= 1
            continue
        square = NOTHING
        for column in CENTRE_FIRST:
            square = untried[depth] & (COLUMN << SEVEN * column)
            if square != NOTHING:
                break
        untried[depth] ^= square
        stack[depth + 1, 0], stack[depth + 1, 1] = other, own | square
        alphas[depth + 1], betas[depth + 1] = -betas[depth], -alphas[depth]
        depth += 1
        entering = True
