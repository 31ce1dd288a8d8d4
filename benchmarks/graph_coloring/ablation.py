"""Ablation of graph-coloring: the network with one component removed at a time.

    python -m benchmarks.graph_coloring.ablation      half an hour on 2 cores, and the time to generate the graphs
    python -m benchmarks.graph_coloring.ablation --iterations 40 --graphs 20     a quick check that it works

`ranks train graph-coloring --preset small` trains each variant with the same data, seed and number
of updates. Each variant then colours new hard 3-colourable graphs of 50 and 100 nodes, without
repair (raw) and with the same repair. The budget is equal: for the raw result 768 rounds per graph,
in tries of 64 rounds (6 rounds for the variant without recurrence); for the repaired result 12 more
tries, each with a repair. The last row repairs twelve random colourings: the same number of tries,
far less time.

Writes benchmarks/results/coloring_ablation_DATE.json.
"""

from __future__ import annotations

import argparse
import itertools
import json
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

from benchmarks.measure import environment, origin, write_result
from ranks.engine.files.jsonl import read_rows
from ranks.engine.sharding import rng
from ranks.workloads.graph_coloring.classical.repair import repair
from ranks.workloads.graph_coloring.config import small
from ranks.workloads.graph_coloring.data.families.hard_instances import hard_three_colourable
from ranks.workloads.graph_coloring.graphs.graph import Graph
from ranks.workloads.graph_coloring.net.decode import Noise, raw_search
from ranks.workloads.graph_coloring.net.model import ColouringNet
from ranks.workloads.graph_coloring.net.rows import colour_noise, row_noise
from ranks.workloads.graph_coloring.net.weights_file import load_net
from ranks.workloads.graph_coloring.solving.search.restarts import random_starts, repair_until_proper
from ranks.workloads.graph_coloring.training import build

SEED, PURPOSE, COLOURS, SIZES = 2027, "ablation", 3, (50, 100)
ROUNDS, REPAIRED_TRIES, LAYERS = 768, 12, 6
CPU = torch.device("cpu")


@dataclass(frozen=True)
class Variant:
    """`flags`: of its training; None: not trained. `rounds`: of one try."""

    name: str
    flags: tuple[str, ...] | None
    rounds: int = 64
    noise: Noise = row_noise


VARIANTS = (
    Variant("the net", ()),
    Variant("untrained", None),
    Variant(
        "no recurrence: 6 layers with separate weights",
        (*("--model.layers", str(LAYERS), "--model.rounds", str(LAYERS), "--rounds", str(LAYERS)), "--burn-in", "0"),
        rounds=LAYERS,
    ),
    Variant("supervised by one colouring", ("--colour-loss", "one-colouring")),
    Variant("no random node ids", ("--no-node-ids",), noise=colour_noise),
)


def train(variant: Variant, iterations: int, folder: Path) -> tuple[ColouringNet, dict[str, Any]]:
    """(the trained network, the seconds of its training and its validation metrics)"""
    if variant.flags is None:
        torch.manual_seed(SEED)
        return build(small()).eval(), {}
    command = ["train", "graph-coloring", "--preset", "small", "--iterations", str(iterations), "--ranks", "2"]
    command += ["--threads", "1", "--gpus", "none", "--eval-every", str(iterations), *variant.flags]
    command += ["--name", "run", "--runs-dir", str(folder)]
    start = time.perf_counter()
    subprocess.run([sys.executable, "-P", "-m", "ranks", *command], env=environment(), check=True, stdout=sys.stderr)
    seconds = time.perf_counter() - start
    last = read_rows(folder / "run" / "metrics.jsonl")[-1]
    scores = {name: value for name, value in last.items() if name.startswith("val/")}
    return load_net("run", folder).model, {"training_s": round(seconds, 1), **scores}


def solved(variant: Variant, net: ColouringNet, graphs: list[Graph]) -> tuple[int, int]:
    """(graphs solved without repair, graphs solved with repair) within the budget."""
    torch.set_num_threads(1)
    common = {"seed": SEED, "rounds": variant.rounds, "device": CPU, "noise": variant.noise}
    answers = raw_search(net, graphs, COLOURS, purpose=PURPOSE, tries=ROUNDS // variant.rounds, **common)
    solved_after_repair = [answer.conflicts == 0 for answer in answers]
    for attempt in range(REPAIRED_TRIES):
        left = [i for i, done in enumerate(solved_after_repair) if not done]
        if not left:
            break
        tried = raw_search(
            net, [graphs[i] for i in left], COLOURS, purpose=f"{PURPOSE}/{attempt}", tries=1, items=left, **common
        )
        for i, answer in zip(left, tried, strict=True):
            seed = seed_of(f"repair/{attempt}", i)
            solved_after_repair[i] = repair(graphs[i], COLOURS, answer.colours_N, seed).conflicts == 0
    return sum(answer.conflicts == 0 for answer in answers), sum(solved_after_repair)


def without_net(graphs: list[Graph]) -> int:
    """The number of graphs that the same repair solves in the same number of random starts."""
    starts = [
        itertools.islice(random_starts(g.n, COLOURS, seed_of("random", i)), REPAIRED_TRIES)
        for i, g in enumerate(graphs)
    ]
    solved_after_repair = [
        repair_until_proper(g, COLOURS, seed_of("repair", i), starts[i]) for i, g in enumerate(graphs)
    ]
    return sum(found.conflicts == 0 for found in solved_after_repair)


def seed_of(purpose: str, item: int) -> int:
    return rng.key(SEED, f"{PURPOSE}/{purpose}", item) & (2**63 - 1)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--iterations", type=int, default=2000, help="updates of each training")
    parser.add_argument("--graphs", type=int, default=200, help="hard graphs of each size")
    args = parser.parse_args()
    graphs = {n: [hard_three_colourable(SEED, PURPOSE, n, i) for i in range(args.graphs)] for n in SIZES}
    rows: list[dict[str, Any]] = []
    for variant in VARIANTS:
        with tempfile.TemporaryDirectory(prefix="ranks-ablation-") as folder:
            net, results = train(variant, args.iterations, Path(folder))
        row: dict[str, Any] = {"variant": variant.name, "rounds_a_try": variant.rounds, **results}
        for n, of_size in graphs.items():
            row[f"raw_{n}"], row[f"repaired_{n}"] = (count / args.graphs for count in solved(variant, net, of_size))
        rows.append(row)
        print(json.dumps(row), flush=True)
    repaired = {f"repaired_{n}": without_net(of_size) / args.graphs for n, of_size in graphs.items()}
    rows.append({"variant": "no net: random starts", **repaired})
    print(json.dumps(rows[-1]))
    content = {
        "origin": origin(),
        "settings": vars(args),
        "data": asdict(small().data) | {"folder": None},
        "rows": rows,
    }
    name = f"coloring_ablation_{time.strftime('%Y-%m-%d')}"
    print(f"written: {write_result(name, content)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
