"""How a process finds out who started it."""

from __future__ import annotations

from pathlib import Path

import pytest

from ranks.engine.distributed.process_env import ProcessEnv, available_cores
from ranks.errors import UserError

OURS = {
    **{"RANKS_STORE": "/s", "RANK": "1", "WORLD_SIZE": "3", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "3"},
    **{"RANKS_DEVICE": "cuda:0", "RANKS_ATTEMPT": "2", "RANKS_LOCK_FD": "7", "RANKS_ERROR_FILE": "/e"},
    "RANKS_STARTED_NS": "5",
}
TORCHRUN = {"RANK": "3", "WORLD_SIZE": "4", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "2", "TORCHELASTIC_RUN_ID": "x"}
SLURM = {
    **{"SLURM_JOB_ID": "9", "SLURM_STEP_ID": "4", "SLURM_PROCID": "1", "SLURM_LOCALID": "1", "SLURM_NTASKS": "2"},
    **{"SLURM_NNODES": "1"},
}


def test_our_own_ranks_know_everything() -> None:
    assert ProcessEnv.detect(environ=OURS) == ProcessEnv(
        *("ranks", 1, 1, 3, 3, "cuda:0", Path("/s"), 2, 7, Path("/e"), False, 5),
    )


def test_torchrun_and_its_like_are_known_by_their_variables() -> None:
    assert ProcessEnv.detect(environ=TORCHRUN) == ProcessEnv("torchrun", 3, 1, 4, 2)
    assert ProcessEnv.detect(environ={"RANK": "0", "WORLD_SIZE": "2", "MASTER_ADDR": "h"}).kind == "torchrun"
    assert ProcessEnv.detect(environ={"RANK": "0", "WORLD_SIZE": "2"}).kind == "alone"


def test_a_slurm_step_meets_in_a_file_of_its_job_and_step() -> None:
    found = ProcessEnv.detect(Path("runs"), SLURM)
    assert (found.kind, found.rank, found.local_rank, found.world_size) == ("slurm", 1, 1, 2)
    again = ProcessEnv.detect(Path("runs"), SLURM | {"SLURM_RESTART_COUNT": "1"})
    assert found.store is not None
    assert found.store.parent == Path("runs")
    assert again.store != found.store


def test_a_slurm_job_script_or_a_step_of_one_task_is_alone() -> None:
    assert ProcessEnv.detect(environ=SLURM | {"SLURM_NTASKS": "1"}).kind == "alone"
    assert ProcessEnv.detect(environ={k: v for k, v in SLURM.items() if k != "SLURM_STEP_ID"}).kind == "alone"
    assert ProcessEnv.detect(environ={}) == ProcessEnv("alone", 0, 0, 1, 1)


@pytest.mark.parametrize(
    ("environ", "named"),
    [
        (TORCHRUN | {"RANK": "4"}, "WORLD_SIZE=4"),
        (TORCHRUN | {"RANK": "one"}, "RANK=one"),
        ({"TORCHELASTIC_RUN_ID": "x", "RANK": "0"}, "WORLD_SIZE is not set"),
        (SLURM | {"SLURM_NNODES": "2"}, "2 nodes"),
    ],
)
def test_what_contradicts_itself_is_named(environ: dict[str, str], named: str) -> None:
    with pytest.raises(UserError) as error:
        ProcessEnv.detect(environ=environ)
    assert named in error.value.found


def test_there_is_a_core() -> None:
    assert available_cores() >= 1
