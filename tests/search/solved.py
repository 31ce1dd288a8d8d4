"""Connect Four positions of which every move's worth is known, and how often a search plays a best one.

python -m tests.search.solved --positions 2000 --stones 26 --simulations 8000
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass

import numpy as np

from ranks.search.config import SearchConfig
from ranks.search.evaluation import uniform
from ranks.search.games.connect_four import CONNECT_FOUR
from ranks.search.games.connect_four_solver import TABLE_BITS, solve
from ranks.search.search import Search


@dataclass
class Solved:
    moves: list[int]
    best: set[int]


def positions(count: int, least_stones: int, seed: int) -> list[Solved]:
    """Random games of least_stones to least_stones + 7 stones; kept where the moves differ in worth."""
    rng = np.random.default_rng(seed)
    board = Search(CONNECT_FOUR, SearchConfig(simulations=1), 1)
    table = np.zeros(1 << TABLE_BITS, np.uint64)
    found: list[Solved] = []
    while len(found) < count:
        moves: list[int] = []
        board.set_root(0, 0)
        for _ in range(least_stones + int(rng.integers(8))):
            legal = board.legal_moves(0)
            if len(legal):
                moves.append(int(rng.choice(legal)))
                board.play([moves[-1]])
        worth: dict[int, int] = {}
        for move in board.legal_moves(0).tolist():
            board.set_root(0, 0, [*moves, move])
            ended = board.outcome()[0]
            worth[move] = -int(solve(*board.state(0), table) if np.isnan(ended) else ended)
        if len(set(worth.values())) > 1:
            found.append(Solved(moves, {move for move, value in worth.items() if value == max(worth.values())}))
    return found


def share_of_best_moves(solved: list[Solved], config: SearchConfig) -> float:
    """How often a search with uniform priors and values of zero plays a best move: only the game's ends guide it."""
    search = Search(CONNECT_FOUR, config, len(solved), groups=1)
    for slot, position in enumerate(solved):
        search.set_root(slot, slot, position.moves)
    chosen_P = search.run(uniform).chosen_P.tolist()
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
