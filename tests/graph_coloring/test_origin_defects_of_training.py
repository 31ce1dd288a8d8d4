"""Regression tests for the defects of the program that this workload follows, "the origin":
decisions of one rank, validation, reads in a step, and checkpoints. test_origin_defects.py has the
others.
"""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.modules.module import register_module_forward_pre_hook

from ranks.engine.config import RunConfig
from ranks.engine.distributed.world import World
from ranks.engine.update import optimizer
from ranks.errors import Stopped
from ranks.workloads import graph_coloring as workload
from ranks.workloads.graph_coloring import training
from ranks.workloads.graph_coloring.config import Config
from ranks.workloads.graph_coloring.data.build.build import prepare
from ranks.workloads.graph_coloring.data.dataset_folder import load
from ranks.workloads.graph_coloring.net.device_graphs import DeviceGraphs
from ranks.workloads.graph_coloring.net.model import GraphEncoder
from tests.engine.group import run_ranks
from tests.engine.update.test_no_sync import Reads
from tests.graph_coloring.batches import graphs_of
from tests.graph_coloring.example_graphs import write_col
from tests.graph_coloring.small_config import SMALL

pytestmark = pytest.mark.usefixtures("data_cache")


def small_run(tmp_path: Path) -> RunConfig:
    return RunConfig(runs_dir=tmp_path / "runs", name="gc", shards=4)


def on_each_training_batch(call: Callable[[Tensor], None]) -> None:
    """Call a function with the node features of every batch that a network encodes in training
    mode."""

    def hook(module: nn.Module, inputs: Any) -> None:
        if isinstance(module, GraphEncoder) and module.training:
            call(inputs[0])

    register_module_forward_pre_hook(hook)


def rates_and_end(world: World, cache: str) -> tuple[list[float], float, str, dict[str, float]]:
    """(the learning rates of all updates, the sum of the features of this rank's last batch, the
    fingerprint, the metrics) of a training."""
    os.environ["XDG_CACHE_HOME"] = cache
    world.workload = "graph-coloring"
    rates, batches = list[float](), list[float]()
    usual_rate = optimizer.learning_rate

    def recorded_rate(*arguments: Any) -> float:
        rates.append(usual_rate(*arguments))
        return rates[-1]

    optimizer.learning_rate = recorded_rate
    on_each_training_batch(lambda features_NF: batches.append(float(features_NF.sum())))
    summary = training.train(SMALL, world)
    return rates, batches[-1], summary.fingerprint, summary.metrics


def test_all_ranks_use_the_same_learning_rates(data_cache: Path, tmp_path: Path) -> None:
    """The origin: ReduceLROnPlateau stepped on rank 0 only, so the learning rates of the ranks
    differed.

    The rate is a function of the update. All ranks end with the same weights and metrics, though
    each rank has its own graphs."""
    for purpose in ("train", "validation"):
        prepare(SMALL.data, purpose, 1)
    first, second = run_ranks(2, rates_and_end, str(data_cache), config=small_run(tmp_path), tmp_path=tmp_path)
    assert first[0] == second[0]
    assert len(set(first[0])) > 1
    assert first[1] != second[1], "each rank has its own graphs"
    assert first[2:] == second[2:]


def stopped_at(world: World, cache: str) -> tuple[int, int]:
    """(signal, number of batches that this rank encoded) of a training; only rank 1 gets a
    SIGTERM."""
    os.environ["XDG_CACHE_HOME"] = cache
    world.workload = "graph-coloring"
    batches = 0

    def stop_rank_1(features_NF: Tensor) -> None:
        nonlocal batches
        batches += 1
        if world.rank == 1 and batches == 5:
            os.kill(os.getpid(), signal.SIGTERM)

    on_each_training_batch(stop_rank_1)
    try:
        training.train(replace(SMALL, iterations=40, eval_every=40), world)
    except Stopped as stopped:
        return stopped.signum, batches
    return 0, batches


def test_all_ranks_stop_at_the_same_iteration(data_cache: Path, tmp_path: Path) -> None:
    """The origin: rank 0 left the loop early, and the other ranks waited for it until a
    time-out."""
    for purpose in ("train", "validation"):
        prepare(SMALL.data, purpose, 1)
    ends = run_ranks(2, stopped_at, str(data_cache), config=small_run(tmp_path), tmp_path=tmp_path)
    assert ends[0] == ends[1]
    assert ends[0][0] == signal.SIGTERM
    assert 5 <= ends[0][1] < 20


def scores(tmp_path: Path, shards: int) -> dict[str, float]:
    """The validation metrics of an untrained network with --exact and this number of shards."""
    torch.manual_seed(0)
    world = World.join(RunConfig(runs_dir=tmp_path, threads=1, exact=True, shards=shards), device="cpu")
    try:
        return workload.evaluate(workload.build(SMALL), SMALL, world)
    finally:
        world.leave()


def test_validation_metrics_do_not_depend_on_the_batches(tmp_path: Path) -> None:
    """The origin: a padded sampler, and an unweighted mean over batches of unequal size.

    7 graphs give the same metrics one by one, in 3 unequal shards, and all at once."""
    alone, uneven, at_once = (scores(tmp_path, shards) for shards in (7, 3, 1))
    assert len(set(alone.values())) > 3
    for name, value in alone.items():
        assert uneven[name] == pytest.approx(value, rel=1e-4), name
        assert at_once[name] == pytest.approx(value, rel=1e-4), name


def test_the_loss_reads_no_value_on_the_host() -> None:
    """The origin: five `.item()` calls in each step, each of which waits for the device.

    The last lines show that the test would notice one."""
    data = DeviceGraphs(load(prepare(SMALL.data, "train", 1)), 8, torch.device("cpu"))
    graphs, net = data.gather(torch.arange(8)), workload.build(SMALL)
    with Reads(net) as reads:
        loss = training.coloring_loss(
            net, graphs, settings=SMALL.loss_settings, seed=0, iteration=60, burn_in=SMALL.burn_in
        )
        loss.sum.backward()
        assert reads.found == []
        loss.sum.item()
    assert len(reads.found) == 1


def trained(world: World, cache: str, cfg: Config) -> int:
    """The last iteration of a training."""
    os.environ["XDG_CACHE_HOME"] = cache
    world.workload = "graph-coloring"
    return training.train(cfg, world).iteration


def test_a_run_with_a_path_in_its_config_resumes(data_cache: Path, tmp_path: Path) -> None:
    """The origin: a checkpoint with a pickled PosixPath, which `weights_only` rejects.

    Our checkpoints contain only safetensors and JSON."""
    folder = tmp_path / "graphs"
    folder.mkdir()
    for i, graph in enumerate(graphs_of([(8 + i, 12 + i) for i in range(6)])):
        write_col(folder / f"{i}.col", graph)
    cfg = replace(SMALL, data=replace(SMALL.data, folder=folder), global_batch=4)
    for iterations in (2, 4):
        longer = replace(cfg, iterations=iterations, optim=replace(cfg.optim, schedule_updates=4))
        ended = run_ranks(1, trained, str(data_cache), longer, config=small_run(tmp_path), tmp_path=tmp_path)
        assert ended == [iterations]
    files = [path for path in (tmp_path / "runs" / "gc" / "checkpoints").rglob("*") if path.is_file()]
    assert {path.suffix for path in files} == {".safetensors", ".json"}
    for path in files:
        if path.suffix == ".json":
            json.loads(path.read_text(encoding="utf-8"))
    settings = (tmp_path / "runs" / "gc" / "run_config.json").read_text(encoding="utf-8")
    assert str(folder) in json.dumps(json.loads(settings))
