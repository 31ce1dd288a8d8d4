"""MatrixMarket `.mtx` files: the graph whose edges are the entries stored in a square sparse matrix.

Every stored entry counts, whatever its value; the two triangles are folded into one; an entry on the diagonal is a
self-loop. Format: Boisvert, Pozo & Remington 1996, "The Matrix Market exchange formats", NISTIR 5935.
"""

from __future__ import annotations

from ranks.workloads.graph_coloring.graphs.graph import Graph
from ranks.workloads.graph_coloring.graphs.source import Source

MARK = "%%MatrixMarket"
VALUES = {"pattern": 0, "real": 1, "integer": 1, "complex": 2}
"""Numbers of an entry behind its row and column."""
HEAD = f"{MARK} matrix coordinate pattern|real|integer|complex general|symmetric|skew-symmetric|hermitian"


def parse_matrix_market(source: Source) -> Graph:
    """The graph of a `.mtx` text. Raises UserError."""
    lines = source.lines()
    number, head = next(lines, (None, []))
    if not head or head[0].lower() != MARK.lower():
        source.refuse(number, "no MatrixMarket heading", f"begin with: {HEAD}")
    kind = [word.lower() for word in head[1:]]
    symmetries = ("general", "symmetric", "skew-symmetric", "hermitian")
    if len(kind) != 4 or kind[:2] != ["matrix", "coordinate"] or kind[2] not in VALUES or kind[3] not in symmetries:
        source.refuse(number, f"a heading that reads '{' '.join(head)[:80]}'", f"only this is read: {HEAD}")
    n = promised = None
    pairs: list[tuple[int, int]] = []
    num_loops = 0
    for number, words in lines:
        if words[0].startswith("%"):
            continue
        if n is None or promised is None:
            if len(words) != 3:
                source.refuse(number, f"a size line with {len(words)} words", "write it as 'ROWS COLUMNS ENTRIES'")
            n, columns, promised = (source.integer(number, word) for word in words)
            if n != columns or min(n, promised) < 0:
                source.refuse(number, f"a matrix of {n} x {columns}", "the matrix of a graph is square")
            source.check_size(number, n, promised)
            continue
        if len(words) != 2 + VALUES[kind[2]]:
            source.refuse(number, f"{len(words)} words in an entry of a {kind[2]} matrix", "write ROW COLUMN VALUE")
        u, v = (source.integer(number, word) for word in words[:2])
        for vertex in (u, v):
            if not 1 <= vertex <= n:
                source.refuse(number, f"vertex {vertex} of a graph with vertices 1..{n}", "vertices count from 1")
        if u == v:
            source.meet_self_loop(number, u)
            num_loops += 1
        else:
            pairs.append((u - 1, v - 1))
    if n is None or promised is None:
        source.refuse(None, "no size line", "write it as 'ROWS COLUMNS ENTRIES'")
    if len(pairs) + num_loops != promised:
        found = f"{promised} entries are promised, the file has {len(pairs) + num_loops}"
        source.refuse(None, found, "the file is cut short or its size line is wrong: fetch it again, or correct it")
    return source.graph(n, pairs, num_loops)
