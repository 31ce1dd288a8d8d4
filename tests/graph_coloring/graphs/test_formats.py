"""Reading graph files of each format, and networkx graphs."""

from __future__ import annotations

import gzip
import io
import sys
from pathlib import Path

import networkx as nx
import pytest

from ranks.errors import UserError
from ranks.workloads.graph_coloring.graphs.graph_text import memory_estimate
from ranks.workloads.graph_coloring.graphs.networkx_graphs import from_networkx
from ranks.workloads.graph_coloring.graphs.read import graph_files, read_graph

PATH_OF_3 = "c a path\np edge 3 2\ne 1 2\ne 2 3\n"

GOOD = {
    "plain": (PATH_OF_3, 3, 2),
    "p col": ("p col 3 2\ne 1 2\ne 2 3\n", 3, 2),
    "CRLF": (PATH_OF_3.replace("\n", "\r\n"), 3, 2),
    "blank lines, tabs, no final newline": ("\n p  edge\t3 2\n\n e 1\t2 \ne 3 2", 3, 2),
    "both directions, each counted": ("p edge 3 4\ne 1 2\ne 2 1\ne 2 3\ne 3 2\n", 3, 2),
    "both directions, edges counted once": ("p edge 3 2\ne 1 2\ne 2 1\ne 2 3\ne 3 2\n", 3, 2),
    "each edge once, both directions counted": ("p edge 3 4\ne 1 2\ne 2 3\n", 3, 2),
    "duplicates, lines counted": ("p edge 3 3\ne 1 2\ne 1 2\ne 2 3\n", 3, 2),
    "one vertex": ("p edge 1 0\n", 1, 0),
    "no edges": ("p edge 5 0\n", 5, 0),
    "node lines": ("p edge 3 2\nn 1 4\ne 1 2\ne 2 3\n", 3, 2),
    "comment after the edges": (PATH_OF_3 + "c end\n", 3, 2),
}

BAD = {
    "no p line": ("c nothing\n", "no p line"),
    "empty file": ("", "no p line"),
    "edge before p line": ("e 1 2\np edge 3 1\n", "line 1: an edge before the p line"),
    "two p lines": ("p edge 3 1\np edge 3 1\ne 1 2\n", "line 2: a second p line"),
    "too few edges": ("p edge 3 5\ne 1 2\ne 2 3\n", "line 1: the p line says 5 edges"),
    "too many edges": ("p edge 3 1\ne 1 2\ne 2 3\n", "line 1: the p line says 1 edges"),
    "vertex 0": ("p edge 3 1\ne 0 1\n", "line 2: vertex 0"),
    "vertex above n": ("c\np edge 3 1\ne 1 4\n", "line 3: vertex 4"),
    "negative vertex": ("p edge 3 1\ne -1 2\n", "vertex -1"),
    "self-loop": ("p edge 3 2\ne 1 2\ne 3 3\n", "line 3: a self-loop at vertex 3"),
    "empty graph": ("p edge 0 0\n", "a graph without vertices"),
    "words for numbers": ("p edge 3 1\ne one two\n", "'one' where a number is expected"),
    "a fraction": ("p edge 3 1\ne 1.5 2\n", "'1.5' where a number is expected"),
    "a number too long": ("p edge 99999999999999999999 1\n", "where a number is expected"),
    "three ends": ("p edge 3 1\ne 1 2 3\n", "line 2: an edge line with 3 numbers"),
    "short p line": ("p edge 3\n", "line 1: a p line that reads 'p edge 3'"),
    "another problem": ("p cnf 3 1\n", "a p line that reads"),
    "strange line": ("p edge 3 1\nz 1 2\n", "line 2: a line that begins with 'z'"),
    "too large": ("p edge 1000000 90000000\n", "line 1: 1,000,000 vertices, 90,000,000 edges: about"),
}


@pytest.mark.parametrize("case", GOOD)
@pytest.mark.parametrize("packed", [False, True])
def test_reads(case: str, packed: bool, tmp_path: Path) -> None:
    text, n, num_edges = GOOD[case]
    path = tmp_path / ("g.col.gz" if packed else "g.col")
    path.write_bytes(gzip.compress(text.encode()) if packed else text.encode())
    graph = read_graph(path)
    assert (graph.n, graph.num_edges) == (n, num_edges)


@pytest.mark.parametrize("case", BAD)
def test_bad_files_are_rejected_with_file_and_line(case: str, tmp_path: Path) -> None:
    text, found = BAD[case]
    path = tmp_path / "g.col"
    path.write_text(text)
    with pytest.raises(UserError) as refusal:
        read_graph(path)
    assert found in refusal.value.found
    assert str(path) in refusal.value.found


def test_other_bad_files_are_rejected(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"binary DIMACS"):
        read_graph(tmp_path / "g.col.b")
    with pytest.raises(UserError, match=r"No such file"):
        read_graph(tmp_path / "missing.col")
    with pytest.raises(UserError, match=r"the suffix \.graph, which is no known graph format"):
        read_graph(tmp_path / "metis.graph")
    packed = tmp_path / "g.col.gz"
    packed.write_bytes(gzip.compress(PATH_OF_3.encode())[:-12])
    with pytest.raises(UserError, match=r"damaged gzip"):
        read_graph(packed)
    packed.write_bytes(b"PK\x00\x00")
    with pytest.raises(UserError, match=r"bytes that are not text"):
        read_graph(packed)
    plain = tmp_path / "g.col"
    plain.write_text(PATH_OF_3)
    with pytest.raises(UserError, match=r"--base 0 for DIMACS"):
        read_graph(plain, base=0)


PIPED = {
    "DIMACS": PATH_OF_3,
    "DIMACS, without comments": "p edge 3 2\ne 1 2\ne 2 3\n",
    "edge list": "# a path\n1 2\n2 3\n",
    "MatrixMarket": "%%MatrixMarket matrix coordinate pattern symmetric\n3 3 2\n2 1\n3 2\n",
    "GraphML": "<graphml><graph><node id='a'/><node id='b'/><node id='c'/>"
    "<edge source='a' target='b'/><edge source='c' target='b'/></graph></graphml>",
}


@pytest.mark.parametrize("form", PIPED)
@pytest.mark.parametrize("packed", [False, True])
def test_the_format_of_standard_input_is_detected(form: str, packed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    data = gzip.compress(PIPED[form].encode()) if packed else PIPED[form].encode()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
    graph = read_graph("-")
    assert (graph.n, graph.edges_E2.tolist()) == (3, [[0, 1], [1, 2]])


def test_self_loops_are_dropped_and_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "g.col"
    path.write_text("p edge 3 6\ne 1 2\ne 2 1\ne 2 3\ne 3 2\ne 3 3\ne 3 3\n")
    assert read_graph(path, drop_self_loops=True).num_edges == 2
    assert capsys.readouterr().out == f"{path}: 2 self-loops dropped\n"


def test_a_million_vertices_pass_the_memory_estimate(tmp_path: Path) -> None:
    assert memory_estimate(1_000_000, 1_000) < 2 * 2**30
    path = tmp_path / "g.col"
    path.write_text("p edge 1000000 1\ne 1 1000000\n")
    assert read_graph(path).n == 1_000_000


EDGE_LISTS = {
    "from 1": ("1 2\n2 3\n", 3, "count from 1 (no 0 occurs"),
    "from 0": ("0 1\n1 2\n", 3, "count from 0 (a 0 occurs); the .sol file counts from 1"),
    "commas, comments, a vertex without edges": ("# u,v\n% too\n1,2\n 2 , 4 \r\n2,1\n", 4, "count from 1"),
    "byte order mark": ("\ufeff1 2\n3 2\n", 3, "count from 1"),
}


@pytest.mark.parametrize("case", EDGE_LISTS)
@pytest.mark.parametrize("name", ["g.edges", "g.txt", "g.csv.gz"])
def test_edge_lists_print_their_first_vertex_number(
    case: str, name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text, n, said = EDGE_LISTS[case]
    path = tmp_path / name
    path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    graph = read_graph(path)
    assert (graph.n, graph.num_edges) == (n, 2)
    printed = capsys.readouterr().out
    assert said in printed
    assert printed.count("\n") == 1


def test_the_base_of_an_edge_list_can_be_given(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "g.edges"
    path.write_text("1 2\n2 3\n")
    assert read_graph(path, base=0).n == 4
    assert "count from 0 (given by --base); the .sol file counts from 1" in capsys.readouterr().out
    assert read_graph(path, base=1).n == 3
    path.write_text("0 1\n")
    with pytest.raises(UserError, match=r"line 1: vertex 0"):
        read_graph(path, base=1)


MATRIX = "%%MatrixMarket matrix coordinate {}\n% a comment\n{}"
GOOD_MATRICES = {
    "pattern symmetric": ("3 3 2\n2 1\n3 2\n", 3, 2),
    "real general": ("3 3 4\n1 2 0.5\n2 1 -1e3\n2 3 0\n3 2 1\n", 3, 2),
    "integer skew-symmetric": ("3 3 1\n3 1 7\n", 3, 1),
    "complex hermitian": ("2 2 1\n2 1 0.5 -1\n", 2, 1),
}


@pytest.mark.parametrize("kind", GOOD_MATRICES)
def test_reads_matrices(kind: str, tmp_path: Path) -> None:
    body, n, num_edges = GOOD_MATRICES[kind]
    path = tmp_path / "g.mtx"
    path.write_text(MATRIX.format(kind, body))
    graph = read_graph(path)
    assert (graph.n, graph.num_edges) == (n, num_edges)


def graphml(inner: str) -> str:
    return f'<graphml xmlns="http://graphml.graphdrawing.org/xmlns"><graph>{inner}</graph></graphml>'


BAD_OTHERS = {
    "three numbers.edges": ("1 2\n1 2 3\n", "line 2: 3 words where two vertex numbers are expected"),
    "heading.csv": ("source,target\n1,2\n", "line 1: 'source' where a number is expected"),
    "fraction.txt": ("1 2.5\n", "'2.5' where a number is expected"),
    "negative.edges": ("1 -2\n", "line 1: vertex -2"),
    "loop.edges": ("0 1\n2 2\n", "line 2: a self-loop at vertex 2"),
    "empty.edges": ("# nothing\n", "no edges"),
    "huge.edges": ("1 999999999999\n", "999,999,999,999 vertices"),
    "heading.mtx": ("3 3 1\n2 1\n", "line 1: no MatrixMarket heading"),
    "dense.mtx": ("%%MatrixMarket matrix array real general\n1 1\n0\n", "a heading that reads"),
    "oblong.mtx": (MATRIX.format("pattern general", "3 4 1\n2 1\n"), "line 3: a matrix of 3 x 4"),
    "no size.mtx": (MATRIX.format("pattern general", ""), "no size line"),
    "short size.mtx": (MATRIX.format("pattern general", "3 3\n"), "line 3: a size line with 2 words"),
    "cut.mtx": (MATRIX.format("pattern general", "3 3 2\n2 1\n"), "the size line says 2 entries, the file has 1"),
    "no value.mtx": (MATRIX.format("real general", "3 3 1\n2 1\n"), "line 4: 2 words in an entry of a real matrix"),
    "outside.mtx": (MATRIX.format("pattern general", "3 3 1\n4 1\n"), "line 4: vertex 4"),
    "diagonal.mtx": (MATRIX.format("pattern general", "3 3 1\n2 2\n"), "line 4: a self-loop at vertex 2"),
    "empty.mtx": (MATRIX.format("pattern general", "0 0 0\n"), "a graph without vertices"),
    "cut.graphml": ("<graphml><graph>\n<node id='a'>", "line 2: not well-formed XML"),
    "other.graphml": ("<svg/>", "no graph element"),
    "unknown node.graphml": (graphml("<node id='a'/><edge source='a' target='b'/>"), "an edge of node 'b'"),
    "duplicates.graphml": (graphml("<node id='a'/><node id='a'/>"), "two nodes with one id"),
    "loop.graphml": (graphml("<node id='a'/><edge source='a' target='a'/>"), "a self-loop at vertex a"),
    "hyper.graphml": (graphml("<node id='a'/><hyperedge/>"), "a hyperedge"),
    "two.graphml": ("<graphml><graph/><graph/></graphml>", "more than one graph"),
    "empty.graphml": (graphml(""), "a graph without vertices"),
    "entities.graphml": ('<!DOCTYPE x [<!ENTITY a "aa">]><graphml/>', "a document type (x)"),
}


@pytest.mark.parametrize("name", BAD_OTHERS)
def test_bad_files_of_other_formats_are_rejected_by_name(name: str, tmp_path: Path) -> None:
    text, found = BAD_OTHERS[name]
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(UserError) as refusal:
        read_graph(path)
    assert found in refusal.value.found
    assert str(path) in refusal.value.found


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("g.edges", "1 2\n2 2\n2 3\n"),
        ("g.mtx", MATRIX.format("pattern symmetric", "3 3 3\n2 1\n2 2\n3 2\n")),
        ("g.graphml", graphml("".join(f"<node id='{v}'/><edge source='{v}' target='b'/>" for v in "abc"))),
    ],
)
def test_self_loops_of_other_formats_can_be_dropped(
    name: str, text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / name
    path.write_text(text)
    graph = read_graph(path, drop_self_loops=True)
    assert f"{path}: 1 self-loop dropped\n" in capsys.readouterr().out
    assert graph.edges_E2.tolist() == [[0, 1], [1, 2]]


def test_files_written_by_networkx_are_read(tmp_path: Path) -> None:
    petersen = nx.relabel_nodes(nx.petersen_graph(), {v: f"v{9 - v}" for v in range(10)})
    nx.write_graphml(petersen, tmp_path / "g.graphml")
    nx.write_edgelist(nx.petersen_graph(), tmp_path / "g.edges", data=False)
    expected, names = from_networkx(petersen)
    assert names == [f"v{9 - v}" for v in range(10)]
    for name in ("g.graphml", "g.edges"):
        graph = read_graph(tmp_path / name)
        assert (graph.n, graph.edges_E2.tolist()) == (10, expected.edges_E2.tolist())


def test_from_networkx_merges_edges_and_rejects_self_loops() -> None:
    directed = nx.MultiDiGraph([("b", "a"), ("a", "b"), ("a", "b"), ("a", (1, 2))])
    graph, names = from_networkx(directed)
    assert names == ["b", "a", (1, 2)]
    assert graph.edges_E2.tolist() == [[0, 1], [1, 2]]
    assert from_networkx(nx.empty_graph(1))[0].n == 1
    with pytest.raises(UserError, match=r"a self-loop at node 'a'"):
        from_networkx(nx.Graph([("a", "a")]))
    with pytest.raises(UserError, match=r"a graph without nodes"):
        from_networkx(nx.Graph())
    with pytest.raises(UserError, match=r"found: a list"):
        from_networkx([(0, 1)])


def test_graph_files_are_chosen_by_suffix(tmp_path: Path) -> None:
    for name in ("b.col", "a.mtx.gz", "c.edges", "README.md", "best.csv", "notes.txt", "d.col.b"):
        (tmp_path / name).touch()
    (tmp_path / "folder.col").mkdir()
    assert [path.name for path in graph_files(tmp_path)] == ["a.mtx.gz", "b.col", "c.edges", "d.col.b"]
