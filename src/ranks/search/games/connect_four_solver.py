"""An exact solver of Connect Four: who wins from a position under perfect play.

Alpha-beta search over won, drawn and lost. Bounds are kept in a transposition table, moves in the centre are tried
first, and moves that lose at once are left out (Allis 1988; the bit patterns follow Pons, "Solving Connect Four"). It
is a loop with an explicit stack, because cached kernels must not call themselves.
"""

from __future__ import annotations

import numpy as np
from numba import types

from ranks.jit import helper, kernel
from ranks.search.evaluation import Words
from ranks.search.game import KEYS
from ranks.search.games.connect_four import BOTTOM, COLUMN, EMPTY, FULL, SEVEN
from ranks.splitmix64 import GOLDEN_GAMMA_U64

TABLE_BITS = 20
CENTRE_FIRST = np.array([3, 2, 4, 1, 5, 0, 6], np.uint64)
UNKNOWN = np.uint64(0b1000)
"""An entry is the key times 16, plus 4 * (highest possible value + 1) + (lowest possible value + 1)."""


@helper
def completing(stones: np.uint64, taken: np.uint64) -> np.uint64:
    """The empty squares that would complete four of these stones, also those that cannot be played yet."""
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
    """The squares that can be played now such that the other side cannot win with its next stone."""
    taken = mine | theirs
    playable = (taken + BOTTOM) & FULL
    threats = completing(theirs, taken)
    forced = playable & threats
    if forced != EMPTY:
        if forced & (forced - np.uint64(1)) != EMPTY:
            return EMPTY
        playable = forced
    return playable & ~(threats >> np.uint64(1))


@kernel(types.int64(types.uint64, types.uint64, KEYS))
def solve(mine: np.uint64, theirs: np.uint64, table: Words) -> int:
    """The value for the side to move of a position in which neither side has four: -1 lost, 0 drawn, 1 won.

    `table` is uint64[2**TABLE_BITS], zeros at first; one table can be used for any number of positions.
    """
    stack, untried = np.zeros((43, 2), np.uint64), np.zeros(43, np.uint64)
    floors, alphas, betas = np.zeros(43, np.int64), np.zeros(43, np.int64), np.zeros(43, np.int64)
    stack[0, 0], stack[0, 1] = mine, theirs
    alphas[0], betas[0] = -1, 1
    depth, value, entering = 0, 0, True
    while True:
        # Look the position up: Fibonacci hashing (Knuth), a multiplication by 2**64 / the golden ratio.
        own, other = stack[depth, 0], stack[depth, 1]
        taken = own | other
        key = own + taken + BOTTOM
        place = (key * GOLDEN_GAMMA_U64) >> np.uint64(64 - TABLE_BITS)
        known = table[place] & np.uint64(15) if table[place] >> np.uint64(4) == key else UNKNOWN
        lowest, highest = np.int64(known & np.uint64(3)) - 1, np.int64(known >> np.uint64(2)) - 1
        returning = True
        # A new position: solved at once, cut off by the bounds in the table, or searched move by move.
        if entering:
            entering = False
            untried[depth] = safe_moves(own, other)
            alphas[depth] = max(alphas[depth], lowest)
            betas[depth] = min(betas[depth], highest)
            floors[depth] = alphas[depth]
            if taken == FULL:
                value = 0
            elif (taken + BOTTOM) & completing(own, taken) != EMPTY:
                value = 1
            elif untried[depth] == EMPTY:
                value = -1
            elif alphas[depth] >= betas[depth]:
                value = alphas[depth]
            else:
                returning = False
        else:
            # Back from a move: raise alpha, and store the bounds when the position is solved or cut off.
            alphas[depth] = max(alphas[depth], -value)
            if alphas[depth] >= betas[depth] or untried[depth] == EMPTY:
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
        # Play the next untried move, the centre first.
        square = EMPTY
        for column in CENTRE_FIRST:
            square = untried[depth] & (COLUMN << SEVEN * column)
            if square != EMPTY:
                break
        untried[depth] ^= square
        stack[depth + 1, 0], stack[depth + 1, 1] = other, own | square
        alphas[depth + 1], betas[depth + 1] = -betas[depth], -alphas[depth]
        depth += 1
        entering = True
