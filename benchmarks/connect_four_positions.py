"""Connect Four positions with the exact value of every legal move: `python benchmarks/connect_four_positions.py`.

It writes benchmarks/data/connect_four.csv again, which is committed, and prints its sha256; with --check it solves
some of them again instead. A position is made by uniformly random moves, from 8 to 30 of them, each number equally
often, and is taken if at least one legal move is worse than the best one. No position or its mirror image is there
twice. Columns of the file:

    moves     the columns that were played, 0 to 6 from the left
    outcomes  of each column, for the side to move under perfect play: + won, = drawn, - lost, . a full column
    best      the columns with the best outcome
    soonest   those of them that win soonest or lose latest; equal to best where the best is a draw
"""

from __future__ import annotations

import argparse
import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from measure import ROOT
from numpy.typing import NDArray

from ranks.search import CONNECT_FOUR
from ranks.search.games.connect_four_solver import score, solve

FILE = ROOT / "benchmarks" / "data" / "connect_four.csv"
SHA256 = "to be made"
SEED, COUNT, PLIES = 20_261_122, 1_200, range(8, 31)
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


def solved(moves: tuple[int, ...], state_W: Words, legal: list[int], table: Words) -> tuple[Position, str] | None:
    """The position with its best moves and the outcomes of all; None where all moves are equally good."""
    outcomes = {move: value_after(state_W, move, table, with_distance=False) for move in legal}
    highest = max(outcomes.values())
    best = [move for move in legal if outcomes[move] == highest]
    if len(best) == len(legal):
        return None
    soonest = best
    if highest != 0 and len(best) > 1:
        scores = {move: value_after(state_W, move, table, with_distance=True) for move in best}
        soonest = [move for move in best if scores[move] == max(scores.values())]
    signs = "".join(SIGNS[outcomes[column]] if column in outcomes else "." for column in range(7))
    return Position(moves, state_W, tuple(legal), frozenset(best), frozenset(soonest)), signs


def line(position: Position, signs: str) -> str:
    """A line of the file."""
    columns = [position.moves, None, sorted(position.best), sorted(position.soonest)]
    return ",".join(signs if part is None else "".join(map(str, part)) for part in columns)


def make(count: int) -> list[str]:
    """The lines of the file, the header first."""
    rng, table = np.random.default_rng(SEED), np.zeros(1 << TABLE_BITS, np.uint64)
    lines, seen = ["moves,outcomes,best,soonest"], set[tuple[int, ...]]()
    while len(lines) <= count:
        plies = int(rng.integers(PLIES.start, PLIES.stop))
        moves, state_W = list[int](), CONNECT_FOUR.initial
        while len(moves) < plies and (legal := legal_moves(state_W)):
            moves.append(int(rng.choice(legal)))
            state_W = after(state_W, moves[-1])
        legal = legal_moves(state_W)
        if len(moves) < plies or not legal or key_of(state_W) in seen:
            continue
        seen.add(key_of(state_W))
        found = solved(tuple(moves), state_W, legal, table)
        if found is not None:
            lines.append(line(*found))
    return lines


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
    rows = np.random.default_rng().choice(len(lines), number, replace=False)
    for row in rows:
        moves = tuple(map(int, lines[row].split(",")[0]))
        state_W = played(moves)
        found = solved(moves, state_W, legal_moves(state_W), np.zeros(1 << TABLE_BITS, np.uint64))
        if found is None or line(*found) != lines[row]:
            raise SystemExit(f"row {row}: {lines[row]} in the file, found {found}")
    print(f"{number} of {len(lines)} positions solved again: equal")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", type=int, metavar="N", help="solve N positions again and compare")
    parser.add_argument("--count", type=int, default=COUNT)
    parser.add_argument("--out", type=Path, default=FILE)
    asked = parser.parse_args()
    if asked.check:
        check(asked.check)
    else:
        asked.out.parent.mkdir(parents=True, exist_ok=True)
        asked.out.write_text("\n".join(make(asked.count)) + "\n", encoding="utf-8")
        print(hashlib.sha256(asked.out.read_bytes()).hexdigest(), asked.out)
