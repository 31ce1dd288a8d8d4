"""Graphs, colourings and prices."""

from __future__ import annotations

import random
from pathlib import Path

from ranks.errors import UserError
from ranks.workloads.graph_coloring.data import dataset_folder
from ranks.workloads.graph_coloring.graphs.checker import check_sol
from ranks.workloads.graph_coloring.graphs.read import read_graph
from ranks.workloads.graph_coloring.solving.bench.best_known import read_best_known
from ranks.workloads.stock_trading.data.read_csv import read_csv
from tests.fuzz.registry import packed, packed_or_plain, parser, texts, written

COL = "c a path\np edge 4 3\ne 1 2\ne 2 3\ne 3 4\n"
DIMACS = texts(COL, "p col 3 2\nn 1 4\ne 1 2\ne 2 1\ne 2 3\ne 3 2\n", "p edges 3 3\ne 1 1\ne 1 2\ne 2 3\n")


@parser("dimacs", DIMACS)
def dimacs(content: bytes, folder: Path) -> None:
    read_graph(written(folder, "g.col", content), drop_self_loops=b"n" in content)


@parser("dimacs-gz", lambda: packed_or_plain(DIMACS()))
def dimacs_gz(content: bytes, folder: Path) -> None:
    read_graph(written(folder, "g.col.gz", packed(content)))


@parser("edge-list", texts("# a\n0 1\n1,2\n2\t3\n", "1 2\n2 3\n", "u v\n1 2\n"))
def edge_list(content: bytes, folder: Path) -> None:
    read_graph(written(folder, "g.edges", content), base=(1 if b"1" in content[:3] else "auto"))


MTX = "%%MatrixMarket matrix coordinate {}\n% a\n3 3 2\n{}"


@parser(
    "matrix-market",
    texts(MTX.format("pattern symmetric", "2 1\n3 2\n"), MTX.format("real general", "2 1 0.5\n3 2 -1e9\n")),
)
def matrix_market(content: bytes, folder: Path) -> None:
    read_graph(written(folder, "g.mtx", content))


GRAPHML = (
    '<?xml version="1.0" encoding="UTF-8"?>\n<graphml xmlns="http://graphml.graphdrawing.org/xmlns">'
    '<graph edgedefault="undirected">\n<node id="a"/><node id="b"><data key="k">1</data></node>'
    '\n<edge source="a" target="b"/>\n</graph></graphml>\n'
)


@parser("graphml", texts(GRAPHML))
def graphml(content: bytes, folder: Path) -> None:
    read_graph(written(folder, "g.graphml", content))


@parser("stdin-graph", lambda: [*DIMACS(), GRAPHML.encode(), b"%%MatrixMarket matrix\n", b"0 1\n"])
def graph_of_unknown_format(content: bytes, folder: Path) -> None:
    read_graph(written(folder, "graph", content))


@parser("sol", texts("c proper\ns col 2\nl 1 1\nl 2 2\nl 3 1\nl 4 2\n", "s UNKNOWN\n"))
def sol(content: bytes, folder: Path) -> None:
    check_sol(written(folder, "g.col", COL.encode()), written(folder, "g.sol", content))
    check_sol(written(folder, "g.col", content), written(folder, "g.sol", b"s col 1\nl 1 1\n"))


@parser("best-known", texts("instance,nodes,edges,best_known,proven\nmyciel3,11,20,4,yes\nqueen5_5,25,160,5,no\n"))
def best_known(content: bytes, folder: Path) -> None:
    read_best_known(written(folder, "best.csv", content))


@parser("dataset-manifest", texts('{"format": 3, "files": {"part-0": {"bytes": 3, "sha256": "00"}}, "sha256": "00"}'))
def dataset_manifest(content: bytes, folder: Path) -> None:
    try:
        written(folder, dataset_folder.MANIFEST, content)
        dataset_folder.read_manifest(folder)
    except dataset_folder.Damaged as damage:
        raise UserError("a data set", str(damage), "build it again") from None


def prices() -> list[bytes]:
    """A wide and a long file of 70 days."""
    rng = random.Random(0)
    wide, long = ["date,KO,PG"], ["date,tic,open,high,low,close,volume,adj close"]
    for day in range(70):
        date = f"{2020 + day // 250}-{1 + day % 250 // 21:02}-{1 + day % 21:02}"
        close = 50 + rng.random()
        wide.append(f"{date},{close:.2f},{2 * close:.4f}")
        long += [f"{date},{name},{close:.4f},{close + 1:.4f},{close - 1:.4f},{close},1e6,{close / 2}" for name in "AB"]
    return ["\n".join(lines).encode() for lines in (wide, long, wide[:4], long[:7])]


@parser("prices", prices)
def price_file(content: bytes, folder: Path) -> None:
    missing = ("error", "drop-stocks", "drop-days")[len(content) % 3]
    read_csv(written(folder, "prices.csv", content), missing=missing)


@parser("prices-gz", lambda: packed_or_plain(prices()))
def compressed_prices(content: bytes, folder: Path) -> None:
    read_csv(written(folder, "prices.csv.gz", packed(content)))
