"""The graphs of a user: the graph files of a folder, a fifth of them for validation.

A graph that occurs twice, edge for edge, is used once. Its Weisfeiler-Lehman hash decides whether a
graph is for training or for validation, so renumbered copies of a graph are never split between the
two.
"""

from __future__ import annotations

import contextlib
import hashlib
from pathlib import Path

from ranks.data.prepared.say import say
from ranks.errors import UserError
from ranks.workloads.graph_coloring.data.weisfeiler_lehman import weisfeiler_lehman_hash
from ranks.workloads.graph_coloring.graphs.graph import Graph
from ranks.workloads.graph_coloring.graphs.read import graph_files, read_graph

FAMILY = "user"
MIN_GRAPHS = 5
VALIDATION_SHARE = 0.2
MAX_NAMED = 20
"""A message names this many files and counts the rest."""


def user_files(folder: Path) -> list[Path]:
    """The graph files of a folder. Raises UserError."""
    asked = f"--data.folder {folder}"
    try:
        files = graph_files(folder)
    except OSError as error:
        raise UserError(asked, f"{folder}: {error.strerror or error}", "give a folder that can be read") from None
    if len(files) < MIN_GRAPHS:
        raise UserError(asked, f"{len(files)} graph files in {folder}", f"give a folder with {MIN_GRAPHS} or more")
    return files


def contents_hash(files: list[Path]) -> str:
    """sha256 of the names and contents of all files. An unreadable file counts as empty."""
    digest = hashlib.sha256()
    for path in files:
        content = b""
        with contextlib.suppress(OSError):
            content = path.read_bytes()
        digest.update(path.name.encode() + b"\0" + hashlib.sha256(content).digest())
    return digest.hexdigest()


def read_user_graph(path: str | Path) -> Graph:
    """The graph of a file, without its self-loops; one printed line counts them. Raises UserError."""
    return read_graph(path, drop_self_loops=True)


def split(files: list[Path], folder: Path) -> tuple[list[int], list[int]]:
    """(training, validation): indices in `files`, each distinct graph once; prints what is skipped.

    Raises UserError that names every file that is no graph.
    """
    asked = f"--data.folder {folder}"
    by_hash: dict[int, dict[bytes, int]] = {}
    bad: list[str] = []
    dropped: list[str] = []
    for index, path in enumerate(files):
        try:
            graph = read_user_graph(path)
        except UserError as error:
            bad.append(error.found)
            continue
        known = by_hash.setdefault(weisfeiler_lehman_hash(graph), {})
        first = known.setdefault(b"%d " % graph.n + graph.edges_E2.tobytes(), index)
        if first != index:
            dropped.append(f"{path.name} is the same graph as {files[first].name}")
    if bad:
        found = f"{len(bad)} of {len(files)} files are no valid graphs:\n       " + "\n       ".join(_first_lines(bad))
        raise UserError(asked, found, "fix these files or remove them; nothing was trained")
    num_graphs = sum(map(len, by_hash.values()))
    if num_graphs < MIN_GRAPHS:
        found = f"{num_graphs} different graphs in {len(files)} files"
        raise UserError(asked, found, f"give {MIN_GRAPHS} different graphs or more")
    for line in _first_lines(dropped):
        say(f"skipped: {line}")
    groups = [sorted(by_hash[key].values()) for key in sorted(by_hash)]
    validation = _for_validation(groups, max(1, round(VALIDATION_SHARE * num_graphs)))
    chosen = set(validation)
    return sorted(index for group in groups for index in group if index not in chosen), validation


def _for_validation(groups: list[list[int]], num: int) -> list[int]:
    """At most `num` graphs: whole groups by ascending hash, or a part of the first large one."""
    chosen: list[int] = []
    for group in groups:
        if len(chosen) + len(group) <= num:
            chosen += group
    if not chosen:
        chosen = groups[0][:num]
        say(f"{len(groups[0])} graphs with the same hash are split between training and validation")
    return sorted(chosen)


def _first_lines(lines: list[str]) -> list[str]:
    """The first MAX_NAMED lines, and the number of the others."""
    more = len(lines) - MAX_NAMED
    return lines[:MAX_NAMED] + ([f"and {more} more"] if more > 0 else [])
