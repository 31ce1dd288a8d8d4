"""Speed of graph-coloring updates with the data on the device, and the calls in which the host
waits for it."""

from __future__ import annotations

import statistics
import time
import warnings
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import torch

from benchmarks.measure import THREADS
from ranks import Learner, RunConfig, StepBatch, World, stream
from ranks.engine.runs.metrics_rows import peak_memory_bytes
from ranks.workloads import load
from ranks.workloads.graph_coloring.data.build.build import prepare
from ranks.workloads.graph_coloring.data.dataset_folder import load as load_graphs
from ranks.workloads.graph_coloring.net.cost import UpdateCost
from ranks.workloads.graph_coloring.net.device_graphs import DeviceGraphs
from ranks.workloads.graph_coloring.training import NO_BURN_IN_BEFORE, burn_in_rounds, coloring_loss
from ranks.workloads.graph_coloring.validation import evaluate

LEAST_BLOCKS, MOST_BLOCKS, BLOCK_UPDATES, MEASURED_S = 3, 50, 4, 6.0


def coloring_config(device: str) -> Any:
    """The preset full on a GPU; small with fewer graphs on the CPU. Both with labels that are quick
    to compute."""
    gpu = device.startswith("cuda")
    cfg = load("graph-coloring").PRESETS["full" if gpu else "small"]()
    few: dict[str, int] = {} if gpu else {"train_graphs": 600, "validation_graphs": 100}
    return replace(cfg, data=replace(cfg.data, labels="bounds", **few))


def make_graphs(device: str) -> dict[str, Any]:
    """Make the graphs of graph-coloring and store them in the cache, where the other parts find them."""
    cfg = coloring_config(device)
    seconds: dict[str, float] = {}
    for purpose in ("train", "validation"):
        start = time.perf_counter()
        prepare(cfg.data, purpose)
        seconds[purpose] = time.perf_counter() - start
    return {"graphs": [cfg.data.train_graphs, cfg.data.validation_graphs], "making_the_graphs_s": seconds}


class Updates:
    """A learner of graph-coloring and two prepared steps; `update` runs one of them."""

    def __init__(self, device: str, precision: str, batch: int, exact: bool) -> None:
        engine = RunConfig(precision=precision, exact=exact, threads=THREADS)
        self.world = World.join(engine, device=device, workload="graph-coloring")
        cfg = coloring_config(device)
        stored = load_graphs(prepare(cfg.data, "train"))
        data = DeviceGraphs(stored, cfg.max_colours, self.world.device, UpdateCost.of(cfg))
        graphs = stream(data, batch, self.world)
        net = load("graph-coloring").build(cfg)
        self.learner = Learner(net, cfg.optim, self.world, global_batch=batch, updates=10_000)
        burn_in = burn_in_rounds(cfg.burn_in, 0, NO_BURN_IN_BEFORE)
        self.loss = partial(
            coloring_loss, settings=cfg.loss_settings, seed=0, iteration=NO_BURN_IN_BEFORE, burn_in=burn_in
        )
        start = time.perf_counter()
        self.ready = [(step, batches_of(step, exact)) for step in map(graphs.at, range(2))]
        self.data_s = (time.perf_counter() - start) / len(self.ready)
        self.turn = 0

    @property
    def nodes(self) -> float:
        """Nodes of a batch, on average."""
        return statistics.mean(sum(len(part.node_graph_N) for part in parts) for _, parts in self.ready)

    def update(self) -> None:
        step, parts = self.ready[self.turn % len(self.ready)]
        left = iter(parts)
        self.learner.step(self.loss, StepBatch(step.shards, lambda ids: next(left)))
        self.turn += 1

    def block(self) -> float:
        """Seconds of one update, over a few of them and a wait for the device."""
        start = time.perf_counter()
        for _ in range(BLOCK_UPDATES):
            self.update()
        self.learner.drain()
        wait(self.world.device)
        return (time.perf_counter() - start) / BLOCK_UPDATES


def batches_of(step: StepBatch[Any], exact: bool) -> list[Any]:
    """The batches of a step: with --exact one for each shard that has items, else one for all."""
    pieces = [s.ids for s in step.shards if len(s.ids)] if exact else [step.shards.ids]
    return [step.gather(ids) for ids in pieces]


def coloring_updates(device: str, precision: str, batch: int, exact: bool) -> dict[str, Any]:
    """Updates per second; the seconds to gather a batch are measured separately."""
    updates = Updates(device, precision, batch, exact)
    updates.block()
    if updates.world.device.type == "cuda":
        torch.cuda.reset_peak_memory_stats()
    blocks: list[float] = []
    begun = time.perf_counter()
    while len(blocks) < LEAST_BLOCKS or (time.perf_counter() - begun < MEASURED_S and len(blocks) < MOST_BLOCKS):
        blocks.append(updates.block())
    update_s = statistics.median(blocks)
    return {
        "updates_per_s": 1 / update_s,
        "graphs_per_s": batch / update_s,
        "nodes_per_s": updates.nodes / update_s,
        "update_s": {"median": update_s, "least": min(blocks), "most": max(blocks), "blocks_of_4": len(blocks)},
        "nodes_per_batch": updates.nodes,
        "making_a_batch_s": updates.data_s,
        "peak_memory_bytes": peak_memory_bytes(updates.world.device),
    }


def coloring_epochs(device: str, precision: str, epochs: int) -> dict[str, Any]:
    """The seconds of whole epochs of training, and of evaluations; 100 epochs are extrapolated from
    fewer.

    On a GPU 12,000 + 3,000 graphs of 10 to 1,000 nodes; on the CPU fewer and smaller graphs.
    """
    world = World.join(RunConfig(precision=precision, threads=THREADS), device=device, workload="graph-coloring")
    cfg = coloring_config(device)
    data = DeviceGraphs(load_graphs(prepare(cfg.data, "train")), cfg.max_colours, world.device, UpdateCost.of(cfg))
    graphs = stream(data, cfg.global_batch, world)
    net = load("graph-coloring").build(cfg)
    learner = Learner(net, cfg.optim, world, global_batch=cfg.global_batch, updates=10_000)
    seconds: list[float] = []
    evaluation_s: list[float] = []
    scores: dict[str, float] = {}
    for epoch in range(epochs + 1):
        start = time.perf_counter()
        for position in range(graphs.iterations_per_epoch):
            iteration = epoch * graphs.iterations_per_epoch + position
            burn_in = burn_in_rounds(cfg.burn_in, 0, iteration)
            loss = partial(coloring_loss, settings=cfg.loss_settings, seed=0, iteration=iteration, burn_in=burn_in)
            learner.step(loss, graphs.at(iteration))
        learner.drain()
        wait(world.device)
        seconds.append(time.perf_counter() - start)
        start = time.perf_counter()
        scores = evaluate(learner.model, replace(cfg, eval_graphs=cfg.data.validation_graphs), world)
        wait(world.device)
        evaluation_s.append(time.perf_counter() - start)
    epoch_s = statistics.median(seconds[1:])
    return {
        "graphs": [cfg.data.train_graphs, cfg.data.validation_graphs],
        "parameters": learner.num_parameters,
        "first_epoch_s": seconds[0],
        "epochs_s": seconds[1:],
        "epoch_s": epoch_s,
        "evaluation_s": statistics.median(evaluation_s[1:]),
        "hundred_epochs_s": sum(seconds[1:]) if epochs >= 100 else 100 * epoch_s,
        "hundred_epochs_are": "measured" if epochs >= 100 else f"extrapolated from {epochs}",
        "graphs_per_s": cfg.data.train_graphs / epoch_s,
        "nodes_per_s": int(data.nodes_G.sum()) / epoch_s,
        "val_loss": scores["loss"],
        "peak_memory_bytes": peak_memory_bytes(world.device),
    }


def synchronising_calls(device: str) -> dict[str, Any]:
    """The calls in which the host waited for the GPU within `Learner.step`, over 5 steps."""
    if not device.startswith("cuda"):
        return {"left_out": "only CUDA counts synchronising calls"}
    updates = Updates(device, "fp32", batch=32, exact=False)
    for _ in range(3):
        updates.update()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        torch.cuda.set_sync_debug_mode("warn")
        for _ in range(5):
            updates.update()
        torch.cuda.set_sync_debug_mode("default")
    places = [f"{Path(w.filename).name}:{w.lineno}" for w in caught if "synchronizing CUDA" in str(w.message)]
    return {
        "steps": 5,
        "calls": len(places),
        "in_the_engine": sum("learner.py" in p or "vote.py" in p or "step.py" in p for p in places),
        "places": {place: places.count(place) for place in sorted(set(places))},
    }


def wait(device: torch.device) -> None:
    """Wait until the device has done all that was queued."""
    if device.type == "cuda":
        torch.cuda.synchronize()
