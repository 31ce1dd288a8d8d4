"""DIMACS `.col` files in, `.sol` files out.

`.col`: comment lines `c ...`, one line `p edge N M` (or `p col N M`), then M lines `e U V`, nodes from 1. Some files
list each edge in both directions; M may count lines, or unique edges. `.sol`: `s col K`, then `l VERTEX COLOUR` for
every node, both from 1; or `s UNKNOWN`.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ranks.errors import UserError
from ranks.workloads.graph_coloring.graphs.graph import Graph, Ints
from ranks.workloads.graph_coloring.graphs.source import Source


def parse_dimacs(source: Source) -> Graph:
    """The graph of a `.col` text. Raises UserError."""
    n = m = None
    header_line = num_loops = 0
    pairs: list[tuple[int, int]] = []
    for number, words in source.lines():
        kind = words[0]
        if kind == "p":
            if n is not None:
                source.refuse(number, f"a second p line (the first is line {header_line})", "keep one of the two")
            n, m = _header(source, number, words)
            header_line = number
        elif kind == "e":
            if n is None:
                source.refuse(number, "an edge before the p line", "put 'p edge NODES EDGES' above the edges")
            u, v = _edge(source, number, words, n)
            if u == v:
                source.meet_self_loop(number, u)
                num_loops += 1
            else:
                pairs.append((u - 1, v - 1))
        # comments; node, dimension and parameter lines of the format: no edges
        elif not kind.startswith("c") and kind not in ("n", "d", "v", "x"):
            source.refuse(number, f"a line that begins with '{kind[:20]}'", "lines begin with c, p, e or n")
    if n is None or m is None:
        source.refuse(None, "no p line", "put 'p edge NODES EDGES' above the edges")
    graph = source.graph(n, pairs, num_loops)
    # M may count lines, unique edges, or both directions of each edge, with or without the self-loops
    allowed = {len(pairs), graph.num_edges, 2 * graph.num_edges}
    if not allowed & {m, m - num_loops, m - 2 * num_loops}:
        loops = f" and {num_loops} self-loops" if num_loops else ""
        source.refuse(
            header_line,
            f"{m} edges are promised, the file has {len(pairs)} edge lines{loops}, {graph.num_edges} unique edges",
            "the file is cut short or its p line is wrong: fetch it again, or correct the p line",
        )
    return graph


def _header(source: Source, number: int, words: list[str]) -> tuple[int, int]:
    if len(words) != 4 or words[1] not in ("edge", "edges", "col"):
        source.refuse(number, f"a p line that reads '{' '.join(words)[:60]}'", "write it as 'p edge NODES EDGES'")
    n, m = (source.integer(number, word) for word in words[2:])
    if n < 0 or m < 0:
        source.refuse(number, "a negative size", "write it as 'p edge NODES EDGES'")
    source.check_size(number, n, m)
    return n, m


def _edge(source: Source, number: int, words: list[str], n: int) -> tuple[int, int]:
    if len(words) != 3:
        source.refuse(number, f"an edge line with {len(words) - 1} numbers", "write it as 'e U V'")
    u, v = (source.integer(number, word) for word in words[1:])
    for vertex in (u, v):
        if not 1 <= vertex <= n:
            source.refuse(number, f"vertex {vertex} of a graph with vertices 1..{n}", "vertices count from 1")
    return u, v


def sol_text(colours_N: Ints | None, comments: Sequence[str] = ()) -> str:
    """Colours int64[N] (any numbers, renamed to 1..K in order of first use) as a .sol file, or `s UNKNOWN` for none."""
    lines = [f"c {line}" for comment in comments for line in comment.splitlines()]
    if colours_N is None:
        lines.append("s UNKNOWN")
    else:
        name: dict[int, int] = {}
        rows = [f"l {v} {name.setdefault(c, len(name) + 1)}" for v, c in enumerate(colours_N.tolist(), start=1)]
        lines += [f"s col {len(name)}", *rows]
    return "\n".join(lines) + "\n"


def write_sol(path: str | Path, colours_N: Ints | None, comments: Sequence[str] = ()) -> None:
    """Writes `sol_text` to a file. Raises UserError where it cannot be written."""
    try:
        Path(path).write_text(sol_text(colours_N, comments), encoding="utf-8")
    except OSError as error:
        raise UserError(f"--out {path}", error.strerror or str(error), "give a path that can be written") from None
