"""Connect Four positions with the exact value of every legal move.

    python -m benchmarks.selfplay.connect_four_positions [--check]

It writes data/connect_four.csv again, which is committed, and prints its sha256; with --check it solves
some of them again instead. A position is made by uniformly random moves, from 8 to 30 of them, each number equally
often, and is taken if at least one legal move is worse than the best one. No position or its mirror image is there
twice. Columns of the file:

    moves     the columns that were played, 0 to 6 from the left
    outcomes  of each column, for the side to move under perfect play: + won, = drawn, - lost, . a full column
    best      the columns with the best outcome
    soonest   those of them that win soonest or lose latest, from 16 moves on; all of them where the best is a draw
"""

from __future__ import annotations

import argparse
import functools
import hashlib
import itertools
import multiprocessing
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ranks.search import CONNECT_FOUR
from ranks.search.games.connect_four_solver import score, solve

FILE = Path(__file__).with_name("data") / "connect_four.csv"
SHA256 = "19edd02758f6e1ab258b7d4cf7f947b8fe471e3b1f1298e13ef662243bff1c46"
SEED, COUNT, PLIES = 20_261_122, 1100, range(8, 31)
STRICT_FROM = 16
"""Plies from which the distance of an end is computed; it takes too long in earlier positions."""
TABLE_BITS = 23
SIGNS = {1: "+", 0: "=", -1: "-"}
NO_KEYS = np.zeros(1, np.uint64)
Words = NDArray[np.uint64]


@dataclass(frozen=True)
class Position:
    """A position, and what its moves are worth."""

    moves: tuple[int, ...]
    state_W: Words
    legal: tuple[int, ...]
    best: frozenset[int]
    soonest: frozenset[int]


def legal_moves(state_W: Words) -> list[int]:
    """The legal moves; none where the game is over."""
    moves = np.zeros(7, np.uint16)
    return moves[: max(0, outcome_or_count(state_W, moves))].tolist()


def outcome_or_count(state_W: Words, moves: NDArray[np.uint16]) -> int:
    return int(CONNECT_FOUR.legal_moves(state_W[None].copy(), 0, NO_KEYS, 0, 0, moves, 0))


def after(state_W: Words, move: int) -> Words:
    """The state after a move."""
    states: Any = np.stack([state_W, state_W])
    CONNECT_FOUR.play(states, 0, states, 1, np.uint16(move))
    return states[1]


def played(moves: tuple[int, ...]) -> Words:
    """The state after these moves from the start."""
    state_W = CONNECT_FOUR.initial
    for move in moves:
        state_W = after(state_W, move)
    return state_W


def mirrored(state_PW: Words) -> Words:
    """The states with left and right exchanged: [..., W]."""
    column, seven = np.uint64(0b1111111), np.uint64(7)
    found = np.zeros_like(state_PW)
    for index in range(7):
        bits = (state_PW >> (seven * np.uint64(index))) & column
        found |= bits << (seven * np.uint64(6 - index))
    return found


def key_of(state_W: Words) -> tuple[int, ...]:
    """Equal for a position and its mirror image, and only for these."""
    return min(tuple(state_W.tolist()), tuple(mirrored(state_W).tolist()))


def value_after(state_W: Words, move: int, table: Words, with_distance: bool) -> int:
    """What a move is worth for the side that plays it: its outcome, or its score (`connect_four_solver.score`)."""
    child_W = after(state_W, move)
    count = outcome_or_count(child_W, np.zeros(7, np.uint16))
    if count == -1:  # lost for the other side
        stones = sum(int(word).bit_count() for word in state_W)
        return (43 - stones) // 2 if with_distance else 1
    return 0 if count < 0 else -(score if with_distance else solve)(child_W[0], child_W[1], table)


def solved(moves: tuple[int, ...], table: Words) -> str | None:
    """The line of a position; None where all moves are equally good."""
    state_W = played(moves)
    legal = legal_moves(state_W)
    outcomes = {move: value_after(state_W, move, table, with_distance=False) for move in legal}
    highest = max(outcomes.values())
    best = [move for move in legal if outcomes[move] == highest]
    if len(best) == len(legal):
        return None
    soonest = best if len(moves) >= STRICT_FROM else []
    if highest != 0 and len(soonest) > 1:
        scores = {move: value_after(state_W, move, table, with_distance=True) for move in best}
        soonest = [move for move in best if scores[move] == max(scores.values())]
    signs = "".join(SIGNS[outcomes[column]] if column in outcomes else "." for column in range(7))
    digits = ["".join(map(str, part)) for part in (moves, best, soonest)]
    return ",".join([digits[0], signs, *digits[1:]])


def candidates() -> Iterator[tuple[int, ...]]:
    """The moves of random positions in which the game goes on, each position once."""
    rng, seen = np.random.default_rng(SEED), set[tuple[int, ...]]()
    while True:
        plies = int(rng.integers(PLIES.start, PLIES.stop))
        moves, state_W = list[int](), CONNECT_FOUR.initial
        while len(moves) < plies and (legal := legal_moves(state_W)):
            moves.append(int(rng.choice(legal)))
            state_W = after(state_W, moves[-1])
        if len(moves) == plies and legal_moves(state_W) and key_of(state_W) not in seen:
            seen.add(key_of(state_W))
            yield tuple(moves)


@functools.cache
def own_table() -> Words:
    """The solver's table of this process."""
    return np.zeros(1 << TABLE_BITS, np.uint64)


def solved_here(moves: tuple[int, ...]) -> str | None:
    """A worker's part."""
    return solved(moves, own_table())


def make(count: int, processes: int) -> list[str]:
    """The lines of the file, the header first; the same with any number of processes."""
    lines, source = ["moves,outcomes,best,soonest"], candidates()
    with multiprocessing.get_context("spawn").Pool(processes) as pool:
        while len(lines) <= count:
            lines += [line for line in pool.map(solved_here, itertools.islice(source, 100), 1) if line is not None]
    return lines[: count + 1]


def read() -> list[Position]:
    """The committed positions. Raises ValueError for a file that was changed."""
    text = FILE.read_bytes()
    if hashlib.sha256(text).hexdigest() != SHA256:
        raise ValueError(f"{FILE} has another sha256 than {SHA256}; restore it with git checkout")
    positions = list[Position]()
    for row in text.decode().splitlines()[1:]:
        moves, signs, best, soonest = row.split(",")
        legal = tuple(column for column in range(7) if signs[column] != ".")
        columns = tuple(map(int, moves))
        positions.append(
            Position(columns, played(columns), legal, frozenset(map(int, best)), frozenset(map(int, soonest)))
        )
    return positions


def check(number: int) -> None:
    """Solve some of the committed positions again, with an empty table for each, and compare the lines."""
    lines = FILE.read_text(encoding="utf-8").splitlines()[1:]
    for row in np.random.default_rng().choice(len(lines), number, replace=False):
        found = solved(tuple(map(int, lines[row].split(",")[0])), np.zeros(1 << TABLE_BITS, np.uint64))
        if found != lines[row]:
            raise SystemExit(f"row {row}: {lines[row]} in the file, found {found}")
    print(f"{number} of {len(lines)} positions solved again: equal")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", type=int, metavar="N", help="solve N positions again and compare")
    parser.add_argument("--count", type=int, default=COUNT)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--out", type=Path, default=FILE)
    asked = parser.parse_args()
    if asked.check:
        check(asked.check)
    else:
        asked.out.parent.mkdir(parents=True, exist_ok=True)
        asked.out.write_text("\n".join(make(asked.count, asked.processes)) + "\n", encoding="utf-8")
        print(hashlib.sha256(asked.out.read_bytes()).hexdigest(), asked.out)
