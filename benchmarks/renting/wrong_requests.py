"""Wrong requests of `ranks submit`: each must end with exit code 2, write no file, and say what comes nearest.

    python -m benchmarks.renting.wrong_requests --python ENV/bin/python    writes benchmarks/results/wrong_requests.json

It takes two minutes. ENV is an environment with SkyPilot 0.14 (pip install skypilot), which says what a cloud cannot
do. The catalogue is a small one with SkyPilot's columns, and `sinfo` a script that lists a cluster.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.measure import environment, origin, write_result
from tests.renting.catalog import write_catalog

SINFO = "main|4|gpu:b200:8|2-00:00:00|192\nmain|2|gpu:h100:4(S:0-1)|2-00:00:00|96\n"
IMAGE = ("--image", "me/ranks:1")
SKY = ("sky", "graph-coloring", *IMAGE, "--no-forecast", "--gpus")
MODAL = ("modal", "graph-coloring", *IMAGE, "--no-forecast", "--price", "25", "--gpus")
SLURM = ("slurm", "graph-coloring", "--gpus")
REQUESTS: dict[str, tuple[tuple[str, ...], str]] = {
    "sky, an unknown GPU that SkyPilot takes": ((*SKY, "B2000X:8"), "did you mean B200?"),
    "sky, half a name": ((*SKY, "H10:8"), "did you mean H100?"),
    "sky, no number": ((*SKY, "B200"), "write --gpus B200:8"),
    "sky, too many": ((*SKY, "B200:64"), "give 1 to 16 GPUs for one node"),
    "sky, a number that nobody has": ((*SKY, "B200:3"), "machines with 1, 8 x B200, not 3"),
    "sky, a GPU that nobody has": ((*SKY, "MI300X:8"), "offered: B200, H200-SXM, L4"),
    "sky, a GPU that this cloud has not": ((*SKY, "L4:1", "--cloud", "lambda"), "offered: B200"),
    "sky, an unknown cloud": ((*SKY, "B200:8", "--cloud", "runpd"), "did you mean runpod?"),
    "sky, nodes where there are none": (
        (*SKY, "B200:8", "--cloud", "runpod", "--nodes", "2", "--volume", "v"),
        "give --nodes 1",
    ),
    "sky, no image": (("sky", "graph-coloring", "--no-forecast", "--gpus", "B200:8"), "no value for --image"),
    "sky, no name of an image": ((*SKY, "B200:8", "--image", "My Image"), "write it as REGISTRY/NAME:TAG"),
    "sky, no price": ((*SKY, "H200:8"), "give --price"),
    "sky, no spot price": ((*SKY, "B200:8", "--spot", "--volume", "v"), "leave --spot out"),
    "sky, a cap that leaves no time": ((*SKY, "B200:8", "--max-cost", "5"), "give a higher cap"),
    "sky, a workload": (("sky", "graph-colour", *SKY[2:], "B200:8"), "did you mean graph-coloring?"),
    "modal, an unknown GPU that Modal's package takes": ((*MODAL, "B2000:4"), "did you mean B200?"),
    "modal, a GPU of two sizes": ((*MODAL, "A100:2"), "A100-40GB:2 or A100-80GB:2"),
    "modal, too many": ((*MODAL, "A10:8"), "give 1 to 4"),
    "modal, no price": (
        ("modal", "graph-coloring", *IMAGE, "--no-forecast", "--gpus", "B200:4"),
        "no value for --price",
    ),
    "modal, no image": (("modal", "graph-coloring", "--price", "25", "--gpus", "B200:4"), "no value for --image"),
    "modal, too long": ((*MODAL, "B200:4", "--hours", "48"), "give --hours 24, and more --starts"),
    "slurm, an unknown GPU": ((*SLURM, "B2000:8"), "did you mean B200?"),
    "slurm, a GPU that the cluster lacks": ((*SLURM, "L40S:1"), "sinfo lists b200, h100"),
    "slurm, more GPUs than a node has": ((*SLURM, "H100:8"), "give --gpus h100:4"),
    "slurm, more nodes than there are": ((*SLURM, "B200:8", "--nodes", "5"), "give at most --nodes 4"),
    "slurm, an unknown partition": ((*SLURM, "B200:8", "--partition", "mian"), "did you mean main?"),
    "slurm, longer than the partition allows": ((*SLURM, "B200:8", "--hours", "72"), "give --hours 48"),
    "slurm, a price of nothing": ((*SLURM, "B200:8", "--price", "0"), "give --price 2.49"),
    "slurm, a flag of train": ((*SLURM, "B200:8", "--train=--iteratoins 5"), "did you mean --iterations?"),
}
"""Name -> the words after `ranks submit`, and what the message must say."""


def asked(words: tuple[str, ...], nearest: str, folder: Path, env: dict[str, str]) -> dict[str, Any]:
    """Give one request in an empty folder; what came of it."""
    work = Path(tempfile.mkdtemp(dir=folder))
    argv = [sys.executable, "-m", "ranks", "submit", *words]
    done = subprocess.run(argv, cwd=work, env=env, capture_output=True, text=True)
    written = sorted(path.name for path in work.rglob("*"))
    return {
        "command": ["ranks", "submit", *words],
        "exit_code": done.returncode,
        "files_written": written,
        "message": done.stderr.splitlines(),
        "right": done.returncode == 2 and not written and nearest in done.stderr,
    }


def main() -> int:
    """Exit code 1 where a request was not refused as it must be."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--python", type=Path, required=True)
    python: Path = parser.parse_args().python
    found: dict[str, Any] = {"origin": origin()}
    found["origin"]["command"] = "python -m benchmarks.renting.wrong_requests --python ENV/bin/python"
    with tempfile.TemporaryDirectory(prefix="wrong-") as name:
        folder = Path(name)
        write_catalog(folder / "home/.sky/catalogs/v8")
        (folder / "bin").mkdir()
        (folder / "bin/sinfo").write_text(f"#!/bin/sh\ncat <<'END'\n{SINFO}END\n")
        (folder / "bin/sinfo").chmod(0o755)
        path = f"{folder}/bin:{python.absolute().parent}:{os.environ['PATH']}"
        env = environment(HOME=str(folder / "home"), PATH=path)
        rows = {title: asked(*request, folder, env) for title, request in REQUESTS.items()}
    for title, row in rows.items():
        print("PASS" if row["right"] else "FAIL", title, *row["message"], sep="\n      ")
    right = sum(row["right"] for row in rows.values())
    found |= {"right": right, "requests": rows}
    print(f"{right} of {len(rows)} refused", write_result("wrong_requests", found))
    return 0 if right == len(rows) else 1


if __name__ == "__main__":
    sys.exit(main())
