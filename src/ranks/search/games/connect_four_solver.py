"""An exact solver of Connect Four: who wins from a position under perfect play, and how soon.

Alpha-beta search over scores. A score is the number of stones that the winner still has when the game ends, plus one;
negative for the side that loses, 0 for a draw. So its sign is the outcome, and sooner wins score higher. Bounds are
kept in a transposition table, moves that make more threats are tried first, and moves that lose at once are left out
(Allis 1988; scores, bit patterns and the order of moves follow Pons, "Solving Connect Four"). It is a loop with an
explicit stack, because cached kernels must not call themselves.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types

from ranks.jit import helper, kernel
from ranks.search.evaluation import Words
from ranks.search.game import KEYS
from ranks.search.games.connect_four import BOTTOM, COLUMN, EMPTY, FULL, SEVEN
from ranks.splitmix64 import GOLDEN_GAMMA_U64

TABLE_BITS = 20
"""Enough for positions with 14 stones or more; earlier ones are solved sooner with 23."""
CENTRE_LAST = np.array([0, 6, 1, 5, 2, 4, 3], np.uint64)
MOST = np.int64(21)
"""The highest score."""
SIX_BITS = np.uint64(63)


@helper
def entry(key: np.uint64, lowest: Any, highest: Any) -> np.uint64:
    """What the table holds: a position's key, and the bounds of its score."""
    return (key << np.uint64(12)) | np.uint64(64 * (highest + MOST) + lowest + MOST)


@helper
def count(bits: np.uint64) -> Any:
    """The number of bits that are set."""
    found = np.int64(0)
    while bits != EMPTY:
        bits &= bits - np.uint64(1)
        found += 1
    return found


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


@kernel(types.int64(types.uint64, types.uint64, KEYS, types.int64, types.int64))
def bounded_score(mine: np.uint64, theirs: np.uint64, table: Words, alpha: int, beta: int) -> Any:
    """The score for the side to move of a position in which neither side has four, if it lies between alpha and beta;
    alpha if it is lower, beta if it is higher.

    `table` is uint64[2**n], zeros at first; one table can be used for any number of positions.
    """
    shift = np.uint64(64 - count(np.uint64(len(table) - 1)))
    stack, moves, num_moves = np.zeros((43, 2), np.uint64), np.zeros((43, 7), np.uint64), np.zeros(43, np.int64)
    weights = np.zeros(7, np.int64)
    floors, alphas, betas = np.zeros(43, np.int64), np.zeros(43, np.int64), np.zeros(43, np.int64)
    stack[0, 0], stack[0, 1] = mine, theirs
    alphas[0], betas[0] = alpha, beta
    num_stones = count(mine | theirs)
    depth, value, entering = 0, np.int64(0), True
    while True:
        # Look the position up: Fibonacci hashing (Knuth), a multiplication by 2**64 / the golden ratio.
        own, other = stack[depth, 0], stack[depth, 1]
        taken = own | other
        key = own + taken + BOTTOM
        place = (key * GOLDEN_GAMMA_U64) >> shift
        lowest, highest = -MOST, MOST
        if table[place] >> np.uint64(12) == key:
            lowest = np.int64(table[place] & SIX_BITS) - MOST
            highest = np.int64(table[place] >> np.uint64(6) & SIX_BITS) - MOST
        returning = True
        # A new position: solved at once, cut off by the bounds in the table, or searched move by move.
        if entering:
            entering = False
            safe = safe_moves(own, other)
            stones = num_stones + depth
            alphas[depth] = max(alphas[depth], lowest)
            betas[depth] = min(betas[depth], highest)
            floors[depth] = alphas[depth]
            if taken == FULL:
                value = np.int64(0)
            elif (taken + BOTTOM) & completing(own, taken) != EMPTY:
                value = (43 - stones) // 2
            elif safe == EMPTY:
                value = -((42 - stones) // 2)
            elif alphas[depth] >= betas[depth]:
                value = alphas[depth]
            else:
                returning = False
                # Sort the moves: the one that is tried first, with most threats, comes last. Equal ones: centre first.
                number = 0
                for column in CENTRE_LAST:
                    square = safe & (COLUMN << SEVEN * column)
                    if square != EMPTY:
                        weight = count(completing(own | square, taken))
                        at = number
                        while at > 0 and weights[at - 1] > weight:
                            weights[at], moves[depth, at] = weights[at - 1], moves[depth, at - 1]
                            at -= 1
                        weights[at], moves[depth, at] = weight, square
                        number += 1
                num_moves[depth] = number
        else:
            # Back from a move: raise alpha, and store the bounds when the position is solved or cut off.
            alphas[depth] = max(alphas[depth], -value)
            if alphas[depth] >= betas[depth] or num_moves[depth] == 0:
                value = alphas[depth]
                if value > floors[depth]:
                    lowest = max(lowest, value)
                if value < betas[depth]:
                    highest = min(highest, value)
                table[place] = entry(key, lowest, highest)
            else:
                returning = False
        if returning:
            if depth == 0:
                return min(max(value, alpha), beta)
            depth -= 1
            continue
        # Play the next untried move.
        num_moves[depth] -= 1
        square = moves[depth, num_moves[depth]]
        stack[depth + 1, 0], stack[depth + 1, 1] = other, own | square
        alphas[depth + 1], betas[depth + 1] = -betas[depth], -alphas[depth]
        depth += 1
        entering = True


def solve(mine: np.uint64, theirs: np.uint64, table: Words) -> int:
    """The outcome for the side to move under perfect play: -1 lost, 0 drawn, 1 won. See `bounded_score`."""
    return int(bounded_score(mine, theirs, table, -1, 1))


def score(mine: np.uint64, theirs: np.uint64, table: Words) -> int:
    """The score for the side to move: the outcome first, then how soon. See `bounded_score`.

    It is bracketed from zero outwards, with searches that only ask on which side of a number it lies (Pons).
    """
    low, high = -int(MOST), int(MOST)
    while low < high:
        middle = (low + high) // 2
        if middle <= 0 and low // 2 < middle:
            middle = low // 2
        elif middle >= 0 and high // 2 > middle:
            middle = high // 2
        found = int(bounded_score(mine, theirs, table, middle, middle + 1))
        low, high = (low, middle) if found <= middle else (middle + 1, high)
    return low
