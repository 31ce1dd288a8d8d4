"""A user's own graphs: the graph files of a folder, a fifth of them for validation.

Which side a graph is on is told by its hash, so that a graph that lies there twice is used once, and never on both.
"""

from __future__ import annotations

import contextlib
import hashlib
from pathlib import Path

from ranks.errors import UserError
from ranks.workloads.graph_coloring.data.duplicates import weisfeiler_lehman_hash
from ranks.workloads.graph_coloring.graphs.read import graph_files, read_graph

FAMILY = "user"
LEAST_GRAPHS = 5
VALIDATION_SHARE = 0.2
MOST_NAMED = 20
"""Bad files that a message names; the rest are counted."""


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


def split(files: list[Path], folder: Path) -> tuple[list[int], list[int]]:
    """(training, validation): places in `files`, each different graph once.

    The graphs with the lowest hashes are for validation. Raises UserError, which names every file that is no graph.
    """
    asked = f"--data.folder {folder}"
    place_of: dict[int, int] = {}
    bad: list[str] = []
    for place, path in enumerate(files):
        try:
            place_of.setdefault(weisfeiler_lehman_hash(read_graph(path)), place)
        except UserError as error:
            bad.append(error.found)
    if bad:
        more = [f"and {len(bad) - MOST_NAMED} more"] if len(bad) > MOST_NAMED else []
        found = f"{len(bad)} of {len(files)} files cannot be used:\n       " + "\n       ".join(bad[:MOST_NAMED] + more)
        raise UserError(asked, found, "mend these files or take them away; nothing was trained")
    if len(place_of) < LEAST_GRAPHS:
        found = f"{len(place_of)} different graphs in {len(files)} files"
        raise UserError(asked, found, f"give {LEAST_GRAPHS} different graphs or more")
    places = [place_of[key] for key in sorted(place_of)]
    num_validation = max(1, round(VALIDATION_SHARE * len(places)))
    return sorted(places[num_validation:]), sorted(places[:num_validation])
