"""How strong nets of chess-spiking are: paired games against the fixed players of the ladder.

    python -m benchmarks.chess_spiking.strength RUN [RUN ...] [--games 800] [--simulations 64] [--only-runs]

RUN is `name`, `name/best`, `name/ITERATION` or the path of a run folder, as in the player `run:RUN`: without a word
behind it the best checkpoint; or `chess-spiking`, the net that the package ships. Two more play: `untrained` (the net
of the first RUN with random weights, in its search) and `material` (uniform priors, the value of exact material, in
AlphaZero's search, which suits it better). With --only-runs these two do not play again. With --simulations 0 a net
plays its likeliest move without search, and `material` does not play.

A quarter of the games is with each of random, greedy, minimax:2 and alphabeta:1. A pair of games begins with the same
opening and is played with both colours. The search of a net is that of a player: of its training, without noise, and
with more considered moves where the simulations are enough. A game of 1,000 plies is a draw, as on the ladder. Nothing
is resigned and no result is given by material.

Writes benchmarks/results/chess_spiking_strength_DATE.json, with --only-runs chess_spiking_strength-RUN_DATE.json, named
after the first RUN, and -policy behind it without search: each score (won 1, drawn 1/2) with its 95 % interval over
pairs, draws by repetition counted apart, and how long each run had trained when it had these weights; what it did not
train itself (--init-from) is named and not counted. The file grows player by player.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from benchmarks.measure import origin, write_result
from ranks.engine.files.jsonl import read_rows
from ranks.engine.runs.checkpoints.pick import run_and_checkpoint
from ranks.engine.runs.find_run import find_folder
from ranks.engine.runs.folder import METRICS_FILE, SESSIONS_FILE, RunFolder
from ranks.errors import UserError
from ranks.selfplay.snapshots import weights_of_run
from ranks.workloads.chess_spiking.strength_table import MATERIAL, PACKAGE, UNTRAINED, measure, saved_net


def training_of(run: str) -> dict[str, Any] | None:
    """How long the run had trained when it had the weights that play; None for the shipped net."""
    if run == PACKAGE:
        return None
    name, which = run_and_checkpoint(run, f"the run {run}")
    folder = find_folder(name, Path("runs"), f"the run {run}")
    _, iteration = weights_of_run(folder, which, f"the run {run}")
    found = training_until(iteration, read_rows(folder / METRICS_FILE), read_rows(folder / SESSIONS_FILE))
    began_with = RunFolder(folder).read_run()["identity"].get("init_from")
    return found | ({"began_with": began_with} if began_with else {})


def training_until(
    iteration: int, metrics: Sequence[Mapping[str, Any]], sessions: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """The training up to an iteration, from the rows of a run's files. `ranks` are those of the whole run."""
    rows = [row for row in metrics if row["iteration"] <= iteration]
    ranks = [str(row["ranks"]) for row in sessions if "ranks" in row]
    return {
        "iterations": len(rows),
        "games": sum(row["rollout/games"] for row in rows),
        "hours": round(rows[-1]["time_s"] / 3600, 3) if rows else 0.0,
        "ranks": ", then ".join(number for number, _ in groupby(ranks)),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("runs", nargs="+", metavar="RUN")
    parser.add_argument("--games", type=int, default=800, help="of each player, with four opponents together")
    parser.add_argument("--simulations", type=int, default=64)
    parser.add_argument("--only-runs", action="store_true", help="without `untrained` and `material`")
    parser.add_argument("--no-result", action="store_true", help="write no file")
    asked = parser.parse_args()
    if asked.games < 8 or asked.games % 8 or asked.simulations < 0:
        parser.error("--games is a multiple of 8, for pairs with four opponents, and --simulations 0 or more")
    began = origin()
    try:
        trained = {run: {"weights": saved_net(run).source, "training": training_of(run)} for run in asked.runs}
    except UserError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    result: dict[str, Any] = {"origin": began, "games": asked.games, "simulations": asked.simulations, "rows": []}
    others = [UNTRAINED, MATERIAL] if asked.simulations else [UNTRAINED]
    players = asked.runs if asked.only_runs else [*asked.runs, *others]
    which = f"-{asked.runs[0].replace('/', '-')}" if asked.only_runs else ""
    which += "" if asked.simulations else "-policy"
    for found in measure(players, asked.runs[0], asked.games, asked.simulations):
        for row in found:
            row |= trained.get(row["player"], {})
            print(f"{row['player']:20} {row['against']:12} {row['score']:.1%} ({row['low']:.1%} to {row['high']:.1%})")
        result["rows"] += found
        if not asked.no_result:
            write_result(f"chess_spiking_strength{which}_{began['date'][:10]}", result)
    return 0


if __name__ == "__main__":
    sys.exit(main())
