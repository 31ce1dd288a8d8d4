"""Whole runs on a GPU: two ranks on one card give the bits of one rank."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from ranks.engine.files.jsonl import read_rows
from tests.cuda.gpu import NEEDS_GPU

pytestmark = NEEDS_GPU
TOYS = Path(__file__).parents[1] / "toys"


@pytest.mark.parametrize("toy", ["images", "cartpole", "tictactoe"])
def test_one_and_two_ranks_on_one_gpu_end_with_the_same_fingerprint(toy: str, tmp_path: Path) -> None:
    found = set[str]()
    for num_ranks in (1, 2):
        place = ["--gpus", "0,", "--ranks", str(num_ranks), "--runs-dir", str(tmp_path), "--name", str(num_ranks)]
        command = ["train", str(TOYS / f"{toy}.py"), *place, "--exact", "--iterations", "4"]
        subprocess.run([sys.executable, "-m", "ranks", *command], check=True, capture_output=True)
        finished = [e for e in read_rows(tmp_path / str(num_ranks) / "events.jsonl") if e["event"] == "finished"]
        found.add(str(finished[-1]["fingerprint"]))
    assert len(found) == 1
