"""The text of a graph file, and what all formats share: size limits, self-loops, errors.

Legend: N nodes, P pairs of nodes as listed in the file.
"""

from __future__ import annotations

import codecs
import contextlib
import io
from array import array
from collections.abc import Generator, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn

import numpy as np

from ranks.bounded_file import open_file, open_stdin
from ranks.errors import UserError
from ranks.workloads.graph_coloring.graphs.graph import Graph

READ_BYTES_PER_EDGE = 120
"""Peak memory of reading one edge line into an array, and of sorting the edges."""
SOLVE_BYTES_PER_NODE = 400
"""State of the net for one node and colour: float32 values of the widest layer, with copies."""
MAX_BYTES = 8 * 2**30
"""A graph that needs more memory is rejected before anything is allocated for it."""
CHECK_EVERY = 2**20
"""The memory of the edges read so far is checked each time that so many were read."""


def memory_estimate(n: int, m: int, k: int = 3) -> int:
    """Upper bound of the bytes to read a graph (n nodes, m edges) and colour it with k colours."""
    return m * (READ_BYTES_PER_EDGE + 2 * 8 * 4) + n * k * SOLVE_BYTES_PER_NODE


@dataclass(frozen=True)
class GraphText:
    """The unpacked content of a graph file, to be read once. `name`: how messages call the file."""

    name: str
    content: io.BufferedReader
    drop_self_loops: bool

    @classmethod
    @contextlib.contextmanager
    def open(cls, path: str | Path, drop_self_loops: bool) -> Generator[GraphText]:
        """Opens a file, gzip or plain, or standard input if `path` is '-'. Raises UserError, also while it is read."""
        is_stdin = str(path) == "-"
        name = "standard input" if is_stdin else str(path)
        asked = f"the graph in {name}"
        with open_stdin(asked) if is_stdin else open_file(path, asked) as content:
            text = cls(name, content, drop_self_loops)
            if b"\x00" in text.head()[:4096]:
                text.fail(None, "bytes that are not text", "give a text file: .col, an edge list, .mtx or .graphml")
            if text.head().startswith(codecs.BOM_UTF8):
                content.read(len(codecs.BOM_UTF8))
            yield text

    def head(self) -> bytes:
        """The next bytes of the content, which are read again later."""
        return self.content.peek()

    def lines(self) -> Iterator[tuple[int, list[str]]]:
        """(line number from 1, words) of every line that is not blank."""
        for number, line in enumerate(io.TextIOWrapper(self.content, "latin-1"), start=1):
            words = line.split()
            if words:
                yield number, words

    def fail(self, line: int | None, found: str, do: str) -> NoReturn:
        """Raises UserError: what is wrong in the file, in which line, and what to do."""
        where = self.name if line is None else f"{self.name}, line {line}"
        raise UserError(f"the graph in {self.name}", f"{where}: {found}", do)

    def integer(self, line: int, word: str) -> int:
        """A word as a whole number of at most 15 digits. Raises UserError."""
        if not (word.isascii() and word.removeprefix("-").isdigit() and len(word) < 16):
            self.fail(line, f"'{word[:20]}' where a number is expected", "write whole numbers")
        return int(word)

    def check_self_loop(self, line: int | None, vertex: object) -> None:
        """Raises UserError for a self-loop, unless `drop_self_loops` is set."""
        if not self.drop_self_loops:
            self.fail(
                line,
                f"a self-loop at vertex {vertex}, which no colouring can satisfy",
                "remove the edge, or give --drop-self-loops",
            )

    def check_size(self, line: int | None, n: int, m: int) -> None:
        """Raises UserError for an empty graph, and for one that would not fit into memory."""
        if n == 0:
            self.fail(line, "a graph without vertices", "a graph to colour needs at least one")
        needed = memory_estimate(n, m)
        if needed > MAX_BYTES:
            self.fail(
                line,
                f"{n:,} vertices, {m:,} edges: about {needed / 2**30:.1f} GiB (limit {MAX_BYTES / 2**30:.0f} GiB)",
                "colour a part of the graph",
            )

    def edges(self) -> EdgeLines:
        """No edges yet."""
        return EdgeLines(self)

    def graph(self, n: int, edges: EdgeLines, first: int = 1) -> Graph:
        """The graph of n nodes numbered from `first`. Prints one line if self-loops were dropped."""
        num_loops = edges.num_loops
        if num_loops:
            print(f"{self.name}: {num_loops} self-loop{'s' if num_loops > 1 else ''} dropped", flush=True)
        return Graph.of(n, np.frombuffer(edges.ends, dtype=np.int64) - first)


@dataclass
class EdgeLines:
    """The edges of a graph file as they are read: 16 bytes each."""

    text: GraphText
    ends: array[int] = field(default_factory=lambda: array("q"))
    """Both ends of each edge line, without the self-loops."""
    num_loops: int = 0

    def add(self, line: int | None, u: int, v: int) -> None:
        """Add an edge. Raises UserError for a self-loop that is not dropped, and for more edges than fit into
        memory."""
        if u == v:
            self.text.check_self_loop(line, u)
            self.num_loops += 1
            return
        self.ends.append(u)
        self.ends.append(v)
        if not len(self) % CHECK_EVERY:
            self.text.check_size(line, 1, len(self))

    def __len__(self) -> int:
        return len(self.ends) // 2
