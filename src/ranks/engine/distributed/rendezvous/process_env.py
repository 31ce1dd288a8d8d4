"""How this process was started, read from its process variables (RANK, WORLD_SIZE, ...). Imports no
torch."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from ranks.engine.distributed.rendezvous import slurm
from ranks.engine.distributed.rendezvous.cgroup import cpu_quota
from ranks.engine.distributed.rendezvous.meeting import Meeting, number
from ranks.errors import UserError

Kind = Literal["alone", "ranks", "torchrun", "slurm"]


@dataclass(frozen=True)
class ProcessEnv:
    """The process variables of one rank: its place among the ranks, and where it meets the
    others."""

    kind: Kind
    rank: int = 0
    local_rank: int = 0
    world_size: int = 1
    one_host: bool = True
    """All ranks are on this machine."""
    device: str | None = None
    """`cpu` or `cuda:i` where our launcher assigned it; None: the process chooses by its local
    rank."""
    store: Path | None = None
    """The FileStore in which the ranks of one machine meet (kinds ranks and slurm)."""
    meeting: Meeting | None = None
    """Where they meet otherwise."""
    attempt: int = 0
    """How many times the ranks were restarted before."""
    lock_fd: int | None = None
    """The inherited descriptor that holds the run folder's lock."""
    error_file: Path | None = None
    """Where this process writes the exception that ends it."""
    owns_gpu: bool = False
    """Our launcher gave no other rank the GPU of this one."""
    started_ns: int | None = None
    """When our launcher started the first attempt, by `time.monotonic_ns()`."""

    @classmethod
    def detect(cls, runs_dir: Path = Path("runs"), environ: Mapping[str, str] = os.environ) -> ProcessEnv:
        """Read the variables of our launcher, of torchrun, or of a Slurm step of several tasks;
        `alone` without any.

        Raises UserError where the variables contradict each other. The ranks of a Slurm step on one
        host meet in a FileStore in `runs_dir`, named after job, step and restart.
        """
        if "RANKS_STORE" in environ:
            return cls._of_variables("ranks", environ)
        if "TORCHELASTIC_RUN_ID" in environ or {"RANK", "WORLD_SIZE", "MASTER_ADDR"} <= environ.keys():
            return cls._of_variables("torchrun", environ)
        if "SLURM_STEP_ID" in environ and slurm.step_tasks(environ) > 1:
            return cls._of_slurm(runs_dir, environ)
        return cls("alone")

    @classmethod
    def _of_variables(cls, kind: Kind, environ: Mapping[str, str]) -> ProcessEnv:
        world_size = number(environ, "WORLD_SIZE")
        rank = number(environ, "RANK")
        if not 0 <= rank < world_size:
            raise UserError(f"RANK={rank}", f"WORLD_SIZE={world_size}", "give each process a rank below the world size")
        ours = kind == "ranks"
        meeting = Meeting.of_torchrun(environ) if not ours and world_size > 1 else None
        # launchers that name no LOCAL_WORLD_SIZE usually start one rank on a host
        local = number(environ, "LOCAL_WORLD_SIZE", world_size if meeting is None or meeting.is_loopback else 1)
        return cls(
            kind,
            rank=rank,
            local_rank=number(environ, "LOCAL_RANK", rank),
            world_size=world_size,
            one_host=local >= world_size,
            device=environ.get("RANKS_DEVICE"),
            store=Path(environ["RANKS_STORE"]) if ours else None,
            meeting=meeting,
            attempt=number(environ, "RANKS_ATTEMPT" if ours else "TORCHELASTIC_RESTART_COUNT", 0),
            lock_fd=number(environ, "RANKS_LOCK_FD") if "RANKS_LOCK_FD" in environ else None,
            error_file=Path(environ["RANKS_ERROR_FILE"]) if "RANKS_ERROR_FILE" in environ else None,
            owns_gpu=environ.get("RANKS_OWNS_GPU") == "1",
            started_ns=number(environ, "RANKS_STARTED_NS") if "RANKS_STARTED_NS" in environ else None,
        )

    @classmethod
    def _of_slurm(cls, runs_dir: Path, environ: Mapping[str, str]) -> ProcessEnv:
        one_host = slurm.step_hosts(environ) == 1
        return cls(
            "slurm",
            rank=number(environ, "SLURM_PROCID"),
            local_rank=number(environ, "SLURM_LOCALID"),
            world_size=slurm.step_tasks(environ),
            one_host=one_host,
            store=runs_dir / f".slurm-{slurm.step_name(environ)}.store" if one_host else None,
            meeting=None if one_host else slurm.meeting_of(environ),
            attempt=number(environ, "SLURM_RESTART_COUNT", 0),
        )


def default_threads(environ: Mapping[str, str] = os.environ) -> int:
    """CPU threads of a rank where no setting says it: OMP_NUM_THREADS, else one for each core. Raises UserError."""
    text = environ.get("OMP_NUM_THREADS", "").strip()
    if not text:
        return available_cores()
    first = text.partition(",")[0].strip()  # OpenMP allows a list, one number for each level of nesting
    if not (first.isascii() and first.isdecimal() and len(first) < 10 and int(first) > 0):
        raise UserError(f"OMP_NUM_THREADS={text}", "not a number of threads", "give a whole number, or unset it")
    return int(first)


def available_cores() -> int:
    """CPU cores that this process may use: its affinity, cut by the container's quota where there
    is one (Linux)."""
    if not hasattr(os, "sched_getaffinity"):
        return os.cpu_count() or 1
    cores, quota = len(os.sched_getaffinity(0)), cpu_quota()
    return cores if quota is None else max(1, min(cores, round(quota)))
