"""Debuggers: whether one watches this process, and what `breakpoint()` does in a run."""

from __future__ import annotations

import bdb
import inspect
import os
import sys
from collections.abc import Callable

from ranks.errors import UserError

DEBUGGERS = ("debugpy", "pydevd")
"""Modules of the debuggers of VS Code and PyCharm, which are imported where one of them has started this process."""
COMMANDS = ("pdb", "ipdb", "pudb")
"""`python -m NAME -m ranks ...` is a debugger, also after `continue`, when it follows nothing until an exception."""
TOOLS = 6
"""Numbers of tools that `sys.monitoring` has: debugger, coverage, profiler, optimizer and two others."""
READ_NOTHING = "EOF when reading a line"
"""What `input()` says where nothing can be read."""
FOUND = "a rank runs in a process of its own, without a terminal"
DO = "give --ranks 1 --hang-timeout none: then the run is in the process of the command, and not watched for hangs"


def traced() -> bool:
    """Whether a debugger, a coverage tool or a profiler follows this process. It would not follow a child process."""
    found: list[object] = [sys.gettrace(), sys.getprofile(), *(name for name in DEBUGGERS if name in sys.modules)]
    if "-m" in sys.orig_argv:
        found.append(sys.orig_argv[sys.orig_argv.index("-m") + 1] in COMMANDS)
    if sys.version_info >= (3, 12):
        found += [sys.monitoring.get_tool(number) for number in range(TOOLS)]
    return any(found)


def breakpoint_after(prepare: Callable[[], None]) -> Callable[..., object]:
    """The hook for `breakpoint()` in the process of the command: `prepare` is called before the debugger starts."""
    default = sys.breakpointhook

    def hook(*args: object, **kwargs: object) -> object:
        prepare()
        sys.breakpointhook = default
        if os.environ.get("PYTHONBREAKPOINT"):
            return default(*args, **kwargs)
        import pdb

        frame = inspect.currentframe()
        return pdb.Pdb().set_trace(frame.f_back if frame else None)  # the frame of the caller, not this one

    return hook


def breakpoint_in_a_rank(*args: object, **kwargs: object) -> None:
    """The hook for `breakpoint()` in a rank of our launcher. Raises UserError, unless PYTHONBREAKPOINT=0."""
    frame = inspect.currentframe()
    caller = frame.f_back if frame is not None else None
    if os.environ.get("PYTHONBREAKPOINT") != "0":
        where = f" in {caller.f_code.co_filename}, line {caller.f_lineno}" if caller is not None else ""
        raise UserError(f"breakpoint(){where}", FOUND, DO)


def explained(error: Exception) -> Exception:
    """The exception that ended a rank: another one for a debugger that found no terminal, with a note for `input()`."""
    if isinstance(error, bdb.BdbQuit):
        return UserError("a debugger", FOUND, DO).with_traceback(error.__traceback__)
    if isinstance(error, EOFError) and str(error) == READ_NOTHING:
        error.add_note(f"{FOUND}; {DO}")
    return error
