"""How kernels are compiled: by Numba, once for each version of our source, with the machine code kept on disk.

Numba looks only at the file in which a cached function stands, so an edit of a function that it calls from another file
would go unseen. Here the folders that hold jitted code form groups that call no other, and the folder of a group's
cache is named by a hash over all its files, and this one: any edit there compiles the group afresh, and processes that
compile at the same time write files of equal content and rename them into place. What a kernel that stands elsewhere
calls (a game of yours, whose rules may lie in any file) is not known, so its machine code is not kept: it is compiled
at each start.

Two traps, both of Numba: a cached function that calls itself crashes the second process that loads it, and uint64 with
int64 silently becomes float64.
"""

from __future__ import annotations

import functools
import hashlib
import inspect
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias, TypeVar, cast

import numba
import numba.core.config
from numba import types

F = TypeVar("F", bound=Callable[..., Any])
SETTINGS: Any = numba.core.config
PACKAGE = Path(__file__).resolve().parent
Group: TypeAlias = tuple[str, ...]
JITTED: tuple[Group, ...] = (
    ("chess/core", "search"),
    ("workloads/graph_coloring/graphs", "workloads/graph_coloring/classical"),
)
"""The folders that hold all jitted code of the package, in groups: what is jitted in one calls nothing outside it."""


@functools.cache
def cache_folder(group: Group) -> Path:
    """Where the machine code of this version of a group is kept: $NUMBA_CACHE_DIR or ~/.cache/ranks, per version."""
    digest = hashlib.sha256(numba.__version__.encode())
    jitted = sorted(path for folder in group for path in (PACKAGE / folder).rglob("*.py"))
    for path in [*jitted, PACKAGE / "jit.py"]:
        digest.update(str(path.relative_to(PACKAGE)).encode() + b"\0" + path.read_bytes())
    given = os.environ.get("NUMBA_CACHE_DIR")
    home = os.environ.get("XDG_CACHE_HOME")
    root = Path(given) if given else (Path(home) if home else Path.home() / ".cache") / "ranks"
    return root / f"kernels-{digest.hexdigest()[:16]}"


def kernel(signature: str | Any, allocates: bool = True) -> Callable[[F], F]:
    """Compile a function at once for one explicit signature, run without the GIL; cached on disk if it is our own.

    With allocates=False it makes no arrays, and does not count references to those that it was given: each count is an
    atomic instruction, and tuples of arrays make many of them.
    """

    def compile_it(function: F) -> F:
        options: dict[str, Any] = {"nogil": True, "error_model": "numpy", "_nrt": allocates}
        group = group_of(Path(inspect.getfile(function)).resolve())
        if group is None:
            return cast(F, numba.njit([signature], **options)(function))
        announce(group)
        before, SETTINGS.CACHE_DIR = SETTINGS.CACHE_DIR, str(cache_folder(group))
        try:
            return cast(F, numba.njit([signature], cache=True, **options)(function))
        finally:
            SETTINGS.CACHE_DIR = before

    return compile_it


def group_of(source: Path) -> Group | None:
    """The group of jitted folders in which a file stands, if it does."""
    return next((group for group in JITTED if any(source.is_relative_to(PACKAGE / folder) for folder in group)), None)


def helper(function: F) -> F:
    """A function that kernels call and Python cannot: it is compiled into them.

    Numba would compile it once for each constant that it is called with; here a constant counts as its plain type.
    """
    options: dict[str, Any] = {
        "nogil": True,
        "error_model": "numpy",
        "no_cpython_wrapper": True,
        "no_cfunc_wrapper": True,
    }
    dispatcher: Any = numba.njit(**options)(function)
    compile_for = dispatcher.compile

    def compile_for_plain_types(kinds: Any) -> Any:
        return compile_for(tuple(types.unliteral(kind) for kind in kinds))

    dispatcher.compile = compile_for_plain_types
    return cast(F, dispatcher)


def part(function: F) -> F:
    """A helper of kernels with allocates=False that always becomes part of its caller: many arguments cost nothing."""
    options: dict[str, Any] = {"nogil": True, "error_model": "numpy", "forceinline": True, "_nrt": False}
    options |= {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    return cast(F, numba.njit(**options)(function))


@functools.cache
def announce(group: Group) -> None:
    """One line on stderr where the first compilation of a group is about to happen, since it takes seconds."""
    if not cache_folder(group).exists():
        print("ranks: compiling the kernels for this processor, once (some seconds)", file=sys.stderr, flush=True)
