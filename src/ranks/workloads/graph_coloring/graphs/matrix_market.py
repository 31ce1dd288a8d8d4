"""Reading MatrixMarket `.mtx` files: each stored entry of a square sparse matrix is an edge.

The values of the entries are ignored. (U, V) and (V, U) are the same edge; an entry on the diagonal
is a self-loop. Format: Boisvert, Pozo & Remington 1996, "The Matrix Market exchange formats",
NISTIR 5935.
"""

from __future__ import annotations

from ranks.workloads.graph_coloring.graphs.graph import Graph
from ranks.workloads.graph_coloring.graphs.graph_text import GraphText

MAGIC = "%%MatrixMarket"
VALUES = {"pattern": 0, "real": 1, "integer": 1, "complex": 2}
"""How many numbers follow the row and column of an entry."""
HEAD = f"{MAGIC} matrix coordinate pattern|real|integer|complex general|symmetric|skew-symmetric|hermitian"


def parse_matrix_market(text: GraphText) -> Graph:
    """The graph of a `.mtx` file. Raises UserError."""
    lines = text.lines()
    number, head = next(lines, (None, []))
    if not head or head[0].lower() != MAGIC.lower():
        text.fail(number, "no MatrixMarket heading", f"begin with: {HEAD}")
    kind = [word.lower() for word in head[1:]]
    symmetries = ("general", "symmetric", "skew-symmetric", "hermitian")
    if len(kind) != 4 or kind[:2] != ["matrix", "coordinate"] or kind[2] not in VALUES or kind[3] not in symmetries:
        text.fail(number, f"a heading that reads '{' '.join(head)[:80]}'", f"only this is read: {HEAD}")
    n = num_entries = None
    edges = text.edges()
    for number, words in lines:
        if words[0].startswith("%"):
            continue
        if n is None or num_entries is None:
            if len(words) != 3:
                text.fail(number, f"a size line with {len(words)} words", "write it as 'ROWS COLUMNS ENTRIES'")
            n, columns, num_entries = (text.integer(number, word) for word in words)
            if n != columns or min(n, num_entries) < 0:
                text.fail(number, f"a matrix of {n} x {columns}", "an adjacency matrix is square")
            text.check_size(number, n, num_entries)
            continue
        if len(words) != 2 + VALUES[kind[2]]:
            text.fail(number, f"{len(words)} words in an entry of a {kind[2]} matrix", "write ROW COLUMN VALUE")
        u, v = (text.integer(number, word) for word in words[:2])
        for vertex in (u, v):
            if not 1 <= vertex <= n:
                text.fail(number, f"vertex {vertex} of a graph with vertices 1..{n}", "vertices count from 1")
        edges.add(number, u, v)
    if n is None or num_entries is None:
        text.fail(None, "no size line", "write it as 'ROWS COLUMNS ENTRIES'")
    if len(edges) + edges.num_loops != num_entries:
        found = f"the size line says {num_entries} entries, the file has {len(edges) + edges.num_loops}"
        text.fail(None, found, "the file is cut short or its size line is wrong: download it again, or correct it")
    return text.graph(n, edges)
