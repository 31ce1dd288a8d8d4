"""RandCSPBench: random 3- and 5-colouring instances, the network, searches and published methods.

    python -m benchmarks.graph_coloring.randcsp FOLDER [--graphs 400] [--colours 3 5] [--sizes 16 32 64 128 256]
                                          [--part 50] [--minutes M] [--result FILE]

FOLDER holds `3col_published.csv.gz` and `5col_published.csv.gz`: for each test graph the conflicts
that each published method left, joined from the repository ArtLabBocconi/RandCSPBench (MIT;
Skenderi et al. 2026, arXiv 2602.18419). --graphs: the first so many of the 400 graphs of each cell
(number of colours, size, mean degree). Needs networkx and python-sat.

The graphs are made as their authors do: Python's `random` with seed 1, then `gnm_random_graph`. The
sha256 of their edges is in the result. Methods, on one thread: the raw network (12 tries of 2n rounds); the
network with repair (its best colouring, repaired once with at most 2n moves); the same repair of one
random colouring, and of 12; TabuCol and HEAD, each with as many CPU seconds a graph as the raw
network took for it on average over a part of the cell, on the same machine. randcsp/methods.py has the rules.

Every finished part (--part: its graphs) is written to the result, by default the newest
benchmarks/results/coloring_randcsp_DATE.json. A later start, on any machine, continues with the
missing parts, smallest graphs first; it refuses other graphs, weights or methods
(randcsp/cell_file.py). Several starts may fill one file at once. --minutes: begin
no part after so many minutes. Exits with 1 if a published method coloured a graph that is proven
impossible.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Any

import torch

from benchmarks.graph_coloring.randcsp import methods
from benchmarks.graph_coloring.randcsp.cell_file import CellFile, Refused
from benchmarks.graph_coloring.randcsp.instances import (
    PER_CELL,
    SIZES,
    cells,
    graphs_of,
    parts_of,
    read_published,
    sha256_of,
)
from benchmarks.measure import RESULTS, origin
from ranks.workloads.graph_coloring.net.weights_file import LoadedNet, load_net
from ranks.workloads.graph_coloring.solving.proof import sat


def newest_result() -> Path:
    today = RESULTS / f"coloring_randcsp_{time.strftime('%Y-%m-%d')}.json"
    return max(RESULTS.glob("coloring_randcsp_*.json"), default=today)


def identity(net: LoadedNet, graphs: int) -> dict[str, Any]:
    """What all cells of a file have in common."""
    hashes = {"first_graphs_sha256": sha256_of(test for cell in cells() for test in graphs_of(cell, 1))}
    hashes |= {"weights_sha256": net.sha256, "searches_sha256": methods.searches_sha256()}
    return {"graphs": graphs, "methods": methods.VERSION, **hashes}


def described(row: dict[str, Any]) -> str:
    """The line of a cell."""
    kinds = ", ".join(f"{row[kind]} {kind}" for kind in ("colourable", "impossible", "unknown"))
    solved = ", ".join(f"{name} {count}" for name, count in (row["solved"] | row["published"]).items())
    cell = f"k = {row['colours']}, n = {row['nodes']}, degree {row['degree']:g}: {row['graphs']} graphs"
    return f"{cell}, {kinds}, {row['contradictions']} contradictions; solved: {solved}; {cpu_s(row):.1f} CPU s"


def cpu_s(row: dict[str, Any]) -> float:
    return row["decide_cpu_s"] + sum(row["cpu_s"].values())


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--graphs", type=int, default=PER_CELL, help="of each cell")
    parser.add_argument("--colours", type=int, nargs="+", default=[3, 5])
    parser.add_argument("--sizes", type=int, nargs="+", default=list(SIZES))
    parser.add_argument("--part", type=int, default=50, help="graphs of a cell that are written at once")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="begin no part after so many minutes")
    parser.add_argument("--result", type=Path, default=newest_result())
    asked, start_s = parser.parse_args(), time.monotonic()
    if not sat.installed():
        parser.error('python-sat is not installed: pip install ".[graph-coloring-proof]"')
    torch.set_num_threads(1)
    net = load_net(None)
    try:
        file = CellFile.open(asked.result, identity(net, asked.graphs), origin())
    except Refused as error:
        parser.error(str(error))
    print("\n".join(f"{name}: {value}" for name, value in file.identity.items()), flush=True)
    published = {k: read_published(asked.folder, k) for k in asked.colours}
    methods.warm_up(net.model)
    parts = [part for cell in cells(asked.sizes, asked.colours) for part in parts_of(cell, asked.graphs, asked.part)]
    for part in file.missing(parts):
        if time.monotonic() - start_s > 60 * asked.minutes:
            break
        with file.claim(part) as is_ours:
            if is_ours and file.missing([part]):
                row = methods.of_part(net.model, part, published[part.cell.colours])
                file.add(part, row)
                print(described(file.rows.get(part.cell, row)), flush=True)
    hours = sum(map(cpu_s, [*file.rows.values(), *file.parts.values()])) / 3600
    print(f"{len(file.rows)} of {len(cells())} cells, {hours:.2f} CPU hours: {file.path}")
    return 1 if any(row["contradictions"] for row in file.rows.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
