"""Reading a graph from a file of any format that is known, or from standard input."""

from __future__ import annotations

from pathlib import Path

from ranks.errors import UserError
from ranks.workloads.graph_coloring.graphs.dimacs import parse_dimacs
from ranks.workloads.graph_coloring.graphs.edge_list import Base, parse_edge_list
from ranks.workloads.graph_coloring.graphs.graph import Graph
from ranks.workloads.graph_coloring.graphs.graphml import parse_graphml
from ranks.workloads.graph_coloring.graphs.matrix_market import MARK, parse_matrix_market
from ranks.workloads.graph_coloring.graphs.source import Source

SUFFIXES = {
    ".col": "DIMACS",
    ".edges": "edge list",
    ".txt": "edge list",
    ".csv": "edge list",
    ".mtx": "MatrixMarket",
    ".graphml": "GraphML",
}
"""The format that a file's name tells; a further .gz is left aside."""
AMBIGUOUS = (".txt", ".csv")
"""Endings of files that need not be graphs: read where one is named, left out where a folder is."""


def read_graph(path: str | Path, *, drop_self_loops: bool = False, base: Base = "auto") -> Graph:
    """The graph of a file, packed by gzip or not, or of standard input where `path` is '-'. Raises UserError.

    Standard input, and a file without an ending, is told by its first statement. A self-loop cannot be coloured: it is
    an error, or dropped under `drop_self_loops`, which one printed line says. `base`: what the vertices of an edge list
    count from.
    """
    suffix = ending(path)
    if suffix == ".col.b":
        found, do = "binary DIMACS (.col.b), which is not supported", "convert it to .col (bin2asc does)"
        raise UserError(f"the graph in {path}", f"{path}: {found}", do)
    if suffix and suffix not in SUFFIXES:
        known = f"give one of {', '.join(SUFFIXES)}, packed by gzip or not, or - for standard input"
        raise UserError(f"the graph in {path}", f"{path}: the ending {suffix}, which names no format known here", known)
    source = Source.open(path, drop_self_loops)
    form = SUFFIXES[suffix] if suffix else _told_by_content(source)
    if base != "auto" and form != "edge list":
        source.refuse(None, f"--base {base} for {form}, where vertices have their numbers", "leave --base out")
    match form:
        case "DIMACS":
            return parse_dimacs(source)
        case "MatrixMarket":
            return parse_matrix_market(source)
        case "GraphML":
            return parse_graphml(source)
        case _:
            return parse_edge_list(source, base)


def graph_files(folder: Path) -> list[Path]:
    """The files of a folder that are graphs by their endings, by name; `.txt` and `.csv` may be anything else."""
    known = [*(suffix for suffix in SUFFIXES if suffix not in AMBIGUOUS), ".col.b"]
    return sorted(path for path in folder.iterdir() if path.is_file() and ending(path) in known)


def ending(path: str | Path) -> str:
    """'.col' of 'graph.col' and of 'graph.col.gz', '.col.b' of 'graph.col.b'; '' of '-' and where there is none."""
    suffixes = [suffix.lower() for suffix in Path(path).suffixes]
    if suffixes[-1:] == [".gz"]:
        suffixes.pop()
    return "".join(suffixes[-2:] if suffixes[-2:] == [".col", ".b"] else suffixes[-1:])


def _told_by_content(source: Source) -> str:
    first = next(source.lines(), (0, [""]))[1][0]
    if first == MARK:
        return "MatrixMarket"
    if first.startswith("<"):
        return "GraphML"
    statement = next((words[0] for _, words in source.lines() if words[0][0] not in "#%"), "")
    return "edge list" if statement[:1].isdigit() else "DIMACS"
