"""What the loop of self-play costs over `Search` + net alone: one process, one thread, turns of both.

    python loop_overhead.py --net tiny --slots 256 --simulations 32 --rounds 5 --cores 0 --folder FOLDER

A: `SelfPlay.play` and `ReplayWindow.add` in a run. B: `Search.run` with the same net and encoding, from the positions
of A's unfinished games; it chooses, records and plays no moves. Both count seconds for each evaluation of the net.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

from nets import MAX_PLIES
from pace import keep_to


def measure(asked: argparse.Namespace) -> dict[str, Any]:
    """Seconds for an evaluation, round by round."""
    import numpy as np
    import torch
    from our_nets import games_in_all_stages, joined, net_and_encoding

    from ranks.chess.core.rules import CHESS
    from ranks.engine.runs.run import Run
    from ranks.search.evaluation import Evaluation, Leaves
    from ranks.search.search import Search
    from ranks.selfplay import ReplayConfig, ReplayWindow, SelfPlay, SelfPlayConfig
    from ranks.selfplay.net.batch_evaluator import BatchEvaluator, BatchMemory
    from ranks.selfplay.search_settings import search_config
    from ranks.selfplay.times import PlayTimes

    world = joined(asked.folder, "overhead")
    net, encoding = net_and_encoding(asked.net, world.seed)
    cfg = SelfPlayConfig(simulations=asked.simulations, reuse_tree=False, max_plies=MAX_PLIES)
    selfplay = SelfPlay(CHESS, encoding, asked.slots, asked.games, cfg, world)
    selfplay.load_state_dict(games_in_all_stages(asked.slots, world))
    window = ReplayWindow(CHESS, ReplayConfig(positions=100_000), world)
    search = Search(CHESS, search_config(cfg, world.seed), asked.slots, groups=1)
    memory, times = BatchMemory(CHESS, asked.slots, world.device), PlayTimes()
    evaluator = BatchEvaluator(encoding, world.device, times)

    def evaluate(leaves: Leaves) -> Evaluation:
        for into, array in zip(memory.leaves, leaves, strict=True):
            into[: len(array)] = array
        evaluator.launch(net, memory)
        return memory.evaluation

    def search_alone() -> tuple[float, float]:
        """Seconds and evaluations of one search of every slot."""
        slots, seconds, before = selfplay._slots, 0.0, times.evaluations
        for _ in range(asked.searches):
            for slot, moves in enumerate(slots.moves_of_unfinished()):
                search.set_root(slot, slot, moves)
            start = time.perf_counter()
            search.run(evaluate)
            seconds += time.perf_counter() - start
        return seconds, times.evaluations - before

    rows: list[dict[str, float]] = []
    shares: list[dict[str, float]] = []
    with Run.open(ReplayConfig(), world, keep=dict(selfplay=selfplay, window=window)) as run, torch.inference_mode():
        ended = time.perf_counter()
        for iteration in run.iterations(asked.rounds + 1, long=True):
            games = selfplay.play(net, iteration)
            window.add(games)
            run.log(games.results(), prefix="rollout")
            loop_s = time.perf_counter() - ended  # opening the iteration included
            found = selfplay._slots.times
            seconds, evaluations = search_alone()
            if iteration:
                rows.append(
                    {
                        "loop_s_an_evaluation": loop_s / found.evaluations,
                        "search_s_an_evaluation": seconds / evaluations,
                        "games": len(games),
                    }
                )
                shares.append({name: getattr(found, f"{name}_s") / loop_s for name in SHARES})
            ended = time.perf_counter()
    overhead = [row["loop_s_an_evaluation"] / row["search_s_an_evaluation"] - 1 for row in rows]
    return {
        "overhead": overhead,
        "rounds": rows,
        "shares_of_the_loop": {name: round(float(np.median([s[name] for s in shares])), 4) for name in SHARES},
    }


SHARES = ("net", "planes", "trees", "records", "waiting_device", "waiting_ranks", "gather")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--net", default="tiny")
    parser.add_argument("--slots", type=int, default=256)
    parser.add_argument("--simulations", type=int, default=32)
    parser.add_argument("--games", type=int, default=16, help="games that end in an iteration")
    parser.add_argument("--searches", type=int, default=4, help="searches of every slot in a turn of Search alone")
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--cores", default="0")
    parser.add_argument("--folder", type=Path, required=True)
    asked = parser.parse_args()
    keep_to(asked.cores)
    print(json.dumps(measure(asked)), flush=True)


if __name__ == "__main__":
    main()
