"""Speed of graph-coloring updates compared with the same network written with torch-geometric.

    pip install torch-geometric==2.8.1
    python -m benchmarks.graph_coloring.geometric [--quick]          2 minutes on 2 cores without other work

Both have the same weights, batches and noise, and run alternately in one process. First the script
checks that their gradients are equal up to rounding. A measured update is: compute the index arrays
of the batch, forward pass, backward pass; no optimizer step. The deterministic mode that the engine
sets on the CPU is off for both. Writes benchmarks/results/coloring_geometric_DATE.json.
"""

from __future__ import annotations

import argparse
import copy
import sys
import time
from functools import partial
from importlib.metadata import version

import torch

from benchmarks.gpu_parts.updates import coloring_config
from benchmarks.graph_coloring.peers import geometric_net
from benchmarks.measure import alternate, origin, ratios, shown, spread, write_result
from ranks.engine.sharding import rng
from ranks.workloads.graph_coloring.data.build.build import prepare
from ranks.workloads.graph_coloring.data.dataset_folder import load
from ranks.workloads.graph_coloring.net.device_graphs import DeviceGraphs
from ranks.workloads.graph_coloring.net.rows import row_noise, rows_of
from ranks.workloads.graph_coloring.training import build, burn_in_rounds, coloring_loss

BATCH, NUM_BATCHES, ITERATION, GOAL = 32, 4, 60, 1.5


class Sides:
    """Both networks with the same weights, and prepared batches, in torch's default dtype."""

    def __init__(self) -> None:
        cfg = coloring_config("cpu")
        data = DeviceGraphs(load(prepare(cfg.data, "train")), cfg.max_colours, torch.device("cpu"))
        torch.manual_seed(0)
        self.settings, self.ours = cfg.loss_settings, build(cfg)
        self.burn_in = burn_in_rounds(cfg.burn_in, 0, ITERATION)
        self.theirs = copy.deepcopy(self.ours)
        self.batches = [data.gather(torch.arange(i * BATCH, (i + 1) * BATCH)) for i in range(NUM_BATCHES)]
        key = rng.key(0, "train/noise", ITERATION)
        self.noises = [row_noise(key, batch, rows_of(batch)) for batch in self.batches]
        self.own_loss = partial(
            coloring_loss, settings=self.settings, seed=0, iteration=ITERATION, burn_in=self.burn_in
        )

    def update_ours(self, turns: int) -> None:
        for i in range(turns):
            self.own_loss(self.ours, self.batches[i % NUM_BATCHES]).sum.backward()

    def update_theirs(self, turns: int) -> None:
        for i in range(turns):
            batch, noise_R = self.batches[i % NUM_BATCHES], self.noises[i % NUM_BATCHES]
            geometric_net.loss(self.theirs, batch, noise_R, self.settings, self.burn_in).backward()

    def check(self) -> float:
        """The largest relative difference of a gradient."""
        self.update_ours(1)
        self.update_theirs(1)
        pairs = [(p.grad, q.grad) for p, q in zip(self.ours.parameters(), self.theirs.parameters(), strict=True)]
        # a parameter that is used only in the burn-in has no gradient
        return max(float((p - q).norm() / (q.norm() + 1e-12)) for p, q in pairs if p is not None and q is not None)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="3 rounds: a quick check that it works")
    rounds = 3 if parser.parse_args().quick else 30
    torch.set_default_dtype(torch.float64)
    difference = Sides().check()
    print(f"gradients in float64 differ by at most {difference:.1e}")
    if difference > 1e-8:
        raise SystemExit("the gradients differ: these are not the same networks")
    torch.set_default_dtype(torch.float32)
    sides = Sides()
    found: dict[str, object] = {}
    for threads in (1, 2):
        torch.set_num_threads(threads)
        updates = {"ours": sides.update_ours, "torch-geometric": sides.update_theirs}
        seconds = alternate(updates, rounds=rounds, steps=NUM_BATCHES, clock=time.perf_counter)
        ratio = ratios(seconds["torch-geometric"], seconds["ours"])
        speed = {name: spread([BATCH / s for s in each], 1) for name, each in seconds.items()}
        found[f"threads_{threads}"] = {"graphs_per_s": speed, "ratio": ratio}
        print(f"{threads} thread(s): ours {speed['ours']['median']:.0f} graphs/s, {shown(ratio)}x torch-geometric's")
    print(f"goal {GOAL}x")
    content = {"origin": origin(), "torch_geometric": version("torch-geometric"), "goal": GOAL, **found}
    name = f"coloring_geometric_{time.strftime('%Y-%m-%d')}"
    print(f"written: {write_result(name, content)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
