"""Reading DIMACS `.sol` files: `s col K`, then `l VERTEX COLOUR` for every vertex, both from 1."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ranks.errors import UserError
from ranks.workloads.graph_coloring.graphs.graph import Ints


def read_sol(path: Path, n: int, flag: str) -> Ints:
    """The colours int64[N] of a `.sol` file for a graph with n vertices; they count from 0.

    The colouring may have conflicts. Raises UserError, which names `flag`.
    """
    asked = f"{flag} {path}"
    advice = "give a file that --out wrote for this graph: a line 'l VERTEX COLOUR' for every vertex"
    colours_N = np.full(n, -1, np.int64)
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(asked, getattr(error, "strerror", None) or "not a text file", advice) from None
    for number, words in enumerate((line.split() for line in lines), start=1):
        if words[:1] != ["l"]:
            continue
        if len(words) != 3 or not (words[1] + words[2]).isdecimal() or not 1 <= int(words[2]) <= n:
            raise UserError(asked, f"line {number} reads '{' '.join(words)[:60]}'", advice)
        vertex = int(words[1])
        if not 1 <= vertex <= n or colours_N[vertex - 1] >= 0:
            found = f"line {number}: vertex {vertex} of a graph with vertices 1..{n}, each once"
            raise UserError(asked, found, advice)
        colours_N[vertex - 1] = int(words[2]) - 1
    missing = np.flatnonzero(colours_N < 0)
    if len(missing):
        raise UserError(asked, f"{len(missing)} of {n} vertices have no colour, vertex {missing[0] + 1} first", advice)
    return colours_N
