"""Solved Connect Four positions, and how often a search plays a best move in them.

python -m tests.search.solved_positions --positions 2000 --stones 26 --simulations 8000
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass

import numpy as np

from ranks.search.config import SearchConfig
from ranks.search.evaluation import uniform_evaluator
from ranks.search.games.connect_four import CONNECT_FOUR
from ranks.search.games.connect_four_solver import TABLE_BITS, solve
from ranks.search.search import Search


@dataclass
class Solved:
    """A position, as the moves that lead to it, and its best moves."""

    moves: list[int]
    best: set[int]


def has_four(stones: int) -> bool:
    """Whether a player's stones, 7 bits for each column, have four in a line."""
    pairs = [(stones & stones >> step, step) for step in (1, 6, 7, 8)]
    return any(pair & pair >> 2 * step for pair, step in pairs)


def random_game(rng: np.random.Generator, plies: int) -> list[int]:
    """Random moves, up to the end of the game. In plain Python: a board of `Search` takes ten times as long."""
    heights, stones, moves = [0] * 7, [0, 0], list[int]()
    while len(moves) < plies and not has_four(stones[1]):
        legal = [column for column in range(7) if heights[column] < 6]
        if not legal:
            break
        column = legal[int(rng.integers(len(legal)))]
        stones = [stones[1], stones[0] | 1 << 7 * column + heights[column]]
        heights[column] += 1
        moves.append(column)
    return moves


def positions(count: int, least_stones: int, seed: int) -> list[Solved]:
    """Positions of random games with least_stones to least_stones + 7 stones, in which moves differ in value."""
    rng = np.random.default_rng(seed)
    board = Search(CONNECT_FOUR, SearchConfig(simulations=1), 1)
    table = np.zeros(1 << TABLE_BITS, np.uint64)
    found: list[Solved] = []
    while len(found) < count:
        moves = random_game(rng, least_stones + int(rng.integers(8)))
        board.set_root(0, 0, moves)
        if not np.isnan(board.outcome()[0]):
            continue
        value_of: dict[int, int] = {}
        for move in board.legal_moves(0).tolist():
            board.set_root(0, 0, [*moves, move])
            ended = board.outcome()[0]
            mine, theirs = board.state(0)
            value_of[move] = -int(solve(mine, theirs, table) if np.isnan(ended) else ended)
        if len(set(value_of.values())) > 1:
            found.append(Solved(moves, {move for move, value in value_of.items() if value == max(value_of.values())}))
    return found


def share_of_best_moves(solved: list[Solved], config: SearchConfig) -> float:
    """How often a search with uniform priors and value 0 plays a best move: only the ends of games guide it."""
    search = Search(CONNECT_FOUR, config, len(solved), groups=1)
    for slot, position in enumerate(solved):
        search.set_root(slot, slot, position.moves)
    chosen_P = search.run(uniform_evaluator).chosen_P.tolist()
    return float(np.mean([move in position.best for move, position in zip(chosen_P, solved, strict=True)]))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--positions", type=int, default=2000)
    parser.add_argument("--stones", type=int, default=26)
    parser.add_argument("--simulations", type=int, default=8000)
    asked = parser.parse_args()
    solved = positions(asked.positions, asked.stones, seed=1)
    for root in ("puct", "gumbel"):
        config = SearchConfig(simulations=asked.simulations, root=root, gumbel_scale=0.0, reuse=False)
        print(f"{root}: {share_of_best_moves(solved, config):.4f} of {asked.positions} positions")
