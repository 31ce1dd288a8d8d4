"""Reading DIMACS `.col` files and writing `.sol` files.

`.col`: comment lines `c ...`, one line `p edge N M` (or `p col N M`), then M lines `e U V`, nodes
from 1. Some files list each edge in both directions; M may count lines, or unique edges. `.sol`: `s
col K`, then `l VERTEX COLOUR` for every node, both from 1; or `s UNKNOWN` without a colouring.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ranks.errors import UserError
from ranks.workloads.graph_coloring.graphs.graph import Graph, Ints
from ranks.workloads.graph_coloring.graphs.graph_text import GraphText


def parse_dimacs(text: GraphText) -> Graph:
    """The graph of a `.col` file. Raises UserError."""
    n = m = None
    header_line = 0
    edges = text.edges()
    for number, words in text.lines():
        kind = words[0]
        if kind == "p":
            if n is not None:
                text.fail(number, f"a second p line (the first is line {header_line})", "keep one of the two")
            n, m = _header(text, number, words)
            header_line = number
        elif kind == "e":
            if n is None:
                text.fail(number, "an edge before the p line", "write 'p edge NODES EDGES' before the edges")
            u, v = _edge(text, number, words, n)
            edges.add(number, u, v)
        # comments, and the node, dimension and parameter lines of the format, hold no edges
        elif not kind.startswith("c") and kind not in ("n", "d", "v", "x"):
            text.fail(number, f"a line that begins with '{kind[:20]}'", "lines begin with c, p, e or n")
    if n is None or m is None:
        text.fail(None, "no p line", "write 'p edge NODES EDGES' before the edges")
    graph, num_loops = text.graph(n, edges), edges.num_loops
    # M may count lines, unique edges, or both directions of each edge, with or without the
    # self-loops
    allowed = {len(edges), graph.num_edges, 2 * graph.num_edges}
    if not allowed & {m, m - num_loops, m - 2 * num_loops}:
        loops = f" and {num_loops} self-loops" if num_loops else ""
        text.fail(
            header_line,
            f"the p line says {m} edges, the file has {len(edges)} edge lines{loops}, {graph.num_edges} unique edges",
            "the file is cut short or its p line is wrong: download it again, or correct the p line",
        )
    return graph


def _header(text: GraphText, number: int, words: list[str]) -> tuple[int, int]:
    if len(words) != 4 or words[1] not in ("edge", "edges", "col"):
        text.fail(number, f"a p line that reads '{' '.join(words)[:60]}'", "write it as 'p edge NODES EDGES'")
    n, m = (text.integer(number, word) for word in words[2:])
    if n < 0 or m < 0:
        text.fail(number, "a negative size", "write it as 'p edge NODES EDGES'")
    text.check_size(number, n, m)
    return n, m


def _edge(text: GraphText, number: int, words: list[str], n: int) -> tuple[int, int]:
    if len(words) != 3:
        text.fail(number, f"an edge line with {len(words) - 1} numbers", "write it as 'e U V'")
    u, v = (text.integer(number, word) for word in words[1:])
    for vertex in (u, v):
        if not 1 <= vertex <= n:
            text.fail(number, f"vertex {vertex} of a graph with vertices 1..{n}", "vertices count from 1")
    return u, v


def sol_text(colours_N: Ints | None, comments: Sequence[str] = ()) -> str:
    """The text of a .sol file for the colours int64[N]; `s UNKNOWN` for None.

    Colours may be any numbers. They are renumbered 1..K in order of first use.
    """
    lines = [f"c {line}" for comment in comments for line in comment.splitlines()]
    if colours_N is None:
        lines.append("s UNKNOWN")
    else:
        name: dict[int, int] = {}
        rows = [f"l {v} {name.setdefault(c, len(name) + 1)}" for v, c in enumerate(colours_N.tolist(), start=1)]
        lines += [f"s col {len(name)}", *rows]
    return "\n".join(lines) + "\n"


def write_sol(path: str | Path, colours_N: Ints | None, comments: Sequence[str] = ()) -> None:
    """Writes `sol_text` to a file. Raises UserError if it cannot be written."""
    try:
        Path(path).write_text(sol_text(colours_N, comments), encoding="utf-8")
    except OSError as error:
        raise UserError(f"--out {path}", error.strerror or str(error), "give a path that can be written") from None
