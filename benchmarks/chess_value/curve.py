"""The rating of a run of chess-value over its hours: every net that the run has kept plays on the ladder.

    python -m benchmarks.chess_value.curve RUN --made-by COMMAND    a minute and a half a net on two cores

The rated games inside training are few. Here each net of the run, of a checkpoint or a snapshot, plays GAMES games with
2,000 nodes a move, all against the same four fixed players of the committed ladder: those nearest to 1800. Two have
1164 and 1384 and two 2127 and 2487, with none between, so a rating relies on the logistic model. Hours are those of the
run, with games, labels, updates and its own matches. COMMAND is the one that trained it, for the docs.

Writes benchmarks/results/chess_value_curve-RUN_DATE.json, and draws docs/images/chess_value_rating.svg of the newest
such file of each run.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from itertools import cycle
from pathlib import Path
from typing import Any

from matplotlib import rcParams
from matplotlib.figure import Figure

from benchmarks.measure import RESULTS, ROOT, origin, write_result
from benchmarks.pages.chess_value import curves
from ranks.chess.engine.evaluator import Evaluator
from ranks.chess.engine.nnue.inference import net_arrays
from ranks.engine.files.jsonl import read_rows
from ranks.engine.runs.find_run import find_folder
from ranks.engine.runs.folder import METRICS_FILE
from ranks.errors import UserError
from ranks.selfplay.snapshots import saved_iterations
from ranks.workloads.chess_value.net.quantise import quantise
from ranks.workloads.chess_value.players.saved_net import from_run, nnue_of
from ranks.workloads.chess_value.strength_table import rated

PICTURE = ROOT / "docs" / "images" / "chess_value_rating.svg"
INKS = ("#2f6f8f", "#c2703d", "#5b8c5a", "#8a6fa8")


def rate_run(folder: Path, games: int) -> list[dict[str, Any]]:
    """A row for each trained net of a run: its cycle, the hours until then, its rating with the 95 % interval."""
    hours = {row["iteration"]: row["time_s"] / 3600 for row in read_rows(folder / METRICS_FILE)}
    rows: list[dict[str, Any]] = []
    for iteration in filter(None, saved_iterations(folder, f"the nets of {folder}")):
        asked = f"the net of {folder.name}/{iteration}"
        net = nnue_of(from_run(f"{folder}/{iteration}", asked).model, asked)
        found = rated(Evaluator.of_net(net_arrays(quantise(net))), games // 2)
        rows.append({"cycle": iteration, "hours": round(hours[iteration], 3), **found})
        print(rows[-1], flush=True)
    return rows


def draw(nets_of: Mapping[str, Sequence[dict[str, Any]]], path: Path) -> None:
    """Rating with its interval over hours, a line for each run."""
    rcParams["svg.hashsalt"] = "ranks"
    figure = Figure(figsize=(7, 3.4), layout="constrained")
    axes = figure.subplots()
    style: dict[str, Any] = {"marker": "o", "markersize": 4, "linewidth": 1.3, "capsize": 3}
    for (run, nets), ink in zip(nets_of.items(), cycle(INKS), strict=False):
        rows = [row for row in nets if row["value"] is not None]
        hours, values = [row["hours"] for row in rows], [row["value"] for row in rows]
        reach = [[row["value"] - row["low"] for row in rows], [row["high"] - row["value"] for row in rows]]
        axes.errorbar(hours, values, yerr=reach, color=ink, label=run, **style)
    axes.legend(frameon=False)
    axes.set_xlim(left=0)
    axes.set_xlabel("hours on two CPU cores, everything included")
    nodes = {row["nodes"] for nets in nets_of.values() for row in nets}
    axes.set_ylabel(f"Elo on the ladder, {' or '.join(f'{n:,}' for n in sorted(nodes))} nodes a move")
    axes.grid(alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, metadata={"Date": None})


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", help="a name in runs, or a folder")
    parser.add_argument("--made-by", required=True, help="the command that trained the run")
    parser.add_argument("--games", type=int, default=400, help="of each net")
    asked = parser.parse_args()
    if asked.games < 8:
        parser.error("--games is 8 or more: a pair against each of four players")
    try:
        folder = find_folder(asked.run, Path("runs"), f"the run {asked.run}")
        began = origin()
        rows = rate_run(folder, asked.games)
        if not rows:
            raise UserError(f"the nets of {folder}", "it has no trained one", "give a run with a finished cycle")
    except UserError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    content = {"origin": began, "run": folder.name, "run_command": asked.made_by, "nets": rows}
    print(write_result(f"chess_value_curve-{folder.name}_{began['date'][:10]}", content))
    draw({run: found["nets"] for run, found in curves(RESULTS).items()}, PICTURE)
    return 0


if __name__ == "__main__":
    sys.exit(main())
