"""`ranks`: find the command, run it, and turn how it ended into an exit code."""

from __future__ import annotations

import ast
import atexit
import gc
import os
import sys
import warnings
from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TextIO

from ranks import __version__, sigterm
from ranks.errors import GaveUp, ProcessLost, Stopped, UserError, of_system_limit
from ranks.secrets import hide

COMMANDS = {
    "train": (
        "train a workload, or your own file, on all GPUs of this machine, or on its CPU",
        "ranks.cli.commands.train:train",
    ),
    "runs": ("list the runs in runs/", "ranks.cli.on_runs.runs:runs"),
    "stop": ("save a running run and end it", "ranks.cli.on_runs.stop:stop"),
    "logs": ("print what the ranks of a run have printed", "ranks.cli.on_runs.logs:logs"),
    "compare": ("print the settings and results in which runs differ", "ranks.cli.on_runs.compare:compare"),
    "watch": ("show the progress of a run that trains elsewhere", "ranks.cli.on_runs.watch:watch"),
    "report": ("write one HTML page about a run", "ranks.cli.on_runs.report:report"),
    "evaluate": ("evaluate a run's model on its workload's held-out data", "ranks.cli.commands.evaluate:evaluate"),
    "export": ("write a run's model as safetensors that plain PyTorch loads", "ranks.cli.commands.export:export"),
    "publish": ("upload a run's model to the Hugging Face Hub, verified", "ranks.cli.hub.publish:publish"),
    "fetch": ("download a published model from the hub, verified", "ranks.cli.hub.fetch:fetch"),
    "fingerprint": (
        "a sha256 that is equal only for bit-for-bit identical training states",
        "ranks.cli.commands.fingerprint:fingerprint",
    ),
    "new": ("write a small workload of your own, one file that trains as it is", "ranks.cli.commands.new:new"),
    "doctor": (
        "examine this machine before a run: GPUs, memory, disk, network, limits",
        "ranks.cli.commands.doctor:doctor",
    ),
    "forecast": (
        "what a run will take and cost on 1, 2, 4, ... GPUs",
        "ranks.cli.commands.forecast:forecast",
    ),
    "scale": (
        "measure the speed on 1, 2, 4, ... GPUs, and say what limits it",
        "ranks.cli.commands.scale:scale",
    ),
    "push": ("copy data to another machine, checked by sha256", "ranks.cli.renting.push:push"),
    "pull": ("bring a run home from another machine, verified", "ranks.cli.renting.pull:pull"),
    "submit": (
        "write the file that takes a run to SkyPilot, Modal or Slurm, checked first",
        "ranks.cli.renting.submit:submit",
    ),
    "autodown": (
        "end this rented machine when its run is over, stuck or at its limit",
        "ranks.cli.renting.autodown:autodown",
    ),
    "launch": ("run a script that was written for torchrun", "ranks.cli.commands.launch:launch"),
    "prove": ("prove same-run, survive or table for a workload", "ranks.cli.commands.prove:prove"),
    "selfplay": (
        "print the games that a run of self-play has played",
        "ranks.cli.commands.selfplay:selfplay",
    ),
    "demo": ("train, evaluate and export a model and use it, in about five minutes", "ranks.cli.commands.demo:demo"),
}
COMMAND_GROUPS = {"chess": ("play chess, run matches, rate players (ranks chess --help)", "ranks.chess")}
"""Groups of commands of no workload: name -> (summary, the module with their table COMMANDS)."""


def entry() -> None:
    """The console script."""
    open_closed_streams()
    warnings.showwarning = show_warning
    sigterm.exits_at_once()
    atexit.register(gc.freeze)  # Python's last collection looks at every object of torch, which takes 0.3 s
    sys.exit(main(sys.argv[1:]))


def open_closed_streams() -> None:
    """Open /dev/null for each standard stream that the caller has closed (`>&-`).

    Otherwise the next file would get the descriptor of the stream, and what libraries print would go into it.
    """
    for descriptor, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # gets the lowest free number, which is this one
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(descriptor, mode, closefd=False))


def show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """Show a UserWarning in one line, and other warnings as Python does."""
    if category is UserWarning:
        print(f"warning: {message}", file=file or sys.stderr)
    else:
        print(warnings.formatwarning(message, category, filename, lineno, line), file=file or sys.stderr, end="")


def main(argv: Sequence[str]) -> int:
    """Run one command line. Returns the exit code.

    0: done. 1: failed. 2: bad input. 3: gave up. 128 + signal number: stopped after a save.
    """
    try:
        code = dispatch(list(argv))
        print(end="", flush=True)  # what Python flushes at its end is an error there, where the reader has gone
        return code
    except UserError as error:
        print(hide(str(error)), file=sys.stderr)
        return error.exit_code
    except ProcessLost as lost:  # of a command that is no training: there the launcher starts the ranks again
        print(f"{lost}; run the same command again", file=sys.stderr)
        return 1
    except GaveUp as end:
        print(f"gave up: {end}", file=sys.stderr)
        return end.exit_code
    except Stopped as end:
        print(end, file=sys.stderr)
        return end.exit_code
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:  # the program that reads the output has ended, as `head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as error:
        limit = of_system_limit(error, " ".join(["ranks", *argv]))
        if limit is None:
            raise
        print(limit, file=sys.stderr)
        return limit.exit_code


def dispatch(argv: list[str]) -> int:
    """Find the command and call it with its own arguments."""
    if not argv or argv[0] in ("-h", "--help", "help"):
        print(usage())
        return 0
    if argv[0] == "--version":
        print(f"ranks {__version__}")
        return 0
    name, rest = argv[0], argv[1:]
    if name in COMMANDS:
        command: Callable[[list[str]], int] = find(COMMANDS[name][1])
        return command(rest)
    if name.replace("_", "-").startswith("--local-rank"):
        from ranks.cli.torchrun_words import answer_to_torch_launch

        raise answer_to_torch_launch(argv)
    from ranks.workloads import WORKLOADS

    if name in COMMAND_GROUPS or name in WORKLOADS:
        return inner_command(name, COMMAND_GROUPS[name][1] if name in COMMAND_GROUPS else WORKLOADS[name], rest)
    from ranks.errors import nearest

    raise UserError(
        f"ranks {name}", "no such command", nearest(name, [*COMMANDS, *COMMAND_GROUPS, *WORKLOADS], "see ranks --help")
    )


def inner_command(name: str, module: str, argv: list[str]) -> int:
    """Run a command of a group or a workload, such as `ranks chess perft ...`."""
    from ranks.cli.flags.parse import call
    from ranks.errors import nearest

    commands: dict[str, str] = getattr(import_module(module), "COMMANDS", {})
    if not argv or argv[0] in ("-h", "--help"):
        lines = [f"  {command:<12} {first_line(place)}" for command, place in commands.items()]
        print("\n".join([f"usage: ranks {name} COMMAND ...", "", *lines]))
        return 0
    asked = f"ranks {name} {argv[0]}"
    if argv[0] not in commands:
        raise UserError(
            asked, f"{name} has no such command", nearest(argv[0], list(commands), f"see ranks {name} --help")
        )
    try:
        if name == "chess" or hasattr(import_module(module), "PLAYERS"):
            add_players()
        code = call(find_command(commands[argv[0]], argv[1:]), argv[1:], prog=asked)
    except ModuleNotFoundError as missing:
        if missing.name is None or missing.name.split(".")[0] == "ranks":
            raise
        found = f"the package {missing.name} is not installed"
        raise UserError(asked, found, f"pip install 'ranks[{name}]'") from missing
    return code if isinstance(code, int) else 0


def add_players() -> None:
    """Let commands name the players in the PLAYERS tables of workloads, and the nets of runs."""
    from ranks.chess.commands.players import MODULES
    from ranks.workloads import WORKLOADS

    MODULES[:] = [*WORKLOADS.values(), "ranks.workloads.run_players"]


def first_line(place: str) -> str:
    """The first line of a command's docstring, read without an import of its module."""
    module, function = place.split(":")
    spec = find_spec(module)
    assert spec is not None, place
    assert spec.origin is not None, place
    tree = ast.parse(Path(spec.origin).read_text(encoding="utf-8"))
    (command,) = (node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == function)
    return (ast.get_docstring(command) or "").split("\n")[0]


def find(place: str) -> Callable[..., Any]:
    """'module:function' -> the function."""
    module, function = place.split(":")
    return getattr(import_module(module), function)


def find_command(place: str, argv: Sequence[str]) -> Callable[..., Any]:
    """A command's function; for its help page only the signature, without the packages that the
    command uses."""
    from ranks.cli.flags.outline import outline_function, wants_help

    return (outline_function(place) if wants_help(argv) else None) or find(place)


def usage() -> str:
    """What `ranks --help` prints."""
    from ranks.workloads import WORKLOADS

    return "\n".join(
        [
            "usage: ranks COMMAND ...",
            "",
            *(f"  {name:<12} {summary}" for name, (summary, _) in (COMMANDS | COMMAND_GROUPS).items()),
            "",
            f"workloads: {', '.join(WORKLOADS)} (their commands: ranks WORKLOAD --help)",
            "help on a command: ranks COMMAND --help, ranks train WORKLOAD --help, ranks train ./FILE.py --help",
        ]
    )
