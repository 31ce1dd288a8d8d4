"""`ranks logs RUN`: what the ranks of a run have printed."""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path

from ranks.cli.flags.parse import Positional, parse
from ranks.engine.files.regular import DamagedFile, open_regular
from ranks.engine.runs.find_run import find_folder
from ranks.engine.runs.folder import RunFolder
from ranks.errors import UserError, clean

POLL_S = 0.5
TAIL_BYTES = 2**20
"""So much of a log's end is read."""


@dataclass(frozen=True)
class LogsFlags:
    """Print the end of what the ranks of a run have printed."""

    run: Positional[str]
    """Its name, or the path of its folder."""
    rank: int | None = None
    """Only this rank."""
    lines: int = 40
    """Lines of each rank."""
    follow: bool = False
    """Go on as long as the run is running. Needs --rank where there are several."""
    runs_dir: Path = Path("runs")
    """The folder of the run folders."""


def logs(argv: Sequence[str]) -> int:
    """Print the logs of one rank or of all, by rank."""
    flags = parse(LogsFlags, argv, prog="ranks logs")
    asked = f"ranks logs {flags.run}"
    if flags.lines < 1:
        raise UserError(f"--lines {flags.lines}", "at least one line is needed", "give --lines 40")
    folder = RunFolder(find_folder(flags.run, flags.runs_dir, asked))
    found = {rank: path for rank, path in logs_of(folder.path) if flags.rank in (None, rank)}
    if not found:
        ranks = ", ".join(str(rank) for rank, _ in logs_of(folder.path)) or "none"
        which = "" if flags.rank is None else f" of rank {flags.rank}"
        raise UserError(asked, f"{folder.path} has no log{which}; it has those of ranks {ranks}", "name one of them")
    if flags.follow and len(found) > 1:
        raise UserError(f"{asked} --follow", f"{len(found)} ranks have logs", "name one: --rank 0")
    for rank, path in found.items():
        if len(found) > 1:
            print(f"rank {rank} ({path})")
        with opened(path, asked) as file:
            lines = WholeLines()
            newest = deque(lines.add(end_of(file)), flags.lines)
            if not flags.follow:
                newest.extend(lines.rest())
            for line in newest:
                print(line, flush=True)
            if flags.follow:
                follow(folder, file, lines)
    return 0


def logs_of(folder: Path) -> list[tuple[int, Path]]:
    """(rank, log file) of all ranks that have one."""
    names = [(path.stem.removeprefix("rank"), path) for path in (folder / "logs").glob("rank*.log")]
    return sorted((int(rank), path) for rank, path in names if rank.isdecimal())


def opened(path: Path, asked: str) -> BufferedReader:
    """The log, to read. Raises UserError."""
    try:
        return open_regular(path)
    except DamagedFile as damage:
        raise UserError(asked, str(damage), "look at the folder of the run") from damage


def end_of(file: BufferedReader) -> bytes:
    """The end of a log. The next read goes on from there."""
    file.seek(max(0, file.seek(0, os.SEEK_END) - TAIL_BYTES))
    return file.read(TAIL_BYTES)


class WholeLines:
    """Cuts what is read from a log into lines without control characters. A line whose end is not yet written waits."""

    def __init__(self) -> None:
        self._waiting = b""

    def add(self, data: bytes) -> list[str]:
        """The lines that end in these bytes. A carriage return ends one too, as in a progress bar."""
        data = self._waiting + data
        end = max(data.rfind(b"\n"), data.rfind(b"\r", 0, -1)) + 1  # a line feed may follow a last carriage return
        if not end and len(data) > TAIL_BYTES:
            end = len(data)
        self._waiting = data[end:]
        return [clean(line) for line in data[:end].decode(errors="replace").splitlines()]

    def rest(self) -> list[str]:
        """The line that waits, if there is one."""
        rest, self._waiting = self._waiting, b""
        return [clean(line) for line in rest.decode(errors="replace").splitlines()]


def follow(folder: RunFolder, file: BufferedReader, lines: WholeLines) -> None:
    """Print what is added to a log until the run has ended."""
    is_running = True
    while is_running:
        is_running = bool(folder.in_use())
        for line in [*lines.add(file.read()), *([] if is_running else lines.rest())]:
            print(line, flush=True)
        time.sleep(POLL_S if is_running else 0)
