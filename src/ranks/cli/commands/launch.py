"""`ranks launch`: run a script that was written for torchrun."""

from __future__ import annotations

import ast
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from ranks.bounded_file import open_file
from ranks.cli.flags.advice import LAUNCH_ADVICE
from ranks.cli.flags.parse import parse
from ranks.engine.config import HANG_TIMEOUT, hang_timeout_s, time_limit
from ranks.errors import UserError
from ranks.workloads import WORKLOADS

PROG = "ranks launch"
WORKLOAD_PARTS = {"Config", "build", "train"}
"""Names that a workload file defines; `ranks train` calls them."""


@dataclass(frozen=True)
class LaunchFlags:
    """Run a script that was written for torchrun: ranks launch [FLAGS] SCRIPT ARGS...

    If a rank fails, all ranks are restarted. No process is left over at the end, and only loopback
    ports are opened."""

    gpus: str = "all"
    """all, none, how many (2), or which: a list has a comma (0,2 or 3,) and counts inside
    CUDA_VISIBLE_DEVICES."""
    ranks: int | None = None
    """Number of processes; by default one per GPU, or on the CPU one per core, at most 8."""
    max_restarts: int = 3
    """How often to start again after a failure. Two starts that fail at once with the same error
    end it earlier."""
    hang_timeout: str | None = HANG_TIMEOUT
    """A training step without progress for this long is a hang, where the script uses `ranks`. none:
    no hang is noticed."""
    on_hang: Literal["restart", "report"] = "restart"
    """What follows when a rank hangs: start all ranks again, or only report it."""
    stop_grace: str = "60s"
    """How long ranks without progress may delay a stop by a signal."""


def launch(argv: Sequence[str]) -> int:
    """Separate the flags of `ranks launch` from those of the script, then run it. Raises UserError."""
    num_own = before_script(argv)
    flags = parse(LaunchFlags, argv[:num_own], prog=PROG, advice=LAUNCH_ADVICE)
    if num_own == len(argv):
        raise UserError(PROG, "no script was named", "write it after the flags: ranks launch --ranks 2 train.py")
    script, rest = argv[num_own], argv[num_own + 1 :]
    if is_workload(script):
        do = shlex.join(["ranks", "train", script, *argv[:num_own], *rest])
        raise UserError(f"{PROG} {script}", "that is a workload, not a script for torchrun", f"train it: {do}")
    from ranks.launch.script import launch_script
    from ranks.launch.supervision.config import HangRules

    timeout_s, grace_s = hang_timeout_s(flags.hang_timeout), time_limit(flags.stop_grace, "--stop-grace")
    return launch_script(
        Path(script),
        rest,
        gpus=flags.gpus,
        ranks=flags.ranks,
        max_restarts=flags.max_restarts,
        hangs=HangRules(timeout_s, flags.on_hang, grace_s),
    )


def before_script(argv: Sequence[str]) -> int:
    """The number of arguments before the script: the flags of `ranks launch` and their values."""
    index = 0
    while index < len(argv) and argv[index].startswith("-"):
        has_no_value = "=" in argv[index] or argv[index] in ("-h", "--help")
        index += 1 if has_no_value else 2
    return min(index, len(argv))


def is_workload(script: str) -> bool:
    """Whether this is a workload's name, or a file that defines the parts of one and runs nothing by itself.

    The file is parsed, not imported. A file with `if __name__ == ...` is a script, whatever it defines.
    """
    path = Path(script)
    if not path.is_file():
        return script in WORKLOADS
    with open_file(path, f"{PROG} {script}") as file:
        source = file.read()
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    names: set[str] = set()
    for node in tree.body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            names.add(node.name)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            names.update(alias.asname or alias.name for alias in node.names)
        elif isinstance(node, ast.If) and "__name__" in ast.dump(node.test):
            return False
    return names >= WORKLOAD_PARTS
