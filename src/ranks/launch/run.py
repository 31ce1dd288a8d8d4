"""`ranks train` on several ranks: run the same command line once per rank, supervised, with the console view."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Generator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ranks.launch.env_vars import check_loopback, rank_env_vars, set_allocator_defaults
from ranks.launch.logs import LogFolder
from ranks.launch.placement import Placement
from ranks.launch.processes.start import piped_input
from ranks.launch.supervision.config import HangRules, LaunchConfig
from ranks.launch.supervision.supervise import Supervisor
from ranks.watch.console import ConsoleView
from ranks.watch.lines import resume_line
from ranks.watch.tensorboard import TensorBoardWriter


def launch_run(
    argv: Sequence[str],
    placement: Placement,
    run_dir: Path,
    *,
    lock_fd: int | None = None,
    deterministic: bool = False,
    max_restarts: int = 3,
    hangs: HangRules | None = None,
    progress: Callable[[], int] = lambda: -1,
    record: Callable[[dict[str, Any]], None] = lambda fact: None,
) -> int:
    """Run `argv` (normally `[sys.executable, "-m", "ranks", "train", ...]`) as `placement.ranks` processes; exit code.

    `lock_fd`: the descriptor that holds the run folder's lock. Every rank inherits it, so the lock lasts as long as any
    of them. `deterministic`: also true for exact runs. `progress`: the iteration of the newest checkpoint, -1 where
    there is none. `record` gets {"event": "failed"|"hangs"|"restarted"|"gave_up", "time_s", ...}. The ranks' logs are
    in `run_dir`/logs once the run folder exists. Main thread only.
    """
    check_loopback(placement.ranks)
    env = rank_env_vars(placement.threads, deterministic=deterministic)
    set_allocator_defaults(env)
    if lock_fd is not None:
        env["RANKS_LOCK_FD"] = str(lock_fd)
    config = LaunchConfig(
        tuple(argv),
        placement.devices,
        env,
        _file_store,
        own_env=tuple({"CUDA_VISIBLE_DEVICES": entry} for entry in placement.only),
        logs=LogFolder(run_dir),
        stdin=piped_input() if placement.ranks == 1 else None,
        pass_fds=() if lock_fd is None else (lock_fd,),
        max_restarts=max_restarts,
        resume_line=lambda: resume_line(run_dir, progress()),
        hangs=hangs or HangRules(),
        run_dir=run_dir,
    )
    with TensorBoardWriter(run_dir), ConsoleView(run_dir) as view:
        if placement.note is not None:
            view.say(placement.note)
        supervisor = Supervisor(config, say=view.say, show=view.show, progress=progress, record=record)
        code = supervisor.run()
    if supervisor.last_line:
        print(supervisor.last_line, file=sys.stderr, flush=True)
    return code


@contextlib.contextmanager
def _file_store(attempt: int, private: Path) -> Generator[Mapping[str, str]]:
    """The ranks of one machine meet in a file that only this user can open. No port is opened for it."""
    yield {"RANKS_STORE": str(private / f"store-{attempt}")}
