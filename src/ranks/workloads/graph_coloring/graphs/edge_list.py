"""Reading edge lists: two vertex numbers a line, separated by blanks or a comma.

Lines that begin with # or % are comments.

Vertices are numbered from 0 or from 1. No line of the file says which; if a 0 occurs, they are
numbered from 0. Every number up to the largest one is a vertex, even if no line names it.
"""

from __future__ import annotations

from typing import Literal

from ranks.workloads.graph_coloring.graphs.graph import Graph
from ranks.workloads.graph_coloring.graphs.graph_text import GraphText

Base = Literal["auto", 0, 1]
ADVICE = "write two vertex numbers a line; put # before comments and headings"


def parse_edge_list(text: GraphText, base: Base) -> Graph:
    """The graph of an edge list. Prints if vertices are numbered from 0 or 1. Raises UserError."""
    edges = text.edges()
    lowest, highest = 1, 0
    for number, words in text.lines():
        if words[0][0] in "#%":
            continue
        ends = " ".join(words).replace(",", " ").split()
        if len(ends) != 2:
            text.fail(number, f"{len(ends)} words where two vertex numbers are expected", ADVICE)
        u, v = (text.integer(number, word) for word in ends)
        if min(u, v) < (1 if base == 1 else 0):
            text.fail(number, f"vertex {min(u, v)}", "vertices count from 0, or from 1 (--base)")
        lowest, highest = min(lowest, u, v), max(highest, u, v)
        edges.add(number, u, v)
    if not len(edges) and not edges.num_loops:
        text.fail(None, "no edges", ADVICE)
    first = lowest if base == "auto" else base
    why = (
        "given by --base" if base != "auto" else "a 0 occurs" if first == 0 else "no 0 occurs; --base 0 says otherwise"
    )
    shift = "; the .sol file counts from 1" if first == 0 else ""
    print(f"{text.name}: vertices count from {first} ({why}){shift}", flush=True)
    n = highest + 1 - first
    text.check_size(None, n, len(edges))
    return text.graph(n, edges, first)
