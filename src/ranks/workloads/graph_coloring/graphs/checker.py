"""An independent checker of colourings, in plain Python.

It shares no code with the solvers or the parsers of graphs.

`problems` takes edges and colours as plain numbers; `check_sol` reads the `.col` and the `.sol`
file itself.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from ranks.bounded_file import open_file


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
    """All faults of a `.sol` file for a `.col` or `.col.gz` file; empty if it is proper.

    A line that cannot be read is a fault too. Raises UserError where a file cannot be read.
    """
    try:
        num_nodes, edges = _graph(col_path)
        k, colour_of = _colouring(sol_path)
    except _Fault as fault:
        return [str(fault)]
    if sorted(colour_of) != list(range(1, num_nodes + 1)):
        return [f"{len(colour_of)} vertices are coloured, the graph has 1..{num_nodes}"]
    if not all(1 <= c <= k for c in colour_of.values()):
        return [f"a colour is outside 1..{k}"]
    pairs = [(u - 1, v - 1) for u, v in edges if u != v]
    return problems(num_nodes, pairs, [colour_of[v] for v in range(1, num_nodes + 1)], k)


class _Fault(Exception):
    """Raised with the fault that keeps a file from being read."""


def _graph(path: str | Path) -> tuple[int, list[tuple[int, int]]]:
    """(number of nodes, edges as pairs of vertices from 1) of a `.col` file. Raises _Fault."""
    num_nodes: int | None = None
    edges: list[tuple[int, int]] = []
    for number, words in _lines(path):
        where = f"{path}, line {number}"
        if words[0] == "p":
            num_nodes = _numbers(where, words, 4)[0]
        elif words[0] == "e":
            u, v = _numbers(where, words, 3)
            if num_nodes is None or not (1 <= u <= num_nodes and 1 <= v <= num_nodes):
                raise _Fault(f"{where}: an edge of a vertex that the p line does not count")
            edges.append((u, v))
    if num_nodes is None:
        raise _Fault(f"{path}: no p line")
    return num_nodes, edges


def _colouring(path: str | Path) -> tuple[int, dict[int, int]]:
    """(number of colours, colour of each vertex from 1) of a `.sol` file. Raises _Fault."""
    status: list[list[str]] = []
    colour_of: dict[int, int] = {}
    k = 0
    for number, words in _lines(path):
        where = f"{path}, line {number}"
        if words[0] == "s":
            status.append(words)
            k = _numbers(where, words, 3)[0] if words[1:2] == ["col"] else 0
        elif words[0] == "l":
            vertex, colour = _numbers(where, words, 3)
            if vertex in colour_of:
                raise _Fault(f"vertex {vertex} is coloured twice")
            colour_of[vertex] = colour
    if len(status) != 1 or status[0][1:2] != ["col"]:
        raise _Fault("the .sol file holds no colouring")
    return k, colour_of


def _numbers(where: str, words: list[str], count: int) -> list[int]:
    """The numbers of a line of `count` words, at its end. Raises _Fault."""
    texts = words[2:] if words[0] in "ps" else words[1:]
    if len(words) != count or not all(text.isascii() and text.isdecimal() and len(text) < 16 for text in texts):
        raise _Fault(f"{where}: '{' '.join(words)[:60]}' cannot be read")
    return [int(text) for text in texts]


def _lines(path: str | Path) -> Iterator[tuple[int, list[str]]]:
    """(line number from 1, words) of every line that is not blank."""
    with open_file(path, f"to check {path}") as file:
        for number, line in enumerate(io.TextIOWrapper(file, "latin-1"), start=1):
            if words := line.split():
                yield number, words
