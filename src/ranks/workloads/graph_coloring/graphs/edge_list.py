"""Edge lists: two vertex numbers a line, parted by blanks or a comma; lines that begin with # or % are comments.

Vertices count from 0 or from 1, which no line of the file says: a 0 anywhere means 0. Every number up to the largest
one is a vertex, also where no line names it.
"""

from __future__ import annotations

from typing import Literal

from ranks.workloads.graph_coloring.graphs.graph import Graph
from ranks.workloads.graph_coloring.graphs.source import Source

Base = Literal["auto", 0, 1]
ADVICE = "write two vertex numbers a line; comments and headings go behind #"


def parse_edge_list(source: Source, base: Base) -> Graph:
    """The graph of an edge list; prints one line that says where its vertices count from. Raises UserError."""
    pairs: list[tuple[int, int]] = []
    num_loops = 0
    lowest, highest = 1, 0
    for number, words in source.lines():
        if words[0][0] in "#%":
            continue
        ends = " ".join(words).replace(",", " ").split()
        if len(ends) != 2:
            source.refuse(number, f"{len(ends)} words where two vertex numbers belong", ADVICE)
        u, v = (source.integer(number, word) for word in ends)
        if min(u, v) < (1 if base == 1 else 0):
            source.refuse(number, f"vertex {min(u, v)}", "vertices count from 0, or from 1 (--base)")
        lowest, highest = min(lowest, u, v), max(highest, u, v)
        if u == v:
            source.meet_self_loop(number, u)
            num_loops += 1
        else:
            pairs.append((u, v))
    if not pairs and not num_loops:
        source.refuse(None, "no edges", ADVICE)
    first = lowest if base == "auto" else base
    why = "as told" if base != "auto" else "a 0 occurs" if first == 0 else "no 0 occurs; --base 0 says otherwise"
    shift = "; the .sol file counts from 1" if first == 0 else ""
    print(f"{source.name}: vertices count from {first} ({why}){shift}", flush=True)
    n = highest + 1 - first
    source.check_size(None, n, len(pairs))
    return source.graph(n, [(u - first, v - first) for u, v in pairs], num_loops)
