"""How often the neurons of chess-spiking fire, and the work of an evaluation next to that of the same net with ReLUs.

    python -m benchmarks.chess_spiking.spikes [NET ...]            seconds

NET is `chess-spiking` (the net that the package ships), `untrained` (the same net with random weights; these two are
the default), or a run, as in the player `run:RUN`. The positions are of games of the engine with itself, from opening
to endgame: the same ones for all nets.

Writes benchmarks/results/chess_spiking_spikes_DATE.json. What is counted: `ranks.workloads.chess_spiking.net.measures`.
"""

from __future__ import annotations

import argparse
import sys
from typing import Any

import numpy as np
import torch

from benchmarks.measure import THREADS, origin, write_result
from ranks.chess.core.moves import MAX_MOVES
from ranks.chess.engine.evaluator import Evaluator
from ranks.chess.engine.player import EnginePlayer, EngineSettings
from ranks.chess.engine.tables import default_values
from ranks.chess.match.openings import seeded_openings
from ranks.chess.players.player import Limits
from ranks.errors import UserError
from ranks.search.evaluation import Leaves
from ranks.selfplay import Positions
from ranks.workloads.chess_spiking.building import build_net
from ranks.workloads.chess_spiking.encoding import encoding_of
from ranks.workloads.chess_spiking.net.measures import measure
from ranks.workloads.chess_spiking.strength_table import PACKAGE, UNTRAINED, saved_net

POSITIONS, NODES, EVERY, MOST_PLIES = 1024, 100, 5, 200
"""Positions, nodes of a move, plies between two positions of a game, and where a game is cut."""
OPENING_SEED = 3


def positions() -> Positions:
    """Of games with NODES a move; a position knows whether it has occurred before."""
    player = EnginePlayer("tables", Evaluator.of_tables(default_values()), EngineSettings(nodes=NODES, threads=1))
    words, moves, counts = list[Any](), np.zeros((POSITIONS, MAX_MOVES), np.uint16), np.zeros(POSITIONS, np.int32)
    for opening in seeded_openings(OPENING_SEED):
        board = opening.board()
        while board.outcome() is None and board.ply < MOST_PLIES:
            if board.ply % EVERY == 0:
                legal = board.legal_moves()
                moves[len(words), : len(legal)], counts[len(words)] = legal, len(legal)
                words.append(board.words.copy())
                if len(words) == POSITIONS:
                    return Positions.of(Leaves(np.stack(words), moves, counts), torch.device("cpu"))
            board.push(player.choose(board, Limits()).move)
    raise AssertionError("openings do not end")


def counts_of(name: str, played: Positions) -> dict[str, Any]:
    """The measures of one net."""
    saved = saved_net(PACKAGE if name == UNTRAINED else name)
    torch.manual_seed(0)
    net = build_net(saved.net).eval() if name == UNTRAINED else saved.model
    planes = encoding_of(saved.net, saved.seed).planes(played)
    found = {key: float(value) for key, value in measure(net, planes).items()}
    about = {"net": name, "weights": saved.source if name != UNTRAINED else "random", "neuron": saved.net.neuron}
    return {**about, "steps": saved.net.steps, **found}


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("nets", nargs="*", metavar="NET", default=[PACKAGE, UNTRAINED])
    asked = parser.parse_args()
    torch.set_num_threads(THREADS)
    began, played = origin(), positions()
    try:
        rows = [counts_of(name, played) for name in asked.nets]
    except UserError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    for row in rows:
        print("\n".join(f"{row['net']:15} {key:40} {value}" for key, value in row.items()))
    about = {"positions": POSITIONS, "of": f"games of engine:tables with {NODES} nodes a move, every {EVERY}th ply"}
    print(write_result(f"chess_spiking_spikes_{began['date'][:10]}", {"origin": began, **about, "rows": rows}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
