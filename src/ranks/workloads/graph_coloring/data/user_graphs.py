"""A user's own graphs: the graph files of a folder, a fifth of them for validation.

A graph that lies there twice, edge for edge, is used once. Which side a graph is on is told by its Weisfeiler-Lehman
hash, so that graphs which it cannot tell apart, such as copies with other node numbers, are on one side.
"""

from __future__ import annotations

import contextlib
import hashlib
from pathlib import Path

from ranks.errors import UserError
from ranks.workloads.graph_coloring.data.duplicates import weisfeiler_lehman_hash
from ranks.workloads.graph_coloring.data.progress import say
from ranks.workloads.graph_coloring.graphs.graph import Graph
from ranks.workloads.graph_coloring.graphs.read import graph_files, read_graph

FAMILY = "user"
LEAST_GRAPHS = 5
VALIDATION_SHARE = 0.2
MOST_NAMED = 20
"""Files that a message names; the rest are counted."""


def user_files(folder: Path) -> list[Path]:
    """The graph files of a folder. Raises UserError."""
    asked = f"--data.folder {folder}"
    try:
        files = graph_files(folder)
    except OSError as error:
        raise UserError(asked, f"{folder}: {error.strerror or error}", "give a folder that can be read") from None
    if len(files) < LEAST_GRAPHS:
        raise UserError(asked, f"{len(files)} graph files in {folder}", f"give a folder with {LEAST_GRAPHS} or more")
    return files


def contents_hash(files: list[Path]) -> str:
    """sha256 over the names and the bytes of all files; what cannot be read is empty here, and named by `split`."""
    digest = hashlib.sha256()
    for path in files:
        content = b""
        with contextlib.suppress(OSError):
            content = path.read_bytes()
        digest.update(path.name.encode() + b"\0" + hashlib.sha256(content).digest())
    return digest.hexdigest()


def read_user_graph(path: str | Path) -> Graph:
    """The graph of a file, without its self-loops, which one printed line counts. Raises UserError."""
    return read_graph(path, drop_self_loops=True)


def split(files: list[Path], folder: Path) -> tuple[list[int], list[int]]:
    """(training, validation): places in `files`, each different graph once; prints what was left out.

    Raises UserError, which names every file that is no graph.
    """
    asked = f"--data.folder {folder}"
    alike: dict[int, dict[bytes, int]] = {}
    bad: list[str] = []
    dropped: list[str] = []
    for place, path in enumerate(files):
        try:
            graph = read_user_graph(path)
        except UserError as error:
            bad.append(error.found)
            continue
        known = alike.setdefault(weisfeiler_lehman_hash(graph), {})
        first = known.setdefault(b"%d " % graph.n + graph.edges_E2.tobytes(), place)
        if first != place:
            dropped.append(f"{path.name} is the same graph as {files[first].name}")
    if bad:
        found = f"{len(bad)} of {len(files)} files cannot be used:\n       " + "\n       ".join(_named(bad))
        raise UserError(asked, found, "mend these files or take them away; nothing was trained")
    num_graphs = sum(map(len, alike.values()))
    if num_graphs < LEAST_GRAPHS:
        found = f"{num_graphs} different graphs in {len(files)} files"
        raise UserError(asked, found, f"give {LEAST_GRAPHS} different graphs or more")
    for line in _named(dropped):
        say(f"left out: {line}")
    groups = [sorted(alike[key].values()) for key in sorted(alike)]
    validation = _for_validation(groups, max(1, round(VALIDATION_SHARE * num_graphs)))
    chosen = set(validation)
    return sorted(place for group in groups for place in group if place not in chosen), validation


def _for_validation(groups: list[list[int]], num: int) -> list[int]:
    """At most `num` graphs, whole groups with the lowest hashes; where each group is larger, a part of the first."""
    chosen: list[int] = []
    for group in groups:
        if len(chosen) + len(group) <= num:
            chosen += group
    if not chosen:
        chosen = groups[0][:num]
        say(f"{len(groups[0])} graphs that a hash cannot tell apart are on both sides of the split")
    return sorted(chosen)


def _named(lines: list[str]) -> list[str]:
    """The first MOST_NAMED lines, and how many more there are."""
    more = len(lines) - MOST_NAMED
    return lines[:MOST_NAMED] + ([f"and {more} more"] if more > 0 else [])
