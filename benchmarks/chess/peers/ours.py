"""Our side of each comparison, in the environment of the project.

    python ours.py games|tree|net --cores 0,1 ...

games   random games
tree    searches with equal priors and value 0, from the positions of openspiel_tree.py
net     Gumbel searches with the tiny net in torch and the settings of mctx, a few random plies after
        the start; each answer also holds the time of each part

The time to set up the positions is not counted, as the peers set theirs up in advance.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
from openspiel_tree import POSITIONS
from tiny_net import OPENING_PLIES
from worker import Prepared, keep_to, serve

CAP_PLIES = 1000
GAMES = 256
"""Random games of each thread in one piece of work."""


def random_games(threads: int) -> Prepared:
    """Each thread plays games of its own."""
    from ranks.chess.core.rules import START, random_games

    rng = [np.array([seed], np.uint64) for seed in range(threads)]
    ends = [np.zeros(3, np.int64) for _ in range(threads)]
    pool = ThreadPoolExecutor(threads)

    def play(thread: int) -> int:
        return random_games(START, GAMES, CAP_PLIES, rng[thread], ends[thread])

    def work() -> Mapping[str, float]:
        return {"plies": sum(pool.map(play, range(threads))), "done": threads * GAMES}

    return work, {"version": ours()}


def tree_only(threads: int, games: int, simulations: int) -> Prepared:
    """PUCT without a net: a quarter of the games at each position; nothing is reused from one
    search to the next."""
    from ranks.chess.core.rules import CHESS
    from ranks.chess.fen import parse_fen
    from ranks.search.config import SearchConfig
    from ranks.search.evaluation import Evaluation, Leaves
    from ranks.search.search import Search

    num_moves_N1 = np.arange(CHESS.max_moves + 1, dtype=np.float32)[:, None]
    uniform_NM = np.repeat(1 / np.maximum(num_moves_N1, 1), CHESS.max_moves, axis=1)

    def evaluator(leaves: Leaves) -> Evaluation:
        return Evaluation(uniform_NM[leaves.num_moves_B], np.zeros(len(leaves.num_moves_B), np.float32))

    starts = [parse_fen(fen)[0] for fen in POSITIONS]
    search = Search(CHESS, SearchConfig(simulations, reuse=False), games, threads, groups=1)

    def work() -> Mapping[str, float]:
        started_s = time.perf_counter()
        for game in range(games):
            search.set_root(game, game, start=starts[game % len(starts)])
        aside_s = time.perf_counter() - started_s
        return {"aside_s": aside_s, "done": int(search.run(evaluator).simulations_P.sum())}

    return work, {"version": ours(), "games": games, "simulations": simulations}


def with_net(threads: int, games: int, simulations: int) -> Prepared:
    """Gumbel search as mctx sets it: 16 moves considered, c_scale 0.1, completed Q stretched to [0,
    1]."""
    os.environ["OMP_NUM_THREADS"] = "1"  # the net brings its own threads
    import torch
    from tiny_net_torch import TinyNet

    from ranks.chess.core.rules import CHESS
    from ranks.search.config import SearchConfig
    from ranks.search.scheduler import SearchTimes
    from ranks.search.search import Search

    net = TinyNet(threads)
    config = SearchConfig(simulations, root="gumbel", num_considered=16, c_scale=0.1, rescale_values=True, reuse=False)
    search = Search(CHESS, config, games, threads, groups=1)
    rng = np.random.default_rng(1)
    openings: list[list[int]] = [[] for _ in range(games)]
    for moves in openings:
        for _ in range(OPENING_PLIES):
            search.set_root(0, 0, moves)
            moves.append(int(rng.choice(search.legal_moves(0))))

    def work() -> Mapping[str, float]:
        started_s = time.perf_counter()
        for game, moves in enumerate(openings):
            search.set_root(game, game, moves)
        aside_s = time.perf_counter() - started_s
        search.times, net.net_s, net.encoding_s = SearchTimes(), 0.0, 0.0
        made = int(search.run(net).simulations_P.sum())
        times = search.times
        return {
            "aside_s": aside_s,
            "done": made,
            "search_s": times.wall_s,
            "evaluation_s": times.evaluation_s,
            "net_thread_s": net.net_s,
            "encoding_thread_s": net.encoding_s,
            "tree_thread_s": times.tree_s,
            "leaves": times.num_leaves,
            "rows": times.num_rows,
        }

    return work, {"version": f"{ours()}, torch {torch.__version__}", "games": games, "simulations": simulations}


def ours() -> str:
    """'ranks 0.1.0, numba 0.68.1'."""
    import numba

    import ranks

    return f"ranks {ranks.__version__}, numba {numba.__version__}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=["games", "tree", "net"])
    parser.add_argument("--cores", default="0,1")
    parser.add_argument("--games", type=int, default=256)
    parser.add_argument("--simulations", type=int, default=100)
    asked = parser.parse_args()
    keep_to(asked.cores)
    threads = asked.cores.count(",") + 1
    if asked.part == "games":
        serve(partial(random_games, threads))
    else:
        search = tree_only if asked.part == "tree" else with_net
        serve(partial(search, threads, asked.games, asked.simulations))


if __name__ == "__main__":
    main()
