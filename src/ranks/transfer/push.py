"""Data to another machine: copied into a hidden folder there, compared by sha256, then moved into place.

data/.prices.ranks-push/    while the copy lasts; the next push continues it
data/prices/                whole files only
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from posixpath import join

from ranks.engine.runs.folder import RunFolder, iteration_of, listing
from ranks.errors import UserError
from ranks.progress import ProgressBar
from ranks.transfer.listing import list_files
from ranks.transfer.remote import ConnectionCut, Remote
from ranks.transfer.rsync import Copy, copy_files, show_bytes
from ranks.transfer.sums import local_sums

FREE_KB = "df -Pk {} | tail -n 1 | awk '{{print $4}}'"


@dataclass(frozen=True)
class Pushed:
    """What is on the other machine now. `place`: as ssh paths are written."""

    place: str
    num_files: int
    num_bytes: int


def push(data: Path, remote: Remote, folder: str, asked: str) -> Pushed:
    """Copy a file or a folder into `folder` there (the home folder where it is empty), with a progress bar. Raises
    UserError. Files that only the other side has stay."""
    path = data.resolve()
    files = list_files(path, asked)
    if (path / "run.json").exists() and RunFolder(path).in_use():
        raise UserError(asked, f"{data} is a run that trains now", f"end it first: ranks stop {data}")
    remote.check(asked)
    is_folder = path.is_dir()
    staging = join(folder, f".{path.name}.ranks-push")
    final = join(folder, path.name)
    num_bytes = sum(files.values())
    with ProgressBar(num_bytes) as bar:
        try:
            if (path / "run.json").exists():
                _check_not_newer(remote, final, path, asked)
            _make_room(remote, folder or ".", staging, final, num_bytes, asked)
            source = str(path if is_folder else path.parent)
            compare = f"../{path.name}" if is_folder else ".."
            copy = Copy(remote, source, staging, list(files), upload=True, unless_in=compare)

            def send(copy: Copy) -> None:
                copy_files(copy, asked, progress=show_bytes(bar, num_bytes), say=bar.line)

            send(copy)
            bar.line("comparing sha256 sums")
            wanted = local_sums(Path(source), files, asked)
            placed = final if is_folder else (folder or ".")
            if wrong := _differing(remote, staging, placed, wanted, asked):
                bar.line(f"{len(wrong)} of {len(files)} files differ; copying them again")
                send(replace(copy, names=wrong, compare_content=True))
                wanted = local_sums(Path(source), files, asked)
                wrong = _differing(remote, staging, placed, wanted, asked)
            if wrong:
                found = f"{wrong[0]} has another sha256 sum there, after two copies"
                raise UserError(asked, found, "check that nobody writes it; run the same command again")
            remote.run(_moving(staging, placed), asked, place=placed)
        except ConnectionCut as cut:
            do = "run the same command again: it continues where this one ended"
            raise UserError(asked, f"the connection to {remote.host} was cut: {cut}", do) from None
    return Pushed(f"{remote.host}:{final}", len(files), num_bytes)


def _check_not_newer(remote: Remote, final: str, run: Path, asked: str) -> None:
    """Raises UserError where the run there has gone further than the one here: it would be a mixture of both."""
    names = remote.run(f"ls {shlex.quote(final)}/checkpoints 2>/dev/null || true", asked, place=final).decode().split()
    there = max((n for name in names if (n := iteration_of(PurePosixPath(name))) is not None), default=-1)
    here = max((iteration_of(path) or 0 for path in listing(RunFolder(run).checkpoints)), default=-1)
    if there > here:
        found = f"the run there is at iteration {there:,}, the one here at {here:,}"
        raise UserError(asked, found, f"bring it home first: ranks pull {remote.host}:{final}")


def _make_room(remote: Remote, folder: str, staging: str, final: str, num_bytes: int, asked: str) -> None:
    """Make the hidden folder. Raises UserError where the disk there has no room for what is still missing."""
    there = shlex.quote(staging)
    script = f"mkdir -p {there} && {FREE_KB.format(there)} && du -sk {there} | cut -f 1 && "
    script += f"(du -sk {shlex.quote(final)} 2>/dev/null | cut -f 1; true)"
    free_kb, *held_kb = map(int, remote.run(script, asked, place=folder).split())
    needed = num_bytes - 1024 * sum(held_kb)
    if needed > 1024 * free_kb:
        found = f"{needed / 2**30:.1f} GiB are still to be copied, and {free_kb / 2**20:.1f} GiB are free"
        raise UserError(asked, f"{found} in {remote.host}:{folder}", "free space there, or name another folder")


def _differing(remote: Remote, staging: str, final: str, wanted: Mapping[str, str], asked: str) -> list[str]:
    """The files that have another sha256 sum there, or none. What was equal before is in the final folder."""
    found = remote.sha256(staging, list(wanted), asked)
    missing = [name for name in wanted if name not in found]
    found |= remote.sha256(final, missing, asked)
    return [name for name, sha256 in wanted.items() if found.get(name) != sha256]


def _moving(staging: str, final: str) -> str:
    """The script that moves the compared files into place, each by one rename."""
    here, there = shlex.quote(staging), shlex.quote(final)
    each = 'for f; do [ ! -d "$0/$f" ] && mkdir -p "$0/$(dirname "$f")" && mv -f "$f" "$0/$f" || exit 1; done'
    return (
        f"here=$(cd {here} && pwd) && if [ -e {there} ]; then "
        f'there=$(cd {there} && pwd) && cd "$here" && find . -type f -exec sh -c {shlex.quote(each)} "$there" {{}} + '
        f'&& rm -rf "$here"; else mv "$here" {there}; fi'
    )
