"""The work of one iteration on the simulated device: operations, copied bytes, and waits of the host.

    python -m tests.simulated_device.counts graph-coloring
    python -m tests.simulated_device.counts stock-trading '{"n_steps": 8}'     with other settings
    python -m tests.simulated_device.counts graph-batch                        256 graphs of the preset full

An iteration is an update, or a rollout and its updates. Set-up and evaluation are not in the counts: a training of six
iterations is compared with one of two. Prints one line of JSON.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch

from ranks import RunConfig, World
from ranks.workloads import load
from ranks.workloads.graph_coloring.data.build import prepare
from ranks.workloads.graph_coloring.data.dataset_folder import load as load_graphs
from ranks.workloads.graph_coloring.net.device_graphs import DeviceGraphs
from tests.simulated_device.device import DEVICE, Simulated, simulated
from tests.simulated_device.trainings import tiny

FEW, MORE = 2, 6
BATCHES, BATCH, GRAPHS = 7, 256, 2000


def work(mode: Simulated) -> dict[str, Counter[str]]:
    """What was counted so far."""
    return {
        "operations": Counter(mode.operations),
        "copied_bytes": Counter(mode.copied_bytes),
        "waits": Counter(mode.waits),
    }


def difference(after: Mapping[str, Counter[str]], before: Mapping[str, Counter[str]], times: int) -> dict[str, Any]:
    """The work between two moments, divided by `times`, and the number of all operations."""
    found = {
        kind: {name: (count - before[kind][name]) / times for name, count in after[kind].most_common()}
        for kind in after
    }
    found = {kind: {name: count for name, count in counts.items() if count} for kind, counts in found.items()}
    return {"all_operations": sum(found["operations"].values()), **found}


def of_an_iteration(workload: str, settings: dict[str, Any]) -> dict[str, Any]:
    """The work of one iteration of a small training."""
    found: list[dict[str, Counter[str]]] = []
    with simulated() as mode, tempfile.TemporaryDirectory() as folder:
        for number, iterations in enumerate((1, FEW, MORE)):  # the first training loads what later ones reuse
            run = RunConfig(threads=1, runs_dir=Path(folder), name=str(number))
            world = World.join(run, device=str(DEVICE), workload=workload)
            load(workload).train(tiny(workload, {**settings, "iterations": iterations}), world)
            world.leave()
            found.append(work(mode))
    few, more = ({kind: b[kind] - a[kind] for kind in b} for a, b in pairwise(found))
    return difference(more, few, MORE - FEW)


def of_a_batch_of_graphs() -> dict[str, Any]:
    """The work to build one batch, and the CPU milliseconds of the same on a CPU with one thread."""
    torch.set_num_threads(1)
    data = load("graph-coloring").PRESETS["full"]().data
    stored = load_graphs(prepare(replace(data, labels="bounds", train_graphs=GRAPHS), "train"))
    ids = torch.randperm(GRAPHS, generator=torch.Generator().manual_seed(0))[: BATCHES * BATCH].split(BATCH)
    on_cpu, times = DeviceGraphs(stored, 32, torch.device("cpu")), list[float]()
    for some in [*ids, *ids]:
        start = time.process_time()
        on_cpu.gather(some)
        times.append(1000 * (time.process_time() - start))
    with simulated() as mode:
        on_device = DeviceGraphs(stored, 32, DEVICE)
        before = work(mode)
        for some in ids:
            on_device.gather(some)
        return {"cpu_ms": sorted(times)[len(times) // 2], **difference(work(mode), before, len(ids))}


if __name__ == "__main__":
    workload, settings = sys.argv[1], json.loads(sys.argv[2]) if len(sys.argv) > 2 else {}
    print(json.dumps(of_a_batch_of_graphs() if workload == "graph-batch" else of_an_iteration(workload, settings)))
