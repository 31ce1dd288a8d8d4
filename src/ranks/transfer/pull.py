"""A run from another machine: the whole run where it has finished, else its newest checkpoint that verifies, with all
that `ranks train` needs to continue from it.

    runs/.NAME.pull/    while the copy lasts; the next pull continues it
    runs/NAME/          appears, or moves on, when every sha256 sum agrees
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from posixpath import basename

from ranks.engine.files.disk import remove, writing
from ranks.engine.runs.checkpoints.checkpoint import manifests
from ranks.engine.runs.folder import SESSIONS_FILE, RunFolder
from ranks.errors import UserError
from ranks.progress import ProgressBar
from ranks.transfer.place_run import place_run
from ranks.transfer.pulled_mark import mark_command
from ranks.transfer.remote import ConnectionCut, Remote
from ranks.transfer.remote_run import RemoteRun, list_all, look
from ranks.transfer.rsync import Copy, FilesGone, copy_files, show_bytes
from ranks.transfer.run_files import RunFiles, of_checkpoint, of_whole
from ranks.transfer.sums import local_sums

UNCHANGED = "the runs here are as they were"
LOOKS = 5
"""How often to begin again with a run that goes on meanwhile."""


class RunMoved(Exception):
    """The run has gone on, so that the copy is of two moments."""


@dataclass(frozen=True)
class Pulled:
    """`iteration`: of the newest checkpoint that is here now. `finished`: the whole run is here."""

    path: Path
    iteration: int
    finished: bool
    num_bytes: int


@dataclass(frozen=True)
class PullSource:
    """A run folder on another machine."""

    remote: Remote
    folder: str
    asked: str

    @property
    def place(self) -> str:
        return f"{self.remote.host}:{self.folder}"


def pull(remote: Remote, folder: str, runs_dir: Path, asked: str) -> Pulled:
    """Copy the run in `folder` there to `runs_dir`, or bring the copy there up to date. Raises UserError."""
    source, local = PullSource(remote, folder, asked), RunFolder.of(runs_dir, basename(folder.rstrip("/")))
    remote.check(asked)
    lock_fd = local.lock()
    try:
        with ProgressBar() as bar, writing(asked, runs_dir, UNCHANGED):
            for _ in range(LOOKS):
                try:
                    return _pull(source, local, bar)
                except (FilesGone, RunMoved):
                    bar.line("the run has gone on meanwhile; looking again")
        found = f"{source.place} has changed during each of {LOOKS} copies"
        raise UserError(asked, found, "save less often (--save-every), or end the run first: ranks stop")
    except ConnectionCut as cut:
        do = "run the same command again: it continues where this one ended"
        raise UserError(asked, f"the connection to {remote.host} was cut: {cut}", do) from None
    finally:
        os.close(lock_fd)


def _pull(source: PullSource, local: RunFolder, bar: ProgressBar) -> Pulled:
    run = look(source.remote, source.folder, source.asked)
    _check_same_run(run, local, source)
    staging = local.path.with_name(f".{local.path.name}.pull")
    for files, whole in _candidates(run, source):
        _check_not_older(files.iteration, local, source)
        damaged = _copy(files, source, staging, bar)
        if damaged:
            bar.line(f"warning: damaged on {source.remote.host}: {damaged[0]}; taking an older checkpoint")
            continue
        if whole and look(source.remote, source.folder, source.asked) != run:
            raise RunMoved
        (staging / SESSIONS_FILE).write_bytes(run.sessions)
        place_run(staging, local, [*files.names, SESSIONS_FILE])
        source.remote.run(mark_command(source.folder, run.sessions, files.iteration), source.asked, place=source.folder)
        return Pulled(local.path, files.iteration, whole, files.num_bytes)
    found = f"{source.place} has no intact checkpoint"
    raise UserError(source.asked, found, f"look at its files: {source.remote.typed}")


def _candidates(run: RemoteRun, source: PullSource) -> Iterator[tuple[RunFiles, bool]]:
    """What to copy, the best first, and whether it is the whole run."""
    if run.finished and run.manifests:
        yield of_whole(run, list_all(source.remote, source.folder, source.asked)), True
    for manifest in reversed(run.manifests.values()):
        yield of_checkpoint(run, manifest), False


def _copy(files: RunFiles, source: PullSource, staging: Path, bar: ProgressBar) -> list[str]:
    """Copy files and compare them; those that are damaged on the other machine. Raises RunMoved, FilesGone."""
    staging.mkdir(exist_ok=True)
    _remove_others(staging, {*files.names})
    bar.update(0, [f"iteration {files.iteration:,}"], files.num_bytes)
    copy = Copy(source.remote, source.folder, str(staging), files.names, upload=False)
    for attempt in (copy, replace(copy, compare_content=True)):
        copy_files(attempt, source.asked, progress=show_bytes(bar, files.num_bytes), say=bar.line)
        for name, length in files.lengths.items():
            if (staging / name).stat().st_size > length:
                os.truncate(staging / name, length)
        wrong = _differing(files, source, staging)
        if not wrong:
            return []
    theirs = source.remote.sha256(source.folder, wrong, source.asked)
    if all(name in files.sums and theirs.get(name, files.sums[name]) != files.sums[name] for name in wrong):
        return wrong
    raise RunMoved


def _differing(files: RunFiles, source: PullSource, staging: Path) -> list[str]:
    """The files whose sha256 sum is not what the run says, or what the other machine says."""
    found = local_sums(staging, files.names, source.asked)
    wanted = files.sums | source.remote.sha256(source.folder, files.others, source.asked, files.lengths)
    return [name for name in files.names if found[name] != wanted.get(name)]


def _remove_others(staging: Path, names: set[str]) -> None:
    """Remove what an earlier pull has left and this one does not need."""
    for path in staging.rglob("*"):
        if not path.is_dir() and str(path.relative_to(staging)) not in names:
            remove(path)
    for path in sorted((path for path in staging.rglob("*") if path.is_dir()), reverse=True):
        if not any(path.iterdir()):
            path.rmdir()


def _check_same_run(run: RemoteRun, local: RunFolder, source: PullSource) -> None:
    """Raises UserError where the folder here is no run, or another one."""
    if not local.exists:
        if os.path.lexists(local.path):
            found = f"{local.path} exists, and is no run folder"
            raise UserError(source.asked, found, "remove it, or name another --runs-dir")
        return
    here = local.read_run()
    if any(here.get(key) != run.run.get(key) for key in ("identity", "started")):
        found = f"{local.path} is another run of the same name"
        raise UserError(source.asked, found, "rename it, or name another --runs-dir")


def _check_not_older(iteration: int, local: RunFolder, source: PullSource) -> None:
    """Raises UserError where the run here has gone further."""
    here = max((manifest.iteration for manifest in manifests(local.checkpoints).values()), default=-1)
    if here > iteration:
        found = f"the run here is at iteration {here:,}, that of {source.place} at {iteration:,}"
        raise UserError(source.asked, found, "keep this one, or name another --runs-dir")
