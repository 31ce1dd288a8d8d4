"""The cost of a graph in a graph-coloring update: fits its constants, and measures the shares of eight ranks.

    python -m benchmarks.graph_coloring.cost                    6 minutes of CPU time, and building the graphs
    python -m benchmarks.graph_coloring.cost --device cuda:0    the same on a GPU, where the constants may differ
    python -m benchmarks.graph_coloring.cost --quick            a quick check that it works; writes no result

Part 1 times updates of batches of many sizes under the presets full and small, without and with a burn-in, and fits
seconds = scale * (multiply-adds + ELEMENTWISE * numbers + NEIGHBOUR * numbers of neighbours) + overhead of the preset,
by least squares of the relative errors. Part 2 orders one global batch by the cost and by nodes + edges (the cost of
earlier versions) and runs the part of each of eight ranks: its predicted share of the cost, its share of the time, and
its share of the bytes that autograd keeps for the backward pass. The imbalance is the largest share over 1/8, minus 1.

Writes benchmarks/results/coloring_cost_DATE.json.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from benchmarks.measure import origin, write_result
from ranks.data.stream import balanced
from ranks.engine.config import RunConfig
from ranks.workloads.graph_coloring.config import PRESETS, Config
from ranks.workloads.graph_coloring.data.build.build import prepare
from ranks.workloads.graph_coloring.data.dataset_folder import load
from ranks.workloads.graph_coloring.net.cost import UpdateCost
from ranks.workloads.graph_coloring.net.device_graphs import DeviceGraphs
from ranks.workloads.graph_coloring.training import build, coloring_loss

RANKS, SHARDS, GLOBAL_BATCH, SEED = 8, RunConfig().num_shards, 256, 0
SAMPLES = {"full": (30, 3), "small": (40, 8)}
"""Timed batches of each preset, and their graphs."""
GRAPHS = {"full": 2000, "small": 600}


class Updates:
    """Passes of one preset on one device."""

    def __init__(self, preset: str, device: torch.device) -> None:
        cfg: Config = PRESETS[preset]()
        data = replace(cfg.data, labels="bounds", train_graphs=GRAPHS[preset])
        self.cfg, self.device, self.preset = cfg, device, preset
        self.graphs = DeviceGraphs(load(prepare(data, "train")), cfg.max_colours, device, UpdateCost.of(cfg))
        torch.manual_seed(SEED)
        self.net = build(cfg).to(device).train()
        self.weights = {p.untyped_storage().data_ptr() for p in self.net.parameters()}

    def run(self, ids: Tensor, burn_in: int) -> tuple[float, int]:
        """Seconds of the passes of these graphs, and the bytes that the backward pass keeps."""
        kept: dict[int, int] = {}

        def keep(tensor: Tensor) -> Tensor:
            storage = tensor.untyped_storage()
            if storage.data_ptr() not in self.weights:
                kept[storage.data_ptr()] = storage.nbytes()
            return tensor

        start = self.clock()
        batch = self.graphs.gather(ids)
        with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
            loss = coloring_loss(
                self.net, batch, settings=self.cfg.loss_settings, seed=SEED, iteration=0, burn_in=burn_in
            )
        loss.sum.backward()
        self.net.zero_grad()
        return self.clock() - start, sum(kept.values())

    def clock(self) -> float:
        """CPU seconds of this process; on a GPU the time when its work is done."""
        if self.device.type == "cuda":
            torch.cuda.synchronize()
            return time.perf_counter()
        return time.process_time()


def samples(updates: Updates, count: int, size: int) -> list[dict[str, float]]:
    """Times of batches whose graphs have about the same numbers of nodes, edges and colours."""
    cost_G = updates.graphs.cost
    assert cost_G is not None
    by_cost = torch.argsort(cost_G)
    generator = torch.Generator().manual_seed(SEED)
    found: list[dict[str, float]] = []
    for number in range(-2, count):  # the first two warm up
        first = int(torch.randint(len(by_cost) - 3 * size, (), generator=generator))
        ids = by_cost[first : first + 3 * size][torch.randperm(3 * size, generator=generator)[:size]]
        batch = updates.graphs.gather(ids)
        sizes = {"nodes": len(batch.node_graph_N), "edges": batch.edges_2E.shape[1]}
        sizes |= {"rows": batch.num_rows, "entries": batch.num_entries // 2}
        for burn_in in (0, updates.cfg.burn_in // 2):
            seconds, kept = updates.run(ids, burn_in)
            if number >= 0:
                found.append({**sizes, "burn_in": burn_in, "seconds": seconds, "bytes": kept})
    return found


def terms(cfg: Config, sample: dict[str, float]) -> list[float]:
    """Multiply-adds, numbers and numbers of neighbours of a sample: the cost is linear in both constants."""
    cfg = replace(cfg, burn_in=2 * int(sample["burn_in"]))

    def total(elementwise: float, neighbour: float) -> float:
        cost = UpdateCost.of(cfg, elementwise, neighbour)
        return sum(vars(cost)[part] * sample[many] for part, many in PARTS)

    linear = total(0, 0)
    return [linear, total(1, 0) - linear, total(0, 1) - linear]


PARTS = (("node", "nodes"), ("edge", "edges"), ("row", "rows"), ("entry", "entries"))


def fitted(found: dict[str, list[dict[str, float]]]) -> dict[str, float]:
    """The constants, and the mean relative error of the fit."""
    rows, seconds = list[list[float]](), list[float]()
    for index, (preset, some) in enumerate(found.items()):
        overhead = [float(index == other) for other in range(len(found))]
        rows += [[*terms(PRESETS[preset](), sample), *overhead] for sample in some]
        seconds += [sample["seconds"] for sample in some]
    relative = np.array(rows) / np.array(seconds)[:, None]
    solution, *_ = np.linalg.lstsq(relative, np.ones(len(seconds)), rcond=None)
    error = float(np.abs(relative @ solution - 1).mean())
    elementwise, neighbour = (float(solution[i] / solution[0]) for i in (1, 2))
    return {"elementwise": elementwise, "neighbour": neighbour, "scale_s": float(solution[0]), "mean_error": error}


def shares(values: Sequence[float]) -> dict[str, Any]:
    """The share of each rank in percent, and the imbalance in percent."""
    part = np.array(values) / sum(values)
    return {"shares": (100 * part).round(2).tolist(), "imbalance": round(float(100 * (part.max() * len(part) - 1)), 1)}


def eight_ranks(updates: Updates, cost_of: Callable[[DeviceGraphs], Tensor], size: int) -> dict[str, Any]:
    """Predicted and measured shares of one global batch that is ordered by a cost."""
    batch = torch.randperm(len(updates.graphs), generator=torch.Generator().manual_seed(SEED))[:size]
    cost_B = cost_of(updates.graphs)[batch]
    order = torch.tensor(balanced(cost_B.tolist(), SHARDS))
    parts = [slice(r * size // RANKS, (r + 1) * size // RANKS) for r in range(RANKS)]
    measured = [updates.run(batch[order][part], updates.cfg.burn_in // 2) for part in parts]
    return {
        "predicted": shares([float(cost_B[order][part].sum()) for part in parts]),
        "seconds": shares([seconds for seconds, _ in measured]),
        "bytes": shares([float(kept) for _, kept in measured]),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--quick", action="store_true")
    args = parser.parse_args()
    torch.set_num_threads(1)
    device = torch.device(args.device)
    found: dict[str, list[dict[str, float]]] = {}
    ranks: dict[str, Any] = {}
    for preset in ["small"] if args.quick else list(SAMPLES):
        updates = Updates(preset, device)
        found[preset] = samples(updates, *((6, 2) if args.quick else SAMPLES[preset]))
        ranks[preset] = {
            "nodes + edges": eight_ranks(updates, lambda g: (g.nodes_G + g.edges_G).double(), GLOBAL_BATCH),
            "cost": eight_ranks(updates, lambda g: g.cost, GLOBAL_BATCH),
        }
        for cost, result in ranks[preset].items():
            line = ", ".join(f"{name} {result[name]['imbalance']} %" for name in result)
            print(f"{preset}, 8 ranks by {cost}: imbalance of {line}", flush=True)
    if args.quick:
        return
    fit = fitted(found)
    print("fitted:", ", ".join(f"{name} {value:.3g}" for name, value in fit.items()))
    used = {preset: asdict(UpdateCost.of(PRESETS[preset]())) for preset in found}
    content = {"origin": origin(), "global_batch": GLOBAL_BATCH, "shards": SHARDS, "fit": fit, "cost": used}
    content |= {"eight_ranks": ranks, "samples": found}
    print(write_result(f"coloring_cost_{time.strftime('%Y-%m-%d')}", content))


if __name__ == "__main__":
    main()
