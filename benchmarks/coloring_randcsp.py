"""RandCSPBench: random 3- and 5-colouring instances, the network, searches and published methods.

    python benchmarks/coloring_randcsp.py FOLDER [--graphs 400] [--colours 3 5] [--sizes 16 32 64 128 256]

FOLDER holds `3col_published.csv.gz` and `5col_published.csv.gz`: for each test graph the conflicts
that each published method left, joined from the repository ArtLabBocconi/RandCSPBench (MIT;
Skenderi et al. 2026, arXiv 2602.18419). --graphs: the first so many of the 400 graphs of each size
and degree; all 2 x 20,000 graphs take hours. Needs networkx.

The graphs are made as their authors do: Python's `random` with seed 1, then `gnm_random_graph`. The
sha256 of their edges is printed. Methods, on one thread: the raw network (12 tries of at most 2n
rounds); the network with repair (its best colouring, repaired once with at most 2n moves); the same
repair of one random colouring, and of 12; TabuCol and HEAD, each with as many CPU seconds a graph as
the raw network needs on average for graphs of that size. A graph counts as solved only if the
independent checker finds its colouring proper.

Writes benchmarks/results/coloring_randcsp_DATE.json, also after each size.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import hashlib
import itertools
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import networkx
import numpy as np
import torch
from measure import origin, write_result

from ranks.engine.sharding import rng
from ranks.workloads.graph_coloring.classical.head import head
from ranks.workloads.graph_coloring.classical.repair import repair
from ranks.workloads.graph_coloring.classical.tabucol import tabucol
from ranks.workloads.graph_coloring.graphs.checker import problems
from ranks.workloads.graph_coloring.graphs.graph import Graph, Ints
from ranks.workloads.graph_coloring.net.decode import raw_search
from ranks.workloads.graph_coloring.net.model import ColouringNet
from ranks.workloads.graph_coloring.net.weights_file import load_net
from ranks.workloads.graph_coloring.solving.search.restarts import random_starts, repair_until_proper

SEED, TRIES, PER_CELL, NODES_AT_ONCE = 2028, 12, 400, 6_400
SIZES = (16, 32, 64, 128, 256)
DEGREES = {3: [3.32 + 0.18 * i for i in range(10)], 5: [9.9 + 0.4 * i for i in range(10)]}
PUBLISHED = ("rpi_gnn", "querysat", "sa", "bp", "fms_short", "fms_long")
CPU = torch.device("cpu")


@dataclass(frozen=True)
class TestGraph:
    """`key`: (nodes, edges, id), as in the published tables."""

    key: tuple[int, int, int]
    graph: Graph


def make_graphs(k: int) -> dict[int, list[TestGraph]]:
    """All test graphs of k colours, by size. Every size and degree starts with seed 1 again."""
    made: dict[int, list[TestGraph]] = {}
    for n, degree in itertools.product(SIZES, DEGREES[k]):
        random.seed(1)
        m = round(degree * n / 2)
        for number in range(1, PER_CELL + 1):
            graph = Graph.of(n, list(networkx.gnm_random_graph(n, m).edges()))
            made.setdefault(n, []).append(TestGraph((n, m, number), graph))
    return made


def sha256_of(graphs: dict[int, list[TestGraph]]) -> str:
    digest = hashlib.sha256()
    for test in itertools.chain.from_iterable(graphs.values()):
        digest.update(np.array([*test.key], "<i8").tobytes() + test.graph.edges_E2.astype("<i8").tobytes())
    return digest.hexdigest()


def read_published(folder: Path, k: int) -> dict[tuple[int, int, int], dict[str, int]]:
    """The conflicts that each method left, by graph."""
    with gzip.open(folder / f"{k}col_published.csv.gz", "rt", newline="") as file:
        return {
            (int(row["N"]), int(row["M"]), int(row["id"])): {name: int(float(row[name])) for name in PUBLISHED}
            for row in csv.DictReader(file)
        }


def seed_of(purpose: str, test: TestGraph) -> int:
    return rng.key(SEED, f"{purpose}/{test.key}", 0) & (2**63 - 1)


def tries_of_net(net: ColouringNet, tests: Sequence[TestGraph], k: int, attempt: int) -> list[Ints]:
    """The raw colouring of each graph in one try of 2n rounds."""
    n, found = tests[0].graph.n, list[Ints]()
    for first in range(0, len(tests), size := max(1, NODES_AT_ONCE // n)):
        part = tests[first : first + size]
        items = [(test.key[1] * (PER_CELL + 1) + test.key[2]) for test in part]
        answers = raw_search(
            net,
            [test.graph for test in part],
            k,
            seed=SEED,
            purpose=f"randcsp/{k}/{n}/{attempt}",
            tries=1,
            rounds=2 * n,
            device=CPU,
            items=items,
        )
        found += [answer.colours_N for answer in answers]
    return found


def by_net(net: ColouringNet, tests: Sequence[TestGraph], k: int) -> list[Ints]:
    """The best raw colouring of each graph in TRIES tries, which end at the first proper one."""
    best: dict[int, Ints] = {}
    left = list(range(len(tests)))
    for attempt in range(TRIES):
        if not left:
            break
        for i, colours_N in zip(left, tries_of_net(net, [tests[i] for i in left], k, attempt), strict=True):
            graph = tests[i].graph
            if i not in best or graph.conflicts(colours_N) < graph.conflicts(best[i]):
                best[i] = colours_N
        left = [i for i in left if tests[i].graph.conflicts(best[i])]
    return [best[i] for i in range(len(tests))]


def each(colour: Callable[[TestGraph], Ints]) -> Callable[[Sequence[TestGraph]], list[Ints]]:
    return lambda tests: [colour(test) for test in tests]


def by_repair(k: int, tries: int) -> Callable[[TestGraph], Ints]:
    def colour(test: TestGraph) -> Ints:
        starts = itertools.islice(random_starts(test.graph.n, k, seed_of("random", test)), tries)
        return repair_until_proper(test.graph, k, seed_of("repair", test), starts).colours_N

    return colour


def measured(
    tests: Sequence[TestGraph], k: int, colour: Callable[[Sequence[TestGraph]], list[Ints]]
) -> tuple[dict[str, Any], list[Ints]]:
    """(graphs solved and CPU seconds a graph, the colourings)"""
    start_s = time.process_time()
    colourings = colour(tests)
    cpu_s = (time.process_time() - start_s) / len(tests)
    solved = [
        not problems(test.graph.n, test.graph.edges_E2.tolist(), colours_N.tolist(), k)
        for test, colours_N in zip(tests, colourings, strict=True)
    ]
    return {"solved": sum(solved), "cpu_s": round(cpu_s, 6)}, colourings


def of_size(
    net: ColouringNet, tests: Sequence[TestGraph], k: int, published: dict[tuple[int, int, int], dict[str, int]]
) -> dict[str, Any]:
    """The row of one size: all methods on the same graphs."""
    raw, of_net = measured(tests, k, lambda tests: by_net(net, tests, k))
    limit_s = raw["cpu_s"]

    def repaired(tests: Sequence[TestGraph]) -> list[Ints]:
        pairs = zip(tests, of_net, strict=True)
        return [repair(test.graph, k, colours_N, seed_of("repair", test)).colours_N for test, colours_N in pairs]

    def searched(search: Any) -> Callable[[TestGraph], Ints]:
        def colour(test: TestGraph) -> Ints:
            return search(test.graph, k, seed_of("search", test), max_s=limit_s, clock=time.process_time).colours_N

        return colour

    ours = {f"net, raw, {TRIES} tries of at most 2n rounds": raw}
    for name, colour in {
        "net + repair (at most 2n moves; its CPU seconds only)": repaired,
        "random start, the same repair": each(by_repair(k, 1)),
        f"random start, the same repair, {TRIES} tries": each(by_repair(k, TRIES)),
        "TabuCol, the CPU seconds of the raw net": each(searched(tabucol)),
        "HEAD, the CPU seconds of the raw net": each(searched(head)),
    }.items():
        ours[name], _ = measured(tests, k, colour)
    theirs = {name: {"solved": sum(published[test.key][name] == 0 for test in tests)} for name in PUBLISHED}
    return {"colours": k, "nodes": tests[0].graph.n, "graphs": len(tests), "ours": ours, "published": theirs}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--graphs", type=int, default=PER_CELL, help="of each size and degree")
    parser.add_argument("--colours", type=int, nargs="+", default=[3, 5])
    parser.add_argument("--sizes", type=int, nargs="+", default=list(SIZES))
    asked = parser.parse_args()
    torch.set_num_threads(1)
    net = load_net(None)
    square = TestGraph((4, 4, 0), Graph.of(4, [(0, 1), (1, 2), (2, 3), (0, 3)]))
    by_net(net.model, [square], 2)  # loading does not count
    content: dict[str, Any] = {"origin": origin(), "settings": {**vars(asked), "folder": asked.folder.name}}
    content |= {"weights_sha256": net.sha256, "graphs_sha256": {}, "rows": []}
    for k in asked.colours:
        graphs, published = make_graphs(k), read_published(asked.folder, k)
        content["graphs_sha256"][str(k)] = sha256_of(graphs)
        print(f"{k} colours: {sum(map(len, graphs.values()))} graphs, sha256 {sha256_of(graphs)}", flush=True)
        for n in asked.sizes:
            tests = [test for test in graphs[n] if test.key[2] <= asked.graphs]
            row = of_size(net.model, tests, k, published)
            content["rows"].append(row)
            print(f"k = {k}, n = {n}, {len(tests)} graphs")
            for name, found in (row["ours"] | row["published"]).items():
                seconds = f", {found['cpu_s']:.2g} CPU s a graph" if "cpu_s" in found else ""
                print(f"    {name}: {found['solved']}{seconds}", flush=True)
            path = write_result(f"coloring_randcsp_{time.strftime('%Y-%m-%d')}", content)
    print(f"written: {path}")


if __name__ == "__main__":
    main()
