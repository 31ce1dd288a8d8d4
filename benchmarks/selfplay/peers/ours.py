"""Our side: one rank of one thread, in the environment of the project. The parent starts one for each core.

    python ours.py --net tiny --search puct --simulations 32 --slots 256 --cores 0 --folder FOLDER

A real run: each iteration plays games, adds them to a replay window (a file), and begins the next. Trees are not
reused from one move to the next, since no peer does so; full searches for every move, no resignation, no openings.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from nets import MAX_PLIES
from pace import Pace, keep_to


def play(asked: argparse.Namespace, pace: Pace) -> None:
    """Play for ever, iteration by iteration."""
    import numba
    import torch
    from our_nets import games_in_all_stages, joined, net_and_encoding

    import ranks
    from ranks.chess.core.rules import CHESS
    from ranks.engine.runs.run import Run
    from ranks.selfplay import ReplayConfig, ReplayWindow, SelfPlay, SelfPlayConfig

    world = joined(asked.folder, "run")
    net, encoding = net_and_encoding(asked.net, world.seed)
    # The search of mctx's gumbel_muzero_policy, or AlphaZero's.
    how = dict(c_scale=0.1, rescale_values=True) if asked.search == "gumbel" else {}
    cfg = SelfPlayConfig(
        search=asked.search, simulations=asked.simulations, reuse_tree=False, max_plies=MAX_PLIES, **how
    )
    state = games_in_all_stages(asked.slots, world)
    selfplay = SelfPlay(CHESS, encoding, asked.slots, asked.games, cfg, world)
    selfplay.load_state_dict(state)
    window = ReplayWindow(CHESS, ReplayConfig(positions=100_000), world)
    with Run.open(ReplayConfig(), world, keep=dict(selfplay=selfplay, window=window)) as run:
        for iteration in run.iterations(1_000_000, long=True):
            games = selfplay.play(net, iteration)
            window.add(games)
            speed = selfplay.statistics()
            times = selfplay._slots.times  # of this rank: the parent adds up ranks
            first = world.rank == 0
            pace.count(
                plies=times.plies,
                evaluations=times.evaluations,
                simulations=times.simulations,
                games=len(games) * first,
                game_plies=float(games.plies_N.sum()) * first,
                iterations=first,
                waiting_s=times.waiting_device_s + times.waiting_ranks_s,
                gather_s=times.gather_s,
                trees_s=times.trees_s,
                records_s=times.records_s,
                planes_s=times.planes_s,
                net_s=times.net_s,
            )
            run.log(games.results(), prefix="rollout")
            run.log(speed, prefix="selfplay")
            if iteration == 0:
                versions = f"ranks {ranks.__version__}, torch {torch.__version__}, numba {numba.__version__}"
                pace.ready(version=versions, slots=asked.slots, ranks=world.size)
            elif world.any(pace.is_over()):
                pace.answer()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--net", required=True)
    parser.add_argument("--search", default="puct", choices=["puct", "gumbel", "none"])
    parser.add_argument("--simulations", type=int, default=32)
    parser.add_argument("--slots", type=int, default=256)
    parser.add_argument("--games", type=int, default=16, help="games that end in an iteration")
    parser.add_argument("--cores", default="0")
    parser.add_argument("--folder", type=Path, required=True)
    asked = parser.parse_args()
    keep_to(asked.cores)
    play(asked, Pace())


if __name__ == "__main__":
    main()
