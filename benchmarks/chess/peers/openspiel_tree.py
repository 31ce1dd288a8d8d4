"""Simulations of OpenSpiel's MCTS on chess: `python openspiel_tree.py SIMULATIONS --cores 0`.

PUCT with uniform priors and value 0, so that the tree and the rules are the whole cost. The Python
MCTSBot is the faster one here, because the C++ MCTSBot of the wheel (`--cpp`) has no evaluator but
a random game to its end for each simulation. It does less work than ours: a leaf gets its legal
moves and priors only when it is visited a second time.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping

from worker import Prepared, keep_to, serve, version

POSITIONS = (
    "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1",
    "r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1",
    "r1bqk2r/pp2bppp/2n1pn2/3p4/2PP4/2N2N2/PP2BPPP/R1BQK2R w KQkq - 0 8",
    "8/2p5/3p4/KP5r/1R3p1k/8/4P1P1/8 w - - 0 1",
)


def prepare(simulations: int, cpp: bool) -> Prepared:
    """A search from each of the positions."""
    import numpy as np
    import pyspiel
    from open_spiel.python.algorithms import mcts

    class Uniform(mcts.Evaluator):
        """Equal priors for all legal moves, value 0."""

        def evaluate(self, state: pyspiel.State) -> tuple[float, float]:
            return 0.0, 0.0

        def prior(self, state: pyspiel.State) -> list[tuple[int, float]]:
            actions = state.legal_actions()
            prior = 1.0 / len(actions)
            return [(action, prior) for action in actions]

    game = pyspiel.load_game("chess")
    states = [game.new_initial_state(fen) for fen in POSITIONS]
    if cpp:
        evaluator = pyspiel.RandomRolloutEvaluator(n_rollouts=1, seed=1)
        puct = pyspiel.ChildSelectionPolicy.PUCT
        search = pyspiel.MCTSBot(game, evaluator, 1.25, simulations, 1000, False, 1, False, puct).mcts_search
    else:
        search = mcts.MCTSBot(
            game,
            uct_c=1.25,
            max_simulations=simulations,
            evaluator=Uniform(),
            solve=False,
            random_state=np.random.RandomState(1),
            child_selection_fn=mcts.SearchNode.puct_value,
        ).mcts_search

    def work() -> Mapping[str, float]:
        for state in states:
            search(state)
        return {"done": simulations * len(states)}

    return work, {"version": version("open-spiel"), "simulations": simulations}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("simulations", type=int)
    parser.add_argument("--cores", default="0")
    parser.add_argument("--cpp", action="store_true")
    asked = parser.parse_args()
    keep_to(asked.cores)
    serve(lambda: prepare(asked.simulations, asked.cpp))


if __name__ == "__main__":
    main()
