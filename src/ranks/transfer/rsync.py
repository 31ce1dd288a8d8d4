"""One copy of named files by rsync over ssh, with progress. What an interrupted copy has written stays, and the next
one continues from it.

rsync writes into the files themselves (`--inplace`), so even after SIGKILL nothing is lost. So it must only write into
a folder that nobody takes for the whole.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ranks.die_with_parent import dying_with_this_process
from ranks.errors import UserError
from ranks.progress import ProgressBar, TimeLeft, duration
from ranks.transfer.remote import SSH_FAILED, ConnectionCut, Remote

CUT = {10, 12, 20, 30, 35, SSH_FAILED}
"""Exit codes of rsync after which the same copy may be tried again: socket, stream, signal, timeouts, ssh."""
GONE = {23, 24}
"""Some files were not copied."""
RETRIES_S = (1.0, 2.0, 4.0)
"""Pauses before the copy is tried again."""
IDLE_LIMIT_S = 600
"""rsync gives up where no byte moves for so long: a large file that is compared takes a while."""
PROGRESS = re.compile(rb"\s*([\d,.]+)\s+\d+%")


class FilesGone(Exception):
    """Files that were to be copied are not there any more."""


@dataclass(frozen=True)
class Copy:
    """`names`: below `source`, and the same below `target`; one of the two is a folder there. `unless_in`: files that
    are equal in this folder, relative to `target`, are not copied."""

    remote: Remote
    source: str
    target: str
    names: Sequence[str]
    upload: bool
    unless_in: str | None = None
    compare_content: bool = False
    """Compare files by content and not by size and time."""

    def argv(self, names_file: str) -> list[str]:
        """The command line of rsync. `names_file`: holds the names, each ended by a NUL."""
        there = f"{self.remote.rsync_host}:"
        source, target = (self.source, there + self.target) if self.upload else (there + self.source, self.target)
        return [
            "rsync",
            *("--times", "--copy-links", "--inplace", "--protect-args", f"--timeout={IDLE_LIMIT_S}"),
            *(f"--files-from={names_file}", "--from0", "--info=progress2", "--no-human-readable", "--outbuf=Line"),
            *([f"--compare-dest={self.unless_in}"] if self.unless_in is not None else []),
            *(["--checksum"] if self.compare_content else []),
            *("--rsh", shlex.join(self.remote.ssh)),
            "--",
            source.rstrip("/") + "/",
            target.rstrip("/") + "/",
        ]


def copy_files(
    copy: Copy,
    asked: str,
    *,
    progress: Callable[[int], None],
    say: Callable[[str], None],
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Copy, and try again after a cut connection. `progress`: gets the bytes that are there; `say`: one line. Raises
    UserError, FilesGone."""
    for pause_s in (*RETRIES_S, None):
        try:
            return _once(copy, asked, progress)
        except ConnectionCut as cut:
            if pause_s is None:
                do = "run the same command again: it continues where this one ended"
                raise UserError(asked, f"the connection to {copy.remote.host} was cut: {cut}", do) from None
            say(f"the connection was cut ({cut}); trying again in {pause_s:g} s")
            sleep(pause_s)


def _once(copy: Copy, asked: str, progress: Callable[[int], None]) -> None:
    with tempfile.NamedTemporaryFile() as names, tempfile.TemporaryFile() as errors:
        names.write(b"".join(os.fsencode(name) + b"\0" for name in copy.names))
        names.flush()
        argv = found_and_dying_with_us(copy.argv(names.name))
        process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors)
        assert process.stdout is not None
        try:
            while block := os.read(process.stdout.fileno(), 1 << 16):
                if found := PROGRESS.findall(block):
                    progress(int(re.sub(rb"\D", b"", found[-1])))
            code = process.wait()
        finally:
            process.kill()
            process.wait()
            process.stdout.close()
        errors.seek(0)
        said = errors.read().decode("utf-8", "replace")
    if code:
        raise failure(code, said, copy, asked)


def found_and_dying_with_us(argv: Sequence[str]) -> list[str]:
    """The command line of a program on PATH that the kernel ends when this process is killed (Linux)."""
    program = shutil.which(argv[0])
    return list(argv) if program is None else dying_with_this_process([program, *argv[1:]])


def failure(code: int, said: str, copy: Copy, asked: str) -> Exception:
    """What to raise for an exit code of rsync and what it wrote to standard error."""
    receiver = copy.remote.host if copy.upload else "this machine"
    line = first_cause(said) or f"exit code {code}"
    again = "then run the same command again: it continues where this one ended"
    if full := re.search(r"(No space left on device|Disk quota exceeded)", said):
        return UserError(asked, f"{full[1]} on {receiver}: {copy.target}", f"free space there, {again}")
    if denied := re.search(r'"([^"\n]*)"[^\n]*: (Permission denied|Read-only file system)', said):
        return UserError(asked, f"{denied[2]}: {denied[1]}", f"choose a folder that you may read or write, {again}")
    if code in GONE and not copy.upload:
        return FilesGone(line)
    if code in CUT or code < 0:
        return ConnectionCut(line)
    if code == 2:
        do = "let its login files (.bashrc) print nothing where there is no terminal"
        return UserError(asked, f"{copy.remote.host} disturbs rsync by other output: {line}", do)
    if code in (1, 4):
        return UserError(asked, f"an rsync without a needed option: {line}", "install rsync 3.1 or newer on both sides")
    return UserError(asked, f"rsync failed: {line}", again.removeprefix("then "))


def first_cause(said: str) -> str:
    """The line of rsync or ssh that says most: the first one."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    return lines[0][:300] if lines else ""


def show_bytes(bar: ProgressBar, total: int) -> Callable[[int], None]:
    """A function that draws how many of `total` bytes are there, and the time left."""
    left = TimeLeft()

    def show(done: int) -> None:
        left.add(done, time.monotonic())
        rest = duration(left.seconds(total))
        bar.update(done, [f"{done / 1e6:,.0f} of {total / 1e6:,.0f} MB", *([f"{rest} left"] if rest else [])])

    return show
