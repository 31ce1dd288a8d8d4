"""Reading a graph from a file of any known format, or from standard input."""

from __future__ import annotations

from pathlib import Path

from ranks.errors import UserError
from ranks.workloads.graph_coloring.graphs.dimacs import parse_dimacs
from ranks.workloads.graph_coloring.graphs.edge_list import Base, parse_edge_list
from ranks.workloads.graph_coloring.graphs.graph import Graph
from ranks.workloads.graph_coloring.graphs.graph_text import GraphText
from ranks.workloads.graph_coloring.graphs.graphml import parse_graphml
from ranks.workloads.graph_coloring.graphs.matrix_market import MAGIC, parse_matrix_market

SUFFIXES = {
    ".col": "DIMACS",
    ".edges": "edge list",
    ".txt": "edge list",
    ".csv": "edge list",
    ".mtx": "MatrixMarket",
    ".graphml": "GraphML",
}
"""The format of a file by its suffix, after a final .gz is removed."""
AMBIGUOUS = (".txt", ".csv")
"""Suffixes of files that may hold something else: read if named, but skipped in a folder."""


def read_graph(path: str | Path, *, drop_self_loops: bool = False, base: Base = "auto") -> Graph:
    """The graph of a file, gzip or plain, or of standard input if `path` is '-'. Raises UserError.

    The format of standard input, and of a file without a suffix, is detected from its first
    statement. A self-loop cannot be coloured: it is an error, unless `drop_self_loops` is set; then
    one printed line counts the dropped ones. `base`: whether the vertices of an edge list are
    numbered from 0 or 1.
    """
    suffix = graph_suffix(path)
    if suffix == ".col.b":
        found, do = "binary DIMACS (.col.b), which is not supported", "convert it to .col (bin2asc does)"
        raise UserError(f"the graph in {path}", f"{path}: {found}", do)
    if suffix and suffix not in SUFFIXES:
        known = f"give one of {', '.join(SUFFIXES)}, also with .gz, or - for standard input"
        raise UserError(f"the graph in {path}", f"{path}: the suffix {suffix}, which is no known graph format", known)
    with GraphText.open(path, drop_self_loops) as text:
        form = SUFFIXES[suffix] if suffix else _detect_format(text)
        if base != "auto" and form != "edge list":
            text.fail(None, f"--base {base} for {form}, which numbers its vertices itself", "leave --base out")
        match form:
            case "DIMACS":
                return parse_dimacs(text)
            case "MatrixMarket":
                return parse_matrix_market(text)
            case "GraphML":
                return parse_graphml(text)
            case _:
                return parse_edge_list(text, base)


def graph_files(folder: Path) -> list[Path]:
    """The graph files of a folder by their suffixes, sorted by name.

    `.txt` and `.csv` may hold anything, so they are skipped.
    """
    known = [*(suffix for suffix in SUFFIXES if suffix not in AMBIGUOUS), ".col.b"]
    return sorted(path for path in folder.iterdir() if path.is_file() and graph_suffix(path) in known)


def graph_suffix(path: str | Path) -> str:
    """The suffix that names the format: '.col' of 'g.col.gz', '.col.b' of 'g.col.b', else ''."""
    suffixes = [suffix.lower() for suffix in Path(path).suffixes]
    if suffixes[-1:] == [".gz"]:
        suffixes.pop()
    return "".join(suffixes[-2:] if suffixes[-2:] == [".col", ".b"] else suffixes[-1:])


def _detect_format(text: GraphText) -> str:
    """The format by the first words of the lines at the head of the content."""
    words = [line.split()[0] for line in text.head().decode("latin-1").splitlines() if not line.isspace() and line]
    if words[:1] == [MAGIC]:
        return "MatrixMarket"
    if words and words[0].startswith("<"):
        return "GraphML"
    statement = next((word for word in words if word[0] not in "#%"), "")
    return "edge list" if statement[:1].isdigit() else "DIMACS"
