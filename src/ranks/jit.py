"""Compilation of kernels by Numba, once for each version of our source, with the machine code cached on disk.

Numba checks only the file of a cached function. It would miss an edit of a function that is called from another file.
Therefore the folders with jitted code form groups that do not call each other, and the name of a group's cache folder
is a hash over all files of the group, this file and splitmix64.py. Any edit there compiles the group again. Processes
that compile at the same time write files of equal content and rename them into place. A kernel outside these folders
(a game of yours, whose rules may be in any file) is not cached: it is compiled at each start.

Two pitfalls of Numba: a cached function that calls itself crashes the second process that loads it, and uint64 combined
with int64 silently becomes float64.
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
from numba import types

from ranks.cache_home import cache_home
from ranks.kernel_cache import KernelCache, usable

F = TypeVar("F", bound=Callable[..., Any])
PACKAGE = Path(__file__).resolve().parent
Group: TypeAlias = tuple[str, ...]
JITTED: tuple[Group, ...] = (
    ("chess/core", "search"),
    ("workloads/graph_coloring/graphs", "workloads/graph_coloring/classical"),
    ("chess/engine", "chess/core"),
)
"""The folders with jitted code, in groups. Jitted code of a group calls nothing of ours outside it, except SHARED.
A folder belongs to the first group that has it; a later group may call its code."""
SHARED = ("jit.py", "kernel_cache.py", "splitmix64.py")
"""Files of the package that jitted code of every group may use."""


@functools.cache
def cache_folder(group: Group) -> Path:
    """The cache folder of this version of a group, in $NUMBA_CACHE_DIR or ~/.cache/ranks."""
    digest = hashlib.sha256(f"{numba.__version__} {' '.join(group)}".encode())
    jitted = sorted(path for folder in group for path in (PACKAGE / folder).rglob("*.py"))
    for path in [*jitted, *(PACKAGE / name for name in SHARED)]:
        digest.update(str(path.relative_to(PACKAGE)).encode() + b"\0" + path.read_bytes())
    given = os.environ.get("NUMBA_CACHE_DIR")
    root = Path(given) if given else cache_home() / "ranks"
    return root / f"kernels-{digest.hexdigest()[:16]}"


def kernel(signature: str | Any, allocates: bool = True, parallel: bool = False) -> Callable[[F], F]:
    """Compile a function now, for one explicit signature, to run without the GIL; cached on disk if it is our own.

    With allocates=False it must create no arrays, and it does not count references to its arguments: each count is an
    atomic instruction, and tuples of arrays need many of them. With parallel=True Numba's threads share the passes of
    its `prange` loops.
    """

    def compile_it(function: F) -> F:
        group = group_of(Path(inspect.getfile(function)).resolve())
        if group is not None:
            announce(group)
        folder = cache_folder(group) if group is not None else None
        return compiled(function, signature, folder, allocates, parallel)

    return compile_it


def compiled(
    function: F, signature: str | Any, folder: Path | None, allocates: bool = True, parallel: bool = False
) -> F:
    """Compile a function for one signature, or load it from the cache in `folder`, when that is given and usable."""
    options: dict[str, Any] = {"nogil": True, "error_model": "numpy", "_nrt": allocates, "parallel": parallel}
    dispatcher: Any = numba.njit(**options)(function)
    if folder is not None and usable(folder):
        dispatcher._cache = KernelCache(function, folder)  # the seam that enable_caching() uses
    dispatcher.compile(signature)
    dispatcher.disable_compile()
    return cast(F, dispatcher)


def group_of(source: Path) -> Group | None:
    """The first group of jitted folders that contains a file, or None."""
    return next((group for group in JITTED if any(source.is_relative_to(PACKAGE / folder) for folder in group)), None)


def helper(function: F) -> F:
    """A function for kernels to call; Python code cannot call it.

    Numba would compile it for each constant argument separately; here a constant counts as its plain type.
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


def inlined(function: F) -> F:
    """A helper for kernels with allocates=False that is always inlined: many arguments cost nothing."""
    options: dict[str, Any] = {"nogil": True, "error_model": "numpy", "forceinline": True, "_nrt": False}
    options |= {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    return cast(F, numba.njit(**options)(function))


@functools.cache
def announce(group: Group) -> None:
    """Print one line on stderr before the first compilation of a group, which takes seconds."""
    if not cache_folder(group).exists():
        print("ranks: compiling the kernels for this processor, once (some seconds)", file=sys.stderr, flush=True)
