"""An independent checker of colourings, in plain Python.

It shares no code with the solvers or the file readers.

`problems` takes edges and colours as plain numbers; `check_sol` reads the `.col` and the `.sol`
file itself.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterable, Sequence
from pathlib import Path


def problems(
    num_nodes: int, edges: Iterable[Sequence[int]], colours: Sequence[int], max_colours: int | None
) -> list[str]:
    """All faults of a colouring, as messages; empty if it is proper.

    `colours`: one for each of the nodes 0..num_nodes-1. `max_colours`: how many colours are
    allowed, if limited.
    """
    found: list[str] = []
    if len(colours) != num_nodes:
        return [f"{len(colours)} colours for {num_nodes} nodes"]
    for u, v in edges:
        if colours[u] == colours[v]:
            found.append(f"edge {u}-{v}: both ends have colour {colours[u]}")
    used = len(set(colours))
    if max_colours is not None and used > max_colours:
        found.append(f"{used} colours are used, {max_colours} are allowed")
    return found


def check_sol(col_path: str | Path, sol_path: str | Path) -> list[str]:
    """All faults of a `.sol` file for a `.col` or `.col.gz` file; empty if it is proper."""
    opener = gzip.open if str(col_path).endswith(".gz") else open
    with opener(col_path, "rt", encoding="latin-1") as file:
        graph = [line.split() for line in file]
    num_nodes = next(int(words[2]) for words in graph if words[:1] == ["p"])
    edges = [(int(words[1]) - 1, int(words[2]) - 1) for words in graph if words[:1] == ["e"]]
    solution = [line.split() for line in Path(sol_path).read_text(encoding="utf-8").splitlines()]
    status = [words for words in solution if words[:1] == ["s"]]
    if len(status) != 1 or status[0][1] != "col":
        return ["the .sol file holds no colouring"]
    colour_of: dict[int, int] = {}
    for words in solution:
        if words[:1] == ["l"]:
            if int(words[1]) in colour_of:
                return [f"vertex {words[1]} is coloured twice"]
            colour_of[int(words[1])] = int(words[2])
    if sorted(colour_of) != list(range(1, num_nodes + 1)):
        return [f"{len(colour_of)} vertices are coloured, the graph has 1..{num_nodes}"]
    k = int(status[0][2])
    if not all(1 <= c <= k for c in colour_of.values()):
        return [f"a colour is outside 1..{k}"]
    pairs = [(u, v) for u, v in edges if u != v]
    return problems(num_nodes, pairs, [colour_of[v] for v in range(1, num_nodes + 1)], k)
