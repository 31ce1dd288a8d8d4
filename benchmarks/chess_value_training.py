"""Record the cycles of a finished run of chess-value: `python benchmarks/chess_value_training.py RUN`.

Writes benchmarks/results/chess_value_training_DATE.json: the command of the run, the rows of its cycles, and where its
weights went, so that the docs show how the shipped net came about.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from measure import origin, write_result

from ranks.engine.files.jsonl import read_rows
from ranks.engine.runs.find_run import find_folder
from ranks.engine.runs.folder import METRICS_FILE

KEPT = ("iteration", "time_s", "train/loss", "val/loss", "rollout/games", "rollout/mean_length", "time/games_s")
GROUPS = ("match/", "cycle/")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("run", help="a name in runs, or a folder")
    parser.add_argument("--run-command", required=True, help="the command that trained it")
    parser.add_argument("--remark", default="", help="a sentence for the docs")
    asked = parser.parse_args()
    rows = read_rows(find_folder(asked.run, Path("runs"), f"the run {asked.run}") / METRICS_FILE)
    cycles = [{name: row[name] for name in row if name in KEPT or name.startswith(GROUPS)} for row in rows]
    began = origin()
    content = {"origin": began, "run_command": asked.run_command, "remark": asked.remark, "cycles": cycles}
    print(write_result(f"chess_value_training_{began['date'][:10]}", content).name)


if __name__ == "__main__":
    main()
