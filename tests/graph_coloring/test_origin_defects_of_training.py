"""The defects of the program that this workload follows, continued from test_origin_defects.py: what each rank did
alone, what was counted twice and waited for, and what a checkpoint held."""

from __future__ import annotations

import json
import os
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from ranks.engine.config import RunConfig
from ranks.engine.distributed.world import World
from ranks.engine.update import optimizer
from ranks.engine.update.loss import Loss
from ranks.errors import Stopped
from ranks.workloads import graph_coloring as workload
from ranks.workloads.graph_coloring import training
from ranks.workloads.graph_coloring.config import Config
from ranks.workloads.graph_coloring.data.build import prepare
from ranks.workloads.graph_coloring.data.dataset_folder import load
from ranks.workloads.graph_coloring.net.device_graphs import DeviceGraphs
from tests.engine.group import run_ranks
from tests.engine.test_no_sync import Reads
from tests.graph_coloring.batches import graphs_of
from tests.graph_coloring.example_graphs import write_col
from tests.graph_coloring.small_config import SMALL

pytestmark = pytest.mark.usefixtures("data_cache")


def small_run(tmp_path: Path) -> RunConfig:
    return RunConfig(runs_dir=tmp_path / "runs", name="gc", shards=4)


def rates_and_end(world: World, cache: str) -> tuple[list[float], float, str, dict[str, float]]:
    """Of a training in which rank 1 sees other losses than rank 0, as always: the learning rates it used, ..."""
    os.environ["XDG_CACHE_HOME"] = cache
    world.workload = "graph-coloring"
    rates: list[float] = []
    seen: list[float] = []
    usual_rate, usual_loss = optimizer.learning_rate, training.coloring_loss

    def rate(*arguments: Any) -> float:
        rates.append(usual_rate(*arguments))
        return rates[-1]

    def loss(*arguments: Any, **options: Any) -> Loss:
        found = usual_loss(*arguments, **options)
        seen.append(float(found.sum.detach()))
        return found

    optimizer.learning_rate, training.coloring_loss = rate, loss
    summary = training.train(SMALL, world)
    return rates, seen[-1], summary.fingerprint, summary.metrics


def test_the_learning_rate_was_lowered_on_one_rank_only(data_cache: Path, tmp_path: Path) -> None:
    """ReduceLROnPlateau stepped on rank 0, so the ranks' rates drifted apart. Here it follows from the number of the
    update alone, and all ranks end with the same weights and the same scores."""
    for purpose in ("train", "validation"):
        prepare(SMALL.data, purpose, 1)
    first, second = run_ranks(2, rates_and_end, str(data_cache), config=small_run(tmp_path), tmp_path=tmp_path)
    assert first[0] == second[0]
    assert len(set(first[0])) > 1
    assert first[1] != second[1], "each rank has its own graphs"
    assert first[2:] == second[2:]


def stopped_at(world: World, cache: str) -> tuple[int, int]:
    """(signal, iterations that were begun) of a training that only rank 1 is asked to stop."""
    os.environ["XDG_CACHE_HOME"] = cache
    world.workload = "graph-coloring"
    usual, begun = training.burn_in, list[int]()

    def burn_in(cfg: Config, seed: int, iteration: int) -> int:
        if iteration < training.NO_BURN_IN_BEFORE and iteration not in begun:
            begun.append(iteration)
            if world.rank == 1 and len(begun) == 3:
                os.kill(os.getpid(), signal.SIGTERM)
        return usual(cfg, seed, iteration)

    training.burn_in = burn_in
    try:
        training.train(replace(SMALL, iterations=40, eval_every=40), world)
    except Stopped as stopped:
        return stopped.signum, len(begun)
    return 0, len(begun)


def test_an_early_end_was_decided_by_one_rank_only(data_cache: Path, tmp_path: Path) -> None:
    """Rank 0 left the loop, and the others waited for it until a time-out. Here what one rank wants all do, at the same
    boundary."""
    for purpose in ("train", "validation"):
        prepare(SMALL.data, purpose, 1)
    ends = run_ranks(2, stopped_at, str(data_cache), config=small_run(tmp_path), tmp_path=tmp_path)
    assert ends[0] == ends[1]
    assert ends[0][0] == signal.SIGTERM
    assert 3 <= ends[0][1] < 10


def scores(tmp_path: Path, shards: int) -> dict[str, float]:
    """The validation of an untrained net, under --exact: so many shards, each passed by itself."""
    torch.manual_seed(0)
    world = World.join(RunConfig(runs_dir=tmp_path, threads=1, exact=True, shards=shards), device="cpu")
    try:
        return workload.evaluate(workload.build(SMALL), SMALL, world)
    finally:
        world.leave()


def test_validation_counted_some_graphs_twice_and_means_of_batches_alike(tmp_path: Path) -> None:
    """A padded sampler, and a mean over batches of unequal size. Here 7 graphs in 3 unequal shards give the same as
    each graph alone, and as all at once."""
    alone, uneven, at_once = (scores(tmp_path, shards) for shards in (7, 3, 1))
    assert len(set(alone.values())) > 3
    for name, value in alone.items():
        assert uneven[name] == pytest.approx(value, rel=1e-4), name
        assert at_once[name] == pytest.approx(value, rel=1e-4), name


def test_five_numbers_were_read_in_each_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each .item() waits for the device. Here the loss reads none, forwards or backwards; one that does is noticed."""
    data = DeviceGraphs(load(prepare(SMALL.data, "train", 1)), 8, torch.device("cpu"))
    graphs, net = data.gather(torch.arange(8)), workload.build(SMALL)
    monkeypatch.setattr(training, "burn_in", lambda *rest: 2)
    with Reads(net) as reads:
        loss = training.coloring_loss(net, graphs, cfg=SMALL, seed=0, iteration=60)
        loss.sum.backward()
        assert reads.found == []
        loss.sum.item()
    assert len(reads.found) == 1


def trained(world: World, cache: str, cfg: Config) -> int:
    os.environ["XDG_CACHE_HOME"] = cache
    world.workload = "graph-coloring"
    return training.train(cfg, world).iteration


def test_a_checkpoint_could_not_be_loaded_again_for_a_path_in_it(data_cache: Path, tmp_path: Path) -> None:
    """Its arguments were pickled, a PosixPath among them. Here a run that has one holds tensors and JSON only, and goes
    on from them."""
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
