"""How this process was started, read from its process variables (RANK, WORLD_SIZE, ...). Imports no
torch."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

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
    local_world_size: int = 1
    device: str | None = None
    """`cpu` or `cuda:i` where our launcher assigned it; None: the process chooses by its local
    rank."""
    store: Path | None = None
    """The FileStore of this attempt (kinds ranks and slurm); torchrun's own rendezvous
    otherwise."""
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

        Raises UserError where the variables contradict each other. The ranks of a Slurm step meet
        in a FileStore in `runs_dir`, named after job, step and restart.
        """
        if "RANKS_STORE" in environ:
            return cls._of_variables("ranks", environ)
        if "TORCHELASTIC_RUN_ID" in environ or {"RANK", "WORLD_SIZE", "MASTER_ADDR"} <= environ.keys():
            return cls._of_variables("torchrun", environ)
        if "SLURM_STEP_ID" in environ and _slurm_tasks(environ) > 1:
            return cls._of_slurm(runs_dir, environ)
        return cls("alone")

    @classmethod
    def _of_variables(cls, kind: Kind, environ: Mapping[str, str]) -> ProcessEnv:
        world_size = _integer(environ, "WORLD_SIZE")
        rank = _integer(environ, "RANK")
        if not 0 <= rank < world_size:
            raise UserError(f"RANK={rank}", f"WORLD_SIZE={world_size}", "give each process a rank below the world size")
        return cls(
            kind,
            rank=rank,
            local_rank=_integer(environ, "LOCAL_RANK", rank),
            world_size=world_size,
            local_world_size=_integer(environ, "LOCAL_WORLD_SIZE", world_size),
            device=environ.get("RANKS_DEVICE"),
            store=Path(environ["RANKS_STORE"]) if kind == "ranks" else None,
            attempt=_integer(environ, "RANKS_ATTEMPT" if kind == "ranks" else "TORCHELASTIC_RESTART_COUNT", 0),
            lock_fd=_integer(environ, "RANKS_LOCK_FD") if "RANKS_LOCK_FD" in environ else None,
            error_file=Path(environ["RANKS_ERROR_FILE"]) if "RANKS_ERROR_FILE" in environ else None,
            owns_gpu=environ.get("RANKS_OWNS_GPU") == "1",
            started_ns=_integer(environ, "RANKS_STARTED_NS") if "RANKS_STARTED_NS" in environ else None,
        )

    @classmethod
    def _of_slurm(cls, runs_dir: Path, environ: Mapping[str, str]) -> ProcessEnv:
        nodes = _integer(environ, "SLURM_STEP_NUM_NODES", _integer(environ, "SLURM_NNODES", 1))
        if nodes > 1:
            raise UserError(
                "a Slurm step", f"it spans {nodes} nodes", "ask for one node: srun --nodes=1 --ntasks=N ..."
            )
        world_size = _slurm_tasks(environ)
        job, step = environ.get("SLURM_JOB_ID", "0"), environ["SLURM_STEP_ID"]
        restart = _integer(environ, "SLURM_RESTART_COUNT", 0)
        return cls(
            "slurm",
            rank=_integer(environ, "SLURM_PROCID"),
            local_rank=_integer(environ, "SLURM_LOCALID"),
            world_size=world_size,
            local_world_size=world_size,
            store=runs_dir / f".slurm-{job}-{step}-{restart}.store",
            attempt=restart,
        )


def available_cores() -> int:
    """CPU cores that this process may use: its affinity, cut by the container's quota where there
    is one (Linux)."""
    if not hasattr(os, "sched_getaffinity"):
        return os.cpu_count() or 1
    cores = len(os.sched_getaffinity(0))
    try:
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text(encoding="ascii").split()
        return cores if quota == "max" else max(1, min(cores, round(int(quota) / int(period))))
    except (OSError, ValueError):
        return cores


def _slurm_tasks(environ: Mapping[str, str]) -> int:
    return _integer(environ, "SLURM_STEP_NUM_TASKS", _integer(environ, "SLURM_NTASKS", 1))


def _integer(environ: Mapping[str, str], name: str, default: int | None = None) -> int:
    text = environ.get(name, "" if default is None else str(default))
    try:
        return int(text)
    except ValueError:
        found = f"{name}={text}" if name in environ else f"{name} is not set"
        raise UserError(
            "a place among the ranks", found, f"start with `ranks train`, torchrun or srun, or set {name}"
        ) from None
