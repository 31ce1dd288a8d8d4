"""The sbatch file on a real slurmctld with two nodes. The time limit and the queue: benchmarks/renting."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from benchmarks.measure import SOURCE
from benchmarks.renting.slurm_cluster import LocalSlurm, missing_program

MISSING = missing_program() or ("root" if os.geteuid() != 0 else None)
RANKS = [sys.executable, "-m", "ranks", "submit", "slurm", "graph-coloring"]


@pytest.mark.skipif(MISSING is not None, reason=f"no {MISSING} here")
def test_slurm_takes_the_file_and_says_what_it_has() -> None:
    with tempfile.TemporaryDirectory(prefix="slurm-", dir="/tmp") as name:
        folder = Path(name)  # a short path, for the sockets
        cluster = LocalSlurm(folder, {**os.environ, "PYTHONPATH": SOURCE})
        try:
            cluster.__enter__()
        except (OSError, subprocess.CalledProcessError) as problem:
            pytest.skip(f"no network namespaces here: {problem}")
        try:
            asked = [*RANKS, "--gpus", "B200:8", "--nodes", "2", "--seeds", "1,2", "--partition", "main"]
            said = cluster.run(*asked)
            assert "no sinfo answers" not in said
            cluster.run("sbatch", "--test-only", "graph-coloring.sbatch")
            for wrong, found in (
                (["--nodes", "3"], "the cluster has 2 such nodes"),
                (["--gpus", "H100:8"], "no node has a GPU of the kind h100"),
                (["--hours", "2"], "the partition ends a job after 1 h"),
            ):
                with pytest.raises(subprocess.CalledProcessError) as refused:
                    cluster.run(*asked, *wrong, "--out", "other.sbatch")
                assert refused.value.returncode == 2
                assert found in refused.value.stderr
            assert not (folder / "other.sbatch").exists()
        finally:
            cluster.__exit__()
