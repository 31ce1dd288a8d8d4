"""`ranks watch RUN`: the console view of a run that trains in another terminal, or on another machine."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ranks.cli.flags.parse import Positional, parse
from ranks.engine.files.jsonl import last_rows
from ranks.engine.runs.find_run import find_folder
from ranks.engine.runs.folder import SESSIONS_FILE, RunFolder
from ranks.errors import UserError
from ranks.watch.console import ConsoleView

POLL_S = 0.5
SSH_FAILED = 255


@dataclass(frozen=True)
class WatchFlags:
    """Show the progress of a run until it ends. Ctrl-C ends the view and not the run."""

    run: Positional[str]
    """Its name, the path of its folder, or HOST:RUN for a run on a machine that ssh reaches and that has `ranks`."""
    runs_dir: Path = Path("runs")
    """The folder of the run folders; over ssh below the home folder there, or absolute."""


def watch(argv: Sequence[str]) -> int:
    """Draw the view from the files of the run, as the launcher does."""
    flags = parse(WatchFlags, argv, prog="ranks watch")
    host, colon, name = flags.run.partition(":")
    if colon and host and name and not Path(flags.run).exists():
        return over_ssh(host, name, flags.runs_dir)
    folder = RunFolder(find_folder(flags.run, flags.runs_dir, f"ranks watch {flags.run}"))
    with ConsoleView(folder.path, attach=True):
        while folder.in_use():
            time.sleep(POLL_S)
    last = next(last_rows(folder.path / SESSIONS_FILE), {})
    if last.get("event") != "finished":  # of a finished run the view has shown the summary, or it was over before
        print(f"not running: {last.get('event', 'unknown')} at iteration {last.get('iteration', '?')}")
    return 0


def over_ssh(host: str, run: str, runs_dir: Path) -> int:
    """Run the same command on another machine. Raises UserError where ssh fails."""
    asked = f"ranks watch {host}:{run}"
    if shutil.which("ssh") is None:
        raise UserError(asked, "there is no ssh here", "install an ssh client")
    if host.startswith("-"):
        raise UserError(asked, f"{host} is no host", "write HOST:RUN")
    command = shlex.join(["ranks", "watch", run, "--runs-dir", str(runs_dir)])
    code = subprocess.run(["ssh", "-t", host, command]).returncode
    if code == SSH_FAILED:
        raise UserError(asked, f"ssh {host} failed", f"try it alone: ssh {host} ranks runs")
    return code
