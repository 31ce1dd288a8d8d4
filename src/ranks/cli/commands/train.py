"""`ranks train`: the process becomes the launcher of the ranks, or one of them."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from ranks.cli import debugging, torchrun_words
from ranks.cli.after_run import Cost, at_the_end
from ranks.cli.flags.settings import Settings, resolve
from ranks.cli.saved.exported import check_onnx, wants_onnx
from ranks.engine.config import RunConfig
from ranks.engine.distributed.rendezvous.process_env import ProcessEnv, default_threads
from ranks.engine.liveness.heartbeat import heartbeat
from ranks.engine.runs.folder import SESSIONS_FILE, RunFolder, listing
from ranks.errors import Stopped, UserError
from ranks.workloads import WORKLOADS, is_path

HELP = "Train a workload on all GPUs, or on the CPU: ranks train WORKLOAD [FLAGS], or ranks train ./FILE.py [FLAGS]."
LOCK_PATIENCE_S = 1.0
"""`ranks runs`, `watch`, `stop` and `autodown` hold a run's lock for an instant when they look whether it is in use."""


def train(argv: Sequence[str]) -> int:
    """Read the settings, then join as a rank or start the ranks. Returns the exit code."""
    if not argv or argv[0].startswith("-"):
        return without_workload(argv)
    if torchrun_words.asks_for_several_machines(argv):
        return torchrun_words.become_torchrun(argv)
    heartbeat.connect()  # before the workload is imported, which may hang too
    environment = ProcessEnv.detect()
    if environment.kind == "ranks":  # our launcher has read the flags, so they are read once here, with the workload
        return join(argv, environment, environment.device)
    settings = resolve(argv[0], argv[1:], outline=True)
    if settings.flags.print_config:
        print(settings.as_json())
        return 0
    environment = ProcessEnv.detect(settings.engine.runs_dir)
    if environment.kind == "alone":
        return start(settings, argv)
    flags, started = settings.flags, environment.world_size
    if flags.ranks not in (None, started):
        raise UserError(
            f"--ranks {flags.ranks}", f"{environment.kind} has started {started} ranks", "leave --ranks out"
        )
    refuse_after_run(settings, environment.kind)
    cost = settings.cost if environment.rank == 0 else None
    return join(argv, environment, environment.device or ("cpu" if flags.gpus == "none" else None), cost)


def without_workload(argv: Sequence[str]) -> int:
    """Print the help page, or raise the UserError for a missing workload."""
    listed = ", ".join(WORKLOADS)
    if not {"-h", "--help"} & set(argv[:1]):
        raise UserError("ranks train", "no workload was named", f"name one of {listed}, or your own file: ./FILE.py")
    print(f"{HELP}\n\nworkloads: {listed}\nall flags: ranks train WORKLOAD --help, ranks train ./FILE.py --help")
    return 0


def refuse_after_run(settings: Settings, kind: str) -> None:
    """Raises UserError for what the launcher of `ranks` does after a run, where another one has started the ranks: it
    may start them again after they have ended."""
    found = f"{kind} has started the ranks, and only it knows when the run has ended"
    if settings.flags.then is not None:
        do = f"run the command after that of {kind}"
        raise UserError(f"--then {settings.flags.then!r}", found, do)
    if wants_onnx(settings.flags.export, f"--export {settings.flags.export}"):
        do = f"afterwards: ranks export {settings.engine.name} --format {settings.flags.export}"
        raise UserError(f"--export {settings.flags.export}", found, do)


def start(settings: Settings, argv: Sequence[str]) -> int:
    """Assign devices to ranks, start them as child processes and watch them. One rank runs in this
    process where a debugger follows it, or where `--hang-timeout none` asks for that."""
    from ranks.launch.env_vars import set_allocator_defaults, set_cuda_defaults
    from ranks.launch.placement import place

    engine, flags, folder = settings.engine, settings.flags, run_folder(settings.engine)
    export = export_command(settings, folder.path)
    placement = place(
        flags.gpus,
        flags.ranks,
        shards=engine.num_shards,
        shares=engine.shares,
        threads=engine.threads,
        exact=engine.exact,
    )
    if placement.ranks == 1 and not (engine.threads or engine.exact):
        placement = replace(placement, threads=default_threads())  # as OMP_NUM_THREADS says
    deterministic = engine.exact or engine.deterministic
    traced = debugging.traced()
    if placement.ranks == 1 and (traced or engine.hang_timeout is None):
        if traced and engine.hang_timeout is not None:
            print("a debugger or profiler follows this process, so the run is in it, and not watched for hangs")
        if placement.note:
            print(placement.note)
        set_cuda_defaults(os.environ, deterministic=deterministic)
        set_allocator_defaults(os.environ)
        if placement.only:
            os.environ["CUDA_VISIBLE_DEVICES"] = placement.only[0]
        with at_the_end(settings.cost, folder.path, export) as codes:
            codes.append(run_here(argv, placement.devices[0], shows=True))
        return codes[-1]

    from ranks.launch.run import launch_run
    from ranks.launch.supervision.config import HangRules

    folder.check_format()
    lock_fd = folder.lock(LOCK_PATIENCE_S)
    try:
        with at_the_end(settings.cost, folder.path, export) as codes:
            code = launch_run(
                worker_command(argv),
                placement,
                folder.path,
                lock_fd=lock_fd,
                deterministic=deterministic,
                max_restarts=flags.max_restarts,
                hangs=HangRules(engine.hang_timeout_s, flags.on_hang, engine.stop_grace_s),
                progress=partial(newest_iteration, folder),
                record=partial(record, folder),
            )
            codes.append(code)
        return codes[-1]
    finally:
        os.close(lock_fd)


def join(argv: Sequence[str], environment: ProcessEnv, device: str | None, cost: Cost | None = None) -> int:
    """Be the rank that the environment variables describe. Under our launcher, write its exception
    to a file; under torchrun and Slurm, show it. `cost`: say at the end what the machine costs."""
    ours = environment.kind == "ranks"
    if ours:
        sys.breakpointhook = debugging.breakpoint_in_a_rank
    try:
        # our own launcher draws the console view; under torchrun and Slurm the first rank does
        with at_the_end(cost, Path()) if cost is not None else contextlib.nullcontext(list[int]()) as codes:
            codes.append(run_here(argv, device, shows=not ours and environment.rank == 0))
        return codes[-1]
    except Stopped as end:
        return end.exit_code
    except SystemExit as end:
        if environment.error_file is not None:
            from ranks.launch.failures.report import report_exit

            report_exit(end, environment.error_file)
        raise
    except Exception as error:
        from ranks.launch.failures.report import report_exception, show_exception

        if environment.error_file is not None:
            code = report_exception(debugging.explained(error), environment.rank, environment.error_file)
        else:
            code = show_exception(error, environment.rank)
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)  # at once: closing the process group would wait for ranks that wait for this one


def run_here(argv: Sequence[str], device: str | None, *, shows: bool) -> int:
    """Load the whole workload, join the world and train in this process. `shows`: draw the console
    view in it."""
    settings = resolve(argv[0], argv[1:])
    from ranks.engine.distributed.world import World

    with contextlib.ExitStack() as stack:
        if shows:
            from ranks.watch.console import ConsoleView
            from ranks.watch.tensorboard import TensorBoardWriter

            path = run_folder(settings.engine).path
            stack.enter_context(TensorBoardWriter(path))
            view = stack.enter_context(ConsoleView(path))
            stack.callback(setattr, sys, "breakpointhook", sys.breakpointhook)
            sys.breakpointhook = debugging.breakpoint_after(view.__exit__)  # without the progress bar
        world = World.join(settings.engine, device=device, workload=settings.workload)
        world.price = settings.cost.price
        try:
            settings.module.train(settings.config, world)
        except Stopped:
            world.leave()
            raise
        except BaseException as error:
            world.stop.uninstall()
            if shows and isinstance(error, Exception) and not isinstance(error, UserError):
                add_resume_note(error, settings.engine)
            raise
        world.leave()
    return 0


def add_resume_note(error: Exception, engine: RunConfig) -> None:
    """Add to the traceback from where the same command resumes."""
    from ranks.watch.lines import resume_line

    folder = run_folder(engine)
    error.add_note(resume_line(folder.path, newest_iteration(folder)))


def worker_command(argv: Sequence[str]) -> list[str]:
    """The command line of each rank: the same arguments, and the same import path as this
    process."""
    here = sys.path[0] in ("", os.getcwd())
    return [sys.executable, *([] if here else ["-P"]), "-m", "ranks", "train", *argv]


def export_command(settings: Settings, folder: Path) -> list[str]:
    """The command of `--export`, in a process of its own; none where the end of the run exports enough. The code of a
    user's file was executed already. Raises UserError for an unknown format, and where no ONNX file could be made."""
    formats = settings.flags.export
    if not wants_onnx(formats, f"--export {formats}"):
        return []
    check_onnx(settings.workload, settings.module)
    command = [sys.executable, "-m", "ranks", "export", str(folder), "--format", str(formats)]
    return [*command, "--trust-code"] if is_path(settings.workload) else command


def run_folder(engine: RunConfig) -> RunFolder:
    """The folder of the run."""
    return RunFolder.of(engine.runs_dir, str(engine.name))


def newest_iteration(folder: RunFolder) -> int:
    """The iteration of the newest checkpoint; -1 without one."""
    return max((int(path.name) for path in listing(folder.checkpoints)), default=-1)


def record(folder: RunFolder, fact: dict[str, Any]) -> None:
    """Append a failure or a restart to the run's sessions file.

    A command that was refused before it opened a session leaves the file as it is.
    """
    if not folder.exists:
        return
    from ranks.engine.files.jsonl import JsonlFile, last_rows
    from ranks.engine.runs.sessions import newest_state

    path = folder.path / SESSIONS_FILE
    last = newest_state(last_rows(path))
    if fact.get("kind") == "user_error" and last.get("event") not in ("opened", "resumed"):
        return
    sessions = JsonlFile(path)
    sessions.append({**fact, "time": fact["time_s"]})
    sessions.sync()
    sessions.close()
