"""`ranks train` with several ranks: the same command line once per rank, supervised, with the console view in front."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ranks.launch.environ import rank_environ
from ranks.launch.logs import LogFolder
from ranks.launch.placement import Placement
from ranks.launch.supervise import Job, Supervisor
from ranks.watch.console import View
from ranks.watch.tensorboard import Board


def launch_run(
    argv: Sequence[str],
    placement: Placement,
    run_dir: Path,
    *,
    lock_fd: int | None = None,
    deterministic: bool = False,
    max_restarts: int = 3,
    progress: Callable[[], int] = lambda: 0,
    record: Callable[[dict[str, Any]], None] = lambda fact: None,
) -> int:
    """Run `argv` (normally `[sys.executable, "-m", "ranks", "train", ...]`) as `placement.ranks` processes; exit code.

    `lock_fd`: the descriptor that holds the run folder's lock; every rank inherits it, so the lock lives as long as
    any of them. `deterministic`: of exact runs too. `progress`: the newest checkpoint's iteration, or any number that
    grows when work was kept. `record` gets {"event": "failed"|"restarted"|"gave_up", "time_s", ...}. Logs of the ranks
    go to `run_dir`/logs once the run folder is there. Main thread only.
    """
    env = rank_environ(placement.threads, deterministic=deterministic)
    if lock_fd is not None:
        env["RANKS_LOCK_FD"] = str(lock_fd)
    job = Job(
        tuple(argv),
        placement.devices,
        env,
        _file_store,
        logs=LogFolder(run_dir),
        pass_fds=() if lock_fd is None else (lock_fd,),
        max_restarts=max_restarts,
    )
    with Board(run_dir), View(run_dir) as view:
        if placement.note is not None:
            view.say(placement.note)
        return Supervisor(job, say=view.say, show=view.show, progress=progress, record=record).run()


@contextlib.contextmanager
def _file_store(attempt: int, private: Path) -> Generator[Mapping[str, str]]:
    """Ranks of one machine meet in a file that nobody else can open; no port is opened for it."""
    yield {"RANKS_STORE": str(private / f"store-{attempt}")}
