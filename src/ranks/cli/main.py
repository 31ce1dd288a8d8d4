"""`ranks`: which command was asked, and the exit code of how it ended."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

from ranks import __version__
from ranks.errors import GaveUp, Stopped, UserError

COMMANDS = {
    "train": ("train a workload, or your own file, on all that this machine has", "ranks.cli.train:train"),
    "runs": ("list the runs in runs/", "ranks.cli.runs:runs"),
    "evaluate": ("evaluate a run's model on its workload's held-out data", "ranks.cli.evaluate:evaluate"),
    "export": ("write a run's model as safetensors that plain PyTorch loads", "ranks.cli.export:export"),
    "fingerprint": ("one line that is equal only for equal training states", "ranks.cli.fingerprint:fingerprint"),
    "new": ("write a small workload of your own, in one file", "ranks.cli.new:new"),
    "launch": ("run any torchrun script under our supervision", "ranks.cli.launch:launch"),
    "prove": ("prove same-run, survive or table for a workload", "ranks.cli.prove:prove"),
    "demo": ("train, evaluate, export, solve and draw, in about five minutes", "ranks.cli.demo:demo"),
}


def entry() -> None:
    """The console script. Before a run takes over its signals, SIGTERM ends the process with 143 as it does later."""
    signal.signal(signal.SIGTERM, lambda signum, frame: sys.exit(128 + signum))
    sys.exit(main(sys.argv[1:]))


def main(argv: Sequence[str]) -> int:
    """Carry out one command line. 0 done, 1 failed, 2 bad input, 3 gave up, 128 + signal stopped after a save."""
    try:
        return dispatch(list(argv))
    except UserError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    except GaveUp as end:
        print(f"gave up: {end}", file=sys.stderr)
        return end.exit_code
    except Stopped as end:
        print(end, file=sys.stderr)
        return end.exit_code
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:  # the reader of our output left, as `head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1


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
    from ranks.workloads import WORKLOADS

    if name in WORKLOADS:
        return workload_command(name, rest)
    from ranks.cli.parse import nearest

    raise UserError(f"ranks {name}", "no such command", nearest(name, [*COMMANDS, *WORKLOADS], "see ranks --help"))


def workload_command(workload: str, argv: list[str]) -> int:
    """`ranks graph-coloring solve ...`: a command of the workload's own table."""
    from ranks.cli.parse import call, nearest
    from ranks.workloads import load

    commands: dict[str, str] = getattr(load(workload), "COMMANDS", {})
    if not argv or argv[0] in ("-h", "--help"):
        print("\n".join([f"usage: ranks {workload} COMMAND ...", "", *(f"  {name}" for name in commands)]))
        return 0
    if argv[0] not in commands:
        raise UserError(
            f"ranks {workload} {argv[0]}",
            f"{workload} has no such command",
            nearest(argv[0], list(commands), f"see ranks {workload} --help"),
        )
    code = call(find(commands[argv[0]]), argv[1:], prog=f"ranks {workload} {argv[0]}")
    return code if isinstance(code, int) else 0


def find(place: str) -> Callable[..., Any]:
    """'module:function' -> the function."""
    module, function = place.split(":")
    return getattr(import_module(module), function)


def usage() -> str:
    """What `ranks --help` prints."""
    from ranks.workloads import WORKLOADS

    return "\n".join(
        [
            "usage: ranks COMMAND ...",
            "",
            *(f"  {name:<12} {summary}" for name, (summary, _) in COMMANDS.items()),
            "",
            f"workloads: {', '.join(WORKLOADS)}, each with commands of its own (ranks WORKLOAD --help)",
            "help on a command: ranks COMMAND --help, ranks train WORKLOAD --help",
        ]
    )
