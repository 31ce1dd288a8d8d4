"""Reading DIMACS `.col` files, writing `.sol` files.

`.col`: comment lines `c ...`, one line `p edge N M` (or `p col N M`), then M lines `e U V`, nodes from 1. Some files
list each edge in both directions; M may count lines, or unique edges. `.sol`: `s col K`, then `l VERTEX COLOUR` for
every node, both from 1; or `s UNKNOWN`.
"""

from __future__ import annotations

import gzip
import sys
import warnings
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import numpy as np

from ranks.errors import UserError
from ranks.workloads.graph_coloring.graphs import Graph, Ints

READ_BYTES_PER_EDGE = 120
"""Peak memory of reading one edge line (tuple of integers, then arrays), measured with CPython 3.11."""
SOLVE_BYTES_PER_NODE = 400
"""Net state of one node and one colour: the widest layer's float32 values of one round, with room for copies."""
MAX_BYTES = 8 * 2**30
"""Above this a graph is refused before anything is allocated for it."""


@dataclass(frozen=True)
class _Source:
    """A file and how it is called in messages."""

    name: str
    drop_self_loops: bool

    def refuse(self, line: int | None, found: str, do: str) -> NoReturn:
        where = self.name if line is None else f"{self.name}, line {line}"
        raise UserError(f"the graph in {self.name}", f"{where}: {found}", do)


def read_col(path: str | Path, *, drop_self_loops: bool = False) -> Graph:
    """The graph of a `.col` or `.col.gz` file, or of standard input where `path` is '-'. Raises UserError.

    A self-loop cannot be coloured: it is an error, or dropped with a warning under `drop_self_loops`.
    """
    source = _Source("standard input" if str(path) == "-" else str(path), drop_self_loops)
    return _parse(source, _lines(source, path))


def _lines(source: _Source, path: str | Path) -> list[bytes]:
    if str(path) == "-":
        data = sys.stdin.buffer.read()
    else:
        if str(path).endswith((".col.b", ".col.b.gz")):
            source.refuse(None, "binary DIMACS (.col.b), which is not supported", "convert it to .col (bin2asc does)")
        try:
            data = Path(path).read_bytes()
        except OSError as error:
            source.refuse(
                None, error.strerror or str(error), "give a readable .col or .col.gz file, or - for standard input"
            )
    if data[:2] == b"\x1f\x8b":
        try:
            data = gzip.decompress(data)
        except (OSError, EOFError, zlib.error):
            source.refuse(None, "a damaged gzip file", "unpack it by hand to see what is left, or fetch it again")
    if b"\x00" in data[:4096]:
        source.refuse(None, "bytes that are no text", "give a DIMACS .col text file")
    return data.splitlines()


def _parse(source: _Source, lines: Sequence[bytes]) -> Graph:
    n = m = None
    header_line = 0
    pairs: list[tuple[int, int]] = []
    num_loops = 0
    for number, words in _statements(lines):
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
                num_loops += 1
                if not source.drop_self_loops:
                    source.refuse(
                        number,
                        f"a self-loop at vertex {u}, which no colouring can satisfy",
                        "remove the line, or give --drop-self-loops",
                    )
            else:
                pairs.append((u - 1, v - 1))
        elif kind not in ("n", "d", "v", "x"):  # node, dimension and parameter lines of the DIMACS format: no edges
            source.refuse(number, f"a line that begins with '{kind[:20]}'", "lines begin with c, p, e or n")
    if n is None or m is None:
        source.refuse(None, "no p line", "put 'p edge NODES EDGES' above the edges")
    if n == 0:
        source.refuse(header_line, "a graph without vertices", "a graph to colour needs at least one")
    graph = Graph.of(n, np.asarray(pairs, dtype=np.int64))
    loops = "" if not num_loops else f" and {num_loops} self-loops"
    # M may count lines, unique edges, or both directions of each edge, with or without the self-loops
    allowed = {len(pairs), graph.num_edges, 2 * graph.num_edges}
    if not allowed & {m, m - num_loops, m - 2 * num_loops}:
        source.refuse(
            header_line,
            f"{m} edges are promised, the file has {len(pairs)} edge lines{loops}, {graph.num_edges} unique edges",
            "the file is cut short or its p line is wrong: fetch it again, or correct the p line",
        )
    if num_loops:
        warnings.warn(f"{source.name}: {num_loops} self-loop lines dropped", stacklevel=3)
    return graph


def _statements(lines: Sequence[bytes]) -> Iterator[tuple[int, list[str]]]:
    """(line number from 1, words) of the lines that are neither blank nor comments."""
    for number, line in enumerate(lines, start=1):
        words = line.decode("latin-1").split()
        if words and not words[0].startswith("c"):
            yield number, words


def _header(source: _Source, number: int, words: list[str]) -> tuple[int, int]:
    if len(words) != 4 or words[1] not in ("edge", "edges", "col"):
        source.refuse(number, f"a p line that reads '{' '.join(words)[:60]}'", "write it as 'p edge NODES EDGES'")
    n, m = (_integer(source, number, word) for word in words[2:])
    if n < 0 or m < 0:
        source.refuse(number, "a negative size", "write it as 'p edge NODES EDGES'")
    needed = memory_estimate(n, m)
    if needed > MAX_BYTES:
        source.refuse(
            number,
            f"{n:,} vertices, {m:,} edges: about {needed / 2**30:.1f} GiB (limit {MAX_BYTES / 2**30:.0f} GiB)",
            "colour a part of the graph",
        )
    return n, m


def _edge(source: _Source, number: int, words: list[str], n: int) -> tuple[int, int]:
    if len(words) != 3:
        source.refuse(number, f"an edge line with {len(words) - 1} numbers", "write it as 'e U V'")
    u, v = (_integer(source, number, word) for word in words[1:])
    for vertex in (u, v):
        if not 1 <= vertex <= n:
            source.refuse(number, f"vertex {vertex} of a graph with vertices 1..{n}", "vertices count from 1")
    return u, v


def _integer(source: _Source, number: int, word: str) -> int:
    if not (word.isascii() and word.lstrip("-").isdigit() and len(word) < 16):
        source.refuse(number, f"'{word[:20]}' where a number belongs", "write whole numbers")
    return int(word)


def memory_estimate(n: int, m: int, k: int = 3) -> int:
    """Bytes that reading the graph and colouring it with k colours takes at most, from its p line alone."""
    return m * (READ_BYTES_PER_EDGE + 2 * 8 * 4) + n * k * SOLVE_BYTES_PER_NODE


def write_sol(path: str | Path, colours_N: Ints | None, comments: Sequence[str] = ()) -> None:
    """Writes colours int64[N] (any numbers, renamed to 1..K in order of first use), or `s UNKNOWN` for none.

    Raises UserError where the file cannot be written.
    """
    lines = [f"c {line}" for comment in comments for line in comment.splitlines()]
    if colours_N is None:
        lines.append("s UNKNOWN")
    else:
        name: dict[int, int] = {}
        rows = [f"l {v} {name.setdefault(c, len(name) + 1)}" for v, c in enumerate(colours_N.tolist(), start=1)]
        lines += [f"s col {len(name)}", *rows]
    try:
        Path(path).write_text("\n".join(lines) + "\n", encoding="utf-8")
    except OSError as error:
        raise UserError(f"--out {path}", error.strerror or str(error), "give a path that can be written") from None
