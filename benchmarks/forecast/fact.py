"""Forecasts of whole runs on one and two ranks, and the runs that follow them: the table of the README.

    python -m benchmarks.forecast.fact [--workloads graph-coloring,stock-trading] [--repeats 2] [--result FILE]
    python -m benchmarks.forecast.fact --workloads ./my_task.py --train="--batch 64" --iterations 100

About five minutes for a workload, on quiet cores. It runs what a user runs, in an empty folder of runs: `ranks forecast
WORKLOAD --ranks 1,2`, then `ranks train WORKLOAD` for each number of ranks, all of that --repeats times, then `ranks
forecast --ledger`, which compares each run with the forecast before it. Nothing is measured at two ranks before their
forecast but the link. A start continues with the workloads that are missing in the result. Each run keeps the load of
the machine before it: other programs make facts longer, so a table of a busy machine says nothing. `python
benchmarks/figures.py` writes the table.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.measure import RESULTS, environment, origin

LIMIT_S = 3600.0
SETTINGS: dict[str, tuple[str, int]] = {
    "graph-coloring": ("--preset demo", 100),
    "stock-trading": ("--preset demo", 40),
    "video-behavior": ("--preset demo --eval-every 40", 80),
    "chess-spiking": (
        "--preset demo --games-per-iteration 30 --slots 32 --replay.first-positions 0 --eval-games 8 --eval-every 4",
        4,
    ),
    "chess-value": ("--preset demo", 3),
}
"""Flags of `ranks train` and iterations: runs of a minute or two on one core."""


def ranks(*argv: str) -> str:
    """What a command of `ranks` prints. Raises RuntimeError where it fails."""
    command = [sys.executable, "-m", "ranks", *argv]
    done = subprocess.run(command, env=environment(), capture_output=True, text=True, timeout=LIMIT_S)
    if done.returncode:
        raise RuntimeError(f"{shlex.join(command)}: exit code {done.returncode}\n{done.stderr[-2000:]}")
    return done.stdout


def measure(
    workload: str, train: Sequence[str], counts: Sequence[int], iterations: int, repeats: int
) -> dict[str, Any]:
    """So many forecasts, and the runs after each of them."""
    with tempfile.TemporaryDirectory(prefix="ranks-forecast-") as folder:
        same = [f"--iterations={iterations}", f"--runs-dir={folder}"]
        about = [f"--ranks={','.join(map(str, counts))}", f"--train={shlex.join(train)}"]
        loads: dict[str, float] = {}
        forecasts: list[Any] = []
        for repeat in range(repeats):
            forecasts += json.loads(ranks("forecast", workload, *about, *same, "--json"))["forecasts"]
            print(f"forecast of {workload}: done", flush=True)
            for num_ranks in counts:
                name = f"{num_ranks}-ranks-{repeat}"
                loads[name] = os.getloadavg()[0]
                ranks("train", workload, *train, *same, "--gpus=none", f"--ranks={num_ranks}", f"--name={name}")
                print(f"{name}: done", flush=True)
        compared = json.loads(ranks("forecast", "--ledger", f"--runs-dir={folder}", "--json"))
    if len(compared) < len(counts) * repeats:
        raise RuntimeError(f"only {len(compared)} runs of {workload} have a forecast")
    return {
        "train": shlex.join(train),
        "iterations": iterations,
        "forecasts": forecasts,
        "runs": [row | {"load": loads[row["run"]]} for row in compared],
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workloads", default=",".join(SETTINGS), help="names, or the path of a file")
    parser.add_argument("--train", help="flags of ranks train, where they are not those of this file")
    parser.add_argument("--iterations", type=int)
    parser.add_argument("--ranks", default="1,2")
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--result", type=Path, default=RESULTS / f"forecast_fact_{time.strftime('%Y-%m-%d')}.json")
    asked = parser.parse_args()
    counts = [int(count) for count in asked.ranks.split(",")]
    begun = origin()
    content: dict[str, Any] = {"origin": begun, "workloads": {}}
    if asked.result.exists():
        content = json.loads(asked.result.read_text(encoding="utf-8"))
    for workload in asked.workloads.split(","):
        if workload in content["workloads"]:
            continue
        flags, iterations = SETTINGS.get(workload, ("", 100))
        train = ["--threads=1", *shlex.split(asked.train if asked.train is not None else flags)]
        found = measure(workload, train, counts, asked.iterations or iterations, asked.repeats)
        content["workloads"][workload] = found | {"date": begun["date"], "commit": begun["commit"]}
        asked.result.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    from benchmarks.pages.hardware import forecast_table

    print("\n".join(forecast_table(content)), f"\n{asked.result}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
