"""Record the cycles of a finished run of chess-value: `python -m benchmarks.chess_value.training RUN --preset cpu`.

Writes benchmarks/results/chess_value_training_DATE.json: the command of the run, when and where it began, and the rows
of its cycles, so that the docs show how the shipped net came about. The settings of the run are compared with those of
the preset.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path

from benchmarks.measure import origin, write_result
from ranks.engine.config_file import overlay
from ranks.engine.files.jsonl import read_rows
from ranks.engine.runs.find_run import find_folder
from ranks.engine.runs.folder import METRICS_FILE, RunFolder
from ranks.errors import UserError
from ranks.workloads.chess_value.config import Config
from ranks.workloads.chess_value.presets import PRESETS

KEPT = ("iteration", "time_s", "train/loss", "val/loss", "rollout/games", "rollout/mean_length", "time/games_s")
GROUPS = ("match/", "cycle/")


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("run", help="a name in runs, or a folder")
    parser.add_argument("--preset", required=True, choices=PRESETS, help="with which it was trained")
    parser.add_argument("--remark", default="", help="a sentence for the docs")
    asked = parser.parse_args()
    try:
        folder = find_folder(asked.run, Path("runs"), f"the run {asked.run}")
        about, settings = RunFolder(folder).read_run(), RunFolder(folder).read_settings()["config"]
    except UserError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    expected, preset = overlay(Config(), settings, asked.run, "config"), PRESETS[asked.preset]()
    free = {name: getattr(expected, name) for name in ("iterations", "eval_games", "snapshot_every")}
    label = replace(preset.label, cache=expected.label.cache, engines=expected.label.engines)
    if replace(preset, label=label, **free) != expected:
        parser.error(f"{folder} has other settings than --preset {asked.preset}")
    rows = read_rows(folder / METRICS_FILE)
    cycles = [{name: row[name] for name in row if name in KEPT or name.startswith(GROUPS)} for row in rows]
    began = origin()
    content = {
        "origin": began,
        "run_command": f"ranks train chess-value --preset {asked.preset} --cycles {len(rows)} --name {folder.name}",
        "run_name": folder.name,
        "run": {name: about[name] for name in ("started", "versions", "hardware")},
        "learner": about["identity"]["learner"],
        "remark": asked.remark,
        "cycles": cycles,
    }
    print(write_result(f"chess_value_training_{began['date'][:10]}", content).name)
    return 0


if __name__ == "__main__":
    sys.exit(main())
