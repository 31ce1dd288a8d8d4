"""The text of a graph file, and what all formats share: size limits, self-loops, errors.

Legend: N nodes, P pairs of nodes as listed in the file.
"""

from __future__ import annotations

import gzip
import io
import sys
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import numpy as np

from ranks.errors import UserError
from ranks.workloads.graph_coloring.graphs.graph import Graph

READ_BYTES_PER_EDGE = 120
"""Peak memory of reading one edge line (tuple of integers, then arrays), with CPython 3.11."""
SOLVE_BYTES_PER_NODE = 400
"""State of the net for one node and colour: float32 values of the widest layer, with copies."""
MAX_BYTES = 8 * 2**30
"""A graph that needs more memory is rejected before anything is allocated for it."""
MAX_TEXT_BYTES = 2**30
"""A text longer than this holds more edges than `MAX_BYTES` allows."""


def memory_estimate(n: int, m: int, k: int = 3) -> int:
    """Upper bound of the bytes to read a graph (n nodes, m edges) and colour it with k colours."""
    return m * (READ_BYTES_PER_EDGE + 2 * 8 * 4) + n * k * SOLVE_BYTES_PER_NODE


@dataclass(frozen=True)
class GraphText:
    """The decompressed bytes of a graph file. `name`: how messages call the file."""

    name: str
    data: bytes
    drop_self_loops: bool

    @classmethod
    def open(cls, path: str | Path, drop_self_loops: bool) -> GraphText:
        """Reads a file, gzip or plain, or standard input if `path` is '-'. Raises UserError."""
        is_stdin = str(path) == "-"
        unread = cls("standard input" if is_stdin else str(path), b"", drop_self_loops)
        try:
            data = sys.stdin.buffer.read() if is_stdin else Path(path).read_bytes()
        except OSError as error:
            unread.fail(None, error.strerror or str(error), "give a readable file, or - for standard input")
        if data[:2] == b"\x1f\x8b":
            try:
                data = gzip.GzipFile(fileobj=io.BytesIO(data)).read(MAX_TEXT_BYTES + 1)
            except (OSError, EOFError, zlib.error):
                unread.fail(None, "a damaged gzip file", "unpack it by hand to see what is left, or fetch it again")
        if len(data) > MAX_TEXT_BYTES:
            unread.fail(None, f"more than {MAX_TEXT_BYTES / 2**30:g} GiB of text", "colour a part of the graph")
        if b"\x00" in data[:4096]:
            unread.fail(None, "bytes that are not text", "give a text file: .col, an edge list, .mtx or .graphml")
        return cls(unread.name, data.removeprefix(b"\xef\xbb\xbf"), drop_self_loops)

    def lines(self) -> Iterator[tuple[int, list[str]]]:
        """(line number from 1, words) of every line that is not blank."""
        for number, line in enumerate(self.data.splitlines(), start=1):
            words = line.decode("latin-1").split()
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

    def graph(self, n: int, pairs_P2: Sequence[tuple[int, int]], num_loops: int) -> Graph:
        """The graph of pairs of nodes numbered from 0. Prints one line if self-loops were dropped."""
        if num_loops:
            print(f"{self.name}: {num_loops} self-loop{'s' if num_loops > 1 else ''} dropped", flush=True)
        return Graph.of(n, np.asarray(pairs_P2, dtype=np.int64))
