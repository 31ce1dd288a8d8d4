"""`ranks watch [RUN]`: the progress of a run that trains in another terminal, or on another machine: on the console, or
with --serve as a page for a browser."""

from __future__ import annotations

import contextlib
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ranks.cli.flags.parse import Positional, parse
from ranks.cli.on_runs.newest_run import newest_run
from ranks.cli.on_runs.price import check_price
from ranks.engine.files.jsonl import last_rows
from ranks.engine.runs.find_run import find_folder
from ranks.engine.runs.folder import SESSIONS_FILE, RunFolder
from ranks.engine.runs.sessions import newest_state
from ranks.errors import UserError, clean
from ranks.watch.console import ConsoleView
from ranks.watch.run_status import RunStatus
from ranks.watch.sparkline import levels_of

POLL_S = 0.5
SSH_FAILED, NOT_FOUND = 255, 127
"""Exit codes: of ssh itself, and of a shell that does not find the command."""
DEFAULT_PORT = 7007
TENSORBOARD_PORT = 6006


@dataclass(frozen=True)
class WatchFlags:
    """Show the progress of a run until it ends: curves, speed, use of each rank, goodput, cost and events, or with
    --serve a page for a browser. Ctrl-C ends the view, not the run."""

    run: Positional[str | None] = None
    """Its name, the path of its folder, or HOST:RUN for a run on a machine that ssh reaches and that has `ranks`.
    Without it, or with HOST: alone, the newest run."""
    runs_dir: Path = Path("runs")
    """The folder of the run folders; over ssh below the home folder there, or absolute."""
    serve: bool = False
    """Serve a page with the curves of the run on 127.0.0.1, until Ctrl-C. It only reads the run."""
    port: int = DEFAULT_PORT
    """Of the page; 0 for any free one."""
    price: float | None = None
    """What the machine costs an hour; by default what `ranks train --price` said of each session."""
    ssh_host: str | None = None
    """How ssh calls this machine from yours, for the line that shows TensorBoard there. HOST:RUN gives it."""

    def __post_init__(self) -> None:
        if self.port != DEFAULT_PORT and not self.serve:
            found = "it belongs to the page of --serve"
            raise UserError(f"--port {self.port}", found, "add --serve, or omit --port")
        check_price(self.price)
        if not 0 <= self.port <= 65535:
            found = "a port is a number from 0 to 65535"
            raise UserError(f"--port {self.port}", found, "give --port 0 for any free port")


def watch(argv: Sequence[str]) -> int:
    """Draw the view from the files of the run, as the launcher does, or serve the page."""
    flags = parse(WatchFlags, argv, prog="ranks watch")
    host, colon, name = (flags.run or "").partition(":")
    if colon and host and not Path(flags.run or "").exists():
        if flags.serve:
            raise served_there(host, name, flags)
        return over_ssh(host, name, flags)
    if flags.run is None:
        path = newest_run(flags.runs_dir, "ranks watch")
        print(f"{clean(str(path))}: the newest run in {flags.runs_dir}/")
    else:
        path = find_folder(flags.run, flags.runs_dir, f"ranks watch {flags.run}")
    if flags.ssh_host is not None and (path / "tensorboard").is_dir():
        print(tensorboard_line(path, flags.ssh_host), flush=True)
    return serve(path, flags.port, flags.price) if flags.serve else show(path, flags.price)


def show(path: Path, price: float | None) -> int:
    """Draw the view on the console until the run has ended."""
    folder = RunFolder(path)
    status = RunStatus(path, price, levels=levels_of(sys.stdout.encoding))
    with ConsoleView(path, status=status):
        while folder.in_use():
            time.sleep(POLL_S)
    last = newest_state(last_rows(path / SESSIONS_FILE))
    if last.get("event") != "finished":  # of a finished run the view has shown the summary, or it was over before
        print(f"not running: {last.get('event', 'unknown')} at iteration {last.get('iteration', '?')}")
    return 0


def serve(folder: Path, port: int, price: float | None) -> int:
    """Serve the page of a run until Ctrl-C. Raises UserError where the port cannot be had."""
    from ranks.watch.serve.server import PageServer

    with contextlib.suppress(KeyboardInterrupt), PageServer(folder, port, price) as server:
        port = server.server_port
        print(f"the page of {clean(folder.name)}: http://127.0.0.1:{port}/")
        print(f"from another machine: ssh -L {port}:127.0.0.1:{port} HOST, then the same address there")
        print("Ctrl-C ends the page and not the run", flush=True)
        server.serve_forever()
    return 0


def tensorboard_line(run: Path, host: str) -> str:
    """The command that shows the run's TensorBoard files on another machine, through a tunnel."""
    port = str(TENSORBOARD_PORT)
    command = ["tensorboard", "--logdir", str((run / "tensorboard").absolute()), "--host", "127.0.0.1", "--port", port]
    line = tunnel(host, TENSORBOARD_PORT, command)
    return f"TensorBoard, from your machine: {line}, then open http://127.0.0.1:{port}/"


def served_there(host: str, run: str, flags: WatchFlags) -> UserError:
    """The error for HOST:RUN --serve: the page is served on the machine of the run, behind a tunnel."""
    port = flags.port or DEFAULT_PORT
    command = [*command_there(run, flags), "--serve", "--port", str(port)]
    found = "the page is served on the machine that has the run, and on its 127.0.0.1 only"
    do = f"{tunnel(host, port, command)}, then open http://127.0.0.1:{port}/ here"
    return UserError(f"ranks watch {host}:{run} --serve", found, do)


def tunnel(host: str, port: int, command: Sequence[str]) -> str:
    """The ssh command that runs another one there, and brings its port here."""
    return shlex.join(["ssh", "-t", "-L", f"{port}:127.0.0.1:{port}", host, shlex.join(command)])


def command_there(run: str, flags: WatchFlags) -> list[str]:
    """The same command on the machine of the run. `run`: empty for the newest one."""
    price = [] if flags.price is None else ["--price", f"{flags.price:g}"]
    return ["ranks", "watch", *([run] if run else []), "--runs-dir", str(flags.runs_dir), *price]


def over_ssh(host: str, run: str, flags: WatchFlags) -> int:
    """Run the same command on another machine. Raises UserError where ssh fails, or finds no `ranks` there."""
    asked = f"ranks watch {host}:{run}"
    if shutil.which("ssh") is None:
        raise UserError(asked, "there is no ssh here", "install an ssh client")
    if host.startswith("-"):
        raise UserError(asked, f"{host} is no host", "write HOST:RUN")
    command = [*command_there(run, flags), "--ssh-host", host]
    code = subprocess.run(["ssh", "-t", host, shlex.join(command)]).returncode
    if code == SSH_FAILED:
        raise UserError(asked, f"ssh {host} failed", f"try it alone: ssh {host} ranks runs")
    if code == NOT_FOUND:
        do = f"install it, or put it on PATH at the top of ~/.bashrc there, until this works: ssh {host} ranks runs"
        raise UserError(asked, f"ssh finds no command ranks on {host}", do)
    return code
