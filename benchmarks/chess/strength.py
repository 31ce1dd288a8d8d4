"""The Elo of the engine by its nodes for a move, which UCI_LimitStrength uses.

    python -m benchmarks.chess.strength [--players engine chess-value] [--games 200]       20 minutes, 2 cores

For each number of nodes the engine plays pairs of games with the four players of the committed ladder that are nearest
to its rating so far (Stockfish 15.1 is one of them above 1384). Nodes are fixed, so other work on the machine changes
the time only. Writes `strength.json` into the folder of each player's weights: src/ranks/chess/engine for the tables,
src/ranks/workloads/chess_value/weights for the shipped net. Repeat it when weights or search have changed: a test
compares the weights.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from benchmarks.measure import origin
from ranks.chess.commands.players import ENGINE
from ranks.chess.engine.evaluator import Evaluator
from ranks.chess.engine.nnue.inference import net_arrays
from ranks.chess.engine.tables import default_values
from ranks.chess.match.net_rating import RATED_WITH
from ranks.chess.players.strength import FILE, Strength
from ranks.workloads.chess_value.players.saved_net import SHIPPED, from_files
from ranks.workloads.chess_value.strength_table import rated

NODES = (10, 30, 100, 300, 1000, 3000, 10_000)
FIRST_RATING, RISE = 400.0, 200.0
"""Guesses: of the fewest nodes, and what the next number of nodes adds."""


def evaluator_of(player: str) -> tuple[Evaluator, str, Path]:
    """What a player evaluates with, the sha256 of that, as config.json has it for a net, and the folder of its file."""
    if player == "engine":
        tables = Evaluator.of_tables(default_values())
        return tables, tables.sha256, ENGINE
    shipped = from_files(SHIPPED, player)
    return Evaluator.of_net(net_arrays(shipped.weights)), shipped.sha256, SHIPPED


def measure(player: str, games: int) -> Path:
    """Write the file of one player."""
    evaluator, sha256, folder = evaluator_of(player)
    points: list[dict[str, Any]] = []
    guess = FIRST_RATING
    for nodes in NODES:
        found = rated(evaluator, games // 2, nodes, guess)
        if found["value"] is None:
            raise RuntimeError(f"{player} with {nodes} nodes won or lost all {games} games around {guess:.0f}")
        points.append({"nodes": nodes, "elo": found["value"], **{key: found[key] for key in ("low", "high", "games")}})
        print(f"{player}, {nodes} nodes: {found['value']:.0f} ({found['low']:.0f} to {found['high']:.0f})", flush=True)
        guess = found["value"] + RISE
    Strength(tuple(each["nodes"] for each in points), tuple(each["elo"] for each in points))  # rising, or an error
    about = {"weights_sha256": sha256, "scale": f"the committed ladder, with {RATED_WITH}"}
    path = folder / FILE
    path.write_text(json.dumps({**about, "points": points, "origin": origin()}, indent=1) + "\n", encoding="utf-8")
    return path


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--players", nargs="+", choices=["engine", "chess-value"], default=["engine", "chess-value"])
    parser.add_argument("--games", type=int, default=200, help="for each number of nodes")
    asked = parser.parse_args()
    for player in asked.players:
        print(f"written: {measure(player, asked.games)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
