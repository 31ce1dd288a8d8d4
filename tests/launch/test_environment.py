"""How a process finds out who started it."""

from __future__ import annotations

from pathlib import Path

import pytest

from ranks.engine.distributed.rendezvous.meeting import Meeting
from ranks.engine.distributed.rendezvous.process_env import ProcessEnv, available_cores
from ranks.engine.distributed.rendezvous.slurm import first_host
from ranks.errors import UserError

OURS = {
    **{"RANKS_STORE": "/s", "RANK": "1", "WORLD_SIZE": "3", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "3"},
    **{"RANKS_DEVICE": "cuda:0", "RANKS_ATTEMPT": "2", "RANKS_LOCK_FD": "7", "RANKS_ERROR_FILE": "/e"},
    "RANKS_STARTED_NS": "5",
}
TORCHRUN = {"RANK": "3", "WORLD_SIZE": "4", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "2"}
TORCHRUN |= {"TORCHELASTIC_RUN_ID": "x", "TORCHELASTIC_USE_AGENT_STORE": "True"}
TORCHRUN |= {"MASTER_ADDR": "h", "MASTER_PORT": "5"}
SLURM = {
    **{"SLURM_JOB_ID": "9", "SLURM_STEP_ID": "4", "SLURM_PROCID": "1", "SLURM_LOCALID": "1", "SLURM_NTASKS": "2"},
    **{"SLURM_NNODES": "1"},
}


def test_our_own_ranks_know_everything() -> None:
    assert ProcessEnv.detect(environ=OURS) == ProcessEnv(
        *("ranks", 1, 1, 3, True, "cuda:0", Path("/s"), None, 2, 7, Path("/e"), False, 5),
    )


def test_torchrun_and_its_like_are_known_by_their_variables() -> None:
    meeting = Meeting("h", 5, "x", served_by_agent=True)
    assert ProcessEnv.detect(environ=TORCHRUN) == ProcessEnv("torchrun", 3, 1, 4, one_host=False, meeting=meeting)
    assert ProcessEnv.detect(environ=TORCHRUN | {"LOCAL_WORLD_SIZE": "4"}).one_host
    assert ProcessEnv.detect(environ={"RANK": "0", "WORLD_SIZE": "2"}).kind == "alone"


@pytest.mark.parametrize(("master", "one_host"), [("h", False), ("10.0.0.1", False), ("localhost", True)])
def test_without_the_local_world_size_ranks_are_on_several_hosts_unless_they_meet_on_loopback(
    master: str, one_host: bool
) -> None:
    found = ProcessEnv.detect(environ={"RANK": "0", "WORLD_SIZE": "2", "MASTER_ADDR": master, "MASTER_PORT": "5"})
    assert (found.kind, found.one_host, found.meeting) == ("torchrun", one_host, Meeting(master, 5))


def test_a_slurm_step_meets_in_a_file_of_its_job_and_step() -> None:
    found = ProcessEnv.detect(Path("runs"), SLURM)
    assert (found.kind, found.rank, found.local_rank, found.world_size) == ("slurm", 1, 1, 2)
    again = ProcessEnv.detect(Path("runs"), SLURM | {"SLURM_RESTART_COUNT": "1"})
    assert found.store is not None
    assert found.store.parent == Path("runs")
    assert again.store != found.store


SEVERAL_HOSTS = SLURM | {"SLURM_NNODES": "2", "SLURM_STEP_NODELIST": "gpu[07-09,12]-ib,login"}


def test_a_slurm_step_on_several_hosts_meets_on_the_first() -> None:
    found = ProcessEnv.detect(environ=SEVERAL_HOSTS)
    assert (found.kind, found.one_host, found.store) == ("slurm", False, None)
    assert found.meeting == Meeting("gpu07-ib", 15_913, "9-4-0")
    again = ProcessEnv.detect(environ=SEVERAL_HOSTS | {"SLURM_RESTART_COUNT": "1"})
    assert again.meeting == Meeting("gpu07-ib", 15_913, "9-4-1")
    chosen = ProcessEnv.detect(environ=SEVERAL_HOSTS | {"MASTER_ADDR": "10.0.0.9", "MASTER_PORT": "5"})
    assert chosen.meeting == Meeting("10.0.0.9", 5, "9-4-0")


@pytest.mark.parametrize(
    ("names", "first"),
    [
        ("n1", "n1"),
        ("n1,n2", "n1"),
        ("n[1-2]", "n1"),
        ("n[007,9-12]", "n007"),
        ("rack[1-2]n[03-04]-ib,x", "rack1n03-ib"),
        ("10.77.0.[1-2]", "10.77.0.1"),
        ("", ""),
    ],
)
def test_the_first_host_of_a_list(names: str, first: str) -> None:
    assert first_host(names) == first


def test_a_slurm_job_script_or_a_step_of_one_task_is_alone() -> None:
    assert ProcessEnv.detect(environ=SLURM | {"SLURM_NTASKS": "1"}).kind == "alone"
    assert ProcessEnv.detect(environ={k: v for k, v in SLURM.items() if k != "SLURM_STEP_ID"}).kind == "alone"
    assert ProcessEnv.detect(environ={}) == ProcessEnv("alone", 0, 0, 1)


@pytest.mark.parametrize(
    ("environ", "named"),
    [
        (TORCHRUN | {"RANK": "4"}, "WORLD_SIZE=4"),
        (TORCHRUN | {"RANK": "one"}, "RANK=one"),
        ({"TORCHELASTIC_RUN_ID": "x", "RANK": "0"}, "WORLD_SIZE is not set"),
        ({"TORCHELASTIC_RUN_ID": "x", "RANK": "0", "WORLD_SIZE": "2"}, "MASTER_ADDR is not set"),
        (TORCHRUN | {"MASTER_PORT": "http"}, "MASTER_PORT=http"),
        (SLURM | {"SLURM_NNODES": "2"}, "neither SLURM_STEP_NODELIST nor MASTER_ADDR is set"),
    ],
)
def test_what_contradicts_itself_is_named(environ: dict[str, str], named: str) -> None:
    with pytest.raises(UserError) as error:
        ProcessEnv.detect(environ=environ)
    assert named in error.value.found


def test_there_is_a_core() -> None:
    assert available_cores() >= 1
