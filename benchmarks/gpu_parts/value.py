"""Training of chess-value: positions/s of whole updates by batch, of the device alone and of the host alone.

An update is as the workload makes it: positions drawn from a window of mapped files, read and turned into the net's
inputs by a thread, copied to the device, forward and backward pass, optimizer. The thread prepares the next batches
while a GPU works, so an update takes about as long as the slower of the two; on the CPU it takes as long as both. Each
is measured alone too: the device with a batch that is already there, the host stage by stage. A cycle of the command
line is measured on its own.

Legend: N positions, B positions of a batch.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.gpu_parts.runs import end_of, ranks_train
from benchmarks.gpu_parts.updates import wait
from benchmarks.measure import THREADS
from ranks import Learner, RunConfig, StepBatch, World
from ranks.chess.board import Board
from ranks.data.loading.device_copy import DeviceCopy
from ranks.engine.files.jsonl import read_rows
from ranks.engine.runs.metrics_rows import peak_memory_bytes
from ranks.engine.runs.run import Run
from ranks.nets.channels_last import use_channels_last
from ranks.workloads.chess_value.batches import batch_of, batches_for
from ranks.workloads.chess_value.config import Config, ValueNetConfig
from ranks.workloads.chess_value.labels.label import Labelled
from ranks.workloads.chess_value.net.building import build_net
from ranks.workloads.chess_value.net.inputs import Kind, host_inputs
from ranks.workloads.chess_value.net.losses import value_loss
from ranks.workloads.chess_value.window import PositionWindow

GAME_POSITIONS, GAME_PLIES = 5_000, 100
PART_POSITIONS = 50_000
"""Of a file of the window: a cycle of the default has 400,000 positions in 8 parts."""
MOST_UPDATES = 1_000_000
OF_RANK, OF_THREAD = ("drawing", "copying"), ("reading", "inputs")
"""Who does the stages of a batch on the host, at the same time."""
WARM_UP, UPDATES_S, DEVICE_S, STAGE_S = 3, 1.5, 0.7, 0.1
NNUE_GOAL = 1_000_000
"""Positions/s of an nnue update on one H200."""
CYCLES, WHOLE_CYCLE = 2, 400_000
CYCLE_GOAL = 8 * 833
"""Positions/s of whole cycles with labels of Stockfish at 1,000 nodes: 8 times those of the original program."""
NO_STOCKFISH = "left out: there is no Stockfish on this machine"


@dataclass
class Training:
    """A net in training, inside the loop of an open run."""

    kind: Kind
    world: World
    learner: Learner
    window: PositionWindow
    loss: Callable[..., Any]

    def seconds_of(self, do: Callable[[], object], least_s: float) -> float:
        """Of one call, as a mean over `least_s` or longer after some that warm up; the device is waited for at the
        end."""
        for _ in range(WARM_UP):
            do()
        self.finish()
        calls, begun = 0, time.perf_counter()
        while time.perf_counter() - begun < least_s:
            do()
            calls += 1
        self.finish()
        return (time.perf_counter() - begun) / calls

    def finish(self) -> None:
        """Wait until all updates are made."""
        self.learner.drain()
        wait(self.world.device)

    def host_stages(self, batch: int) -> dict[str, float]:
        """Seconds of each stage of a batch on the host, one after the other. The last one ends when the batch is on
        the device."""
        copy = DeviceCopy(self.world.device)
        ids_B = self.window.shards(batch, 0).ids.numpy()
        read = self.window.read(ids_B)

        def on_device() -> None:
            copy(batch_of(read, self.kind))
            wait(self.world.device)

        drawing_s = self.seconds_of(lambda: self.window.shards(batch, 0), STAGE_S)
        reading_s = self.seconds_of(lambda: self.window.read(ids_B), STAGE_S)
        inputs_s = self.seconds_of(lambda: host_inputs(self.kind, read.boards_N13), STAGE_S)
        copying_s = max(0.0, self.seconds_of(on_device, STAGE_S) - inputs_s)
        return {"drawing": drawing_s, "reading": reading_s, "inputs": inputs_s, "copying": copying_s}

    def rates(self, batch: int) -> dict[str, Any]:
        """Positions/s at one batch size, and what limits them."""
        batches = self.window.numbered(batch, 0, MOST_UPDATES)

        def update() -> None:
            self.learner.step(self.loss, next(batches))

        update()
        if self.world.device.type == "cuda":
            torch.cuda.reset_peak_memory_stats()
        update_s = self.seconds_of(update, UPDATES_S)
        peak_bytes = peak_memory_bytes(self.world.device)
        on_device = gathered_once(next(batches))
        batches.close()
        stages_s = self.host_stages(batch)
        device_s = self.seconds_of(lambda: self.learner.step(self.loss, on_device), DEVICE_S)
        slower = max(OF_RANK, OF_THREAD, key=lambda names: sum(stages_s[name] for name in names))
        host_s = sum(stages_s[name] for name in slower)
        return {
            "positions_per_s": batch / update_s,
            "device_positions_per_s": batch / device_s,
            "host_positions_per_s": batch / host_s,
            "update_s": update_s,
            "device_s": device_s,
            "host_s": stages_s,
            "limited_by": "device" if device_s >= host_s else f"host: {max(slower, key=lambda name: stages_s[name])}",
            "peak_memory_bytes": peak_bytes,
        }


def value_updates(device: str, precision: str, net: Kind, batches: list[int], positions: int) -> dict[str, Any]:
    """Positions/s of the updates of one net. `positions`: in the window."""
    cfg = Config(net=ValueNetConfig(kind=net))
    threads = None if device.startswith("cuda") else THREADS
    with tempfile.TemporaryDirectory(prefix="ranks-benchmark-") as folder:
        place = RunConfig(precision=precision, threads=threads, runs_dir=Path(folder), name="run")
        world = World.join(place, device=device, workload="chess-value")
        net_in_training = build_net(cfg.net)
        use_channels_last(net_in_training, world)
        learner = Learner(net_in_training, cfg.optim, world, global_batch=cfg.global_batch)
        window = PositionWindow("positions", cfg.window, batches_for(net), world)
        training = Training(net, world, learner, window, partial(value_loss, kind=net, mix=cfg.result_mix))
        by_batch: dict[int, dict[str, Any]] = {}
        with Run.open(cfg, world, keep={"learner": learner, "window": window}) as run:
            for cycle in run.iterations(1, long=True):
                fill(window, cycle, positions)
                for batch in batches:
                    try:
                        by_batch[batch] = training.rates(batch)
                    except torch.OutOfMemoryError:
                        by_batch[batch] = {"out_of_memory": True}
                    if learner.max_cost is not None:  # a step that did not fit was made in several passes
                        by_batch[batch]["most_positions_of_a_pass"] = learner.max_cost
            run.finish()
        world.leave()
    speeds = {batch: found["positions_per_s"] for batch, found in by_batch.items() if "positions_per_s" in found}
    return {
        "parameters": learner.num_parameters,
        "window_positions": len(window),
        "window_files": -(-positions // PART_POSITIONS),
        "batches": by_batch,
        "best_batch": max(speeds, key=lambda batch: speeds[batch]) if speeds else None,
        "goals_on_one_h200": {"nnue positions_per_s": NNUE_GOAL},
    }


def gathered_once(batch: StepBatch[Any]) -> StepBatch[Any]:
    """The same step; what it gathers stays on the device for the next time."""
    ready: dict[int, Any] = {}

    def gather(ids: torch.Tensor) -> Any:
        where = ids.data_ptr()  # each pass has its own piece of the step's indices
        if where not in ready:
            ready[where] = batch.gather(ids)
        return ready[where]

    return StepBatch(batch.shards, gather, item=batch.item)


def fill(window: PositionWindow, cycle: int, positions: int) -> None:
    """Add positions of random games, each many times, with random labels."""
    rng = np.random.default_rng(0)
    games_N13 = game_positions(GAME_POSITIONS)
    for first in range(0, positions, PART_POSITIONS):
        count = min(PART_POSITIONS, positions - first)
        window.add(
            cycle,
            Labelled(
                games_N13[rng.integers(0, len(games_N13), count)],
                rng.integers(-1000, 1001, count, dtype=np.int16),
                rng.integers(-1, 2, count, dtype=np.int8),
                np.zeros(count, np.int8),
            ),
        )


def game_positions(count: int) -> np.ndarray[Any, np.dtype[np.uint64]]:
    """uint64[N, 13]: positions of random games, from the first move to the last."""
    rng = np.random.default_rng(0)
    found: list[np.ndarray[Any, np.dtype[np.uint64]]] = []
    while len(found) < count:
        board = Board()
        while board.ply < GAME_PLIES and (moves := board.legal_moves()) and board.outcome() is None:
            board.push(moves[int(rng.integers(len(moves)))])
        found += list(board.rows.copy())
    return np.array(found[:count])


def cycle(device: str, games: int, nodes: int) -> dict[str, Any]:
    """Cycles of `ranks train chess-value` from nothing, with an empty label cache; figures of the last one.

    Stockfish labels at 1,000 nodes where there is one; otherwise the net's own search does, at `nodes`."""
    stockfish = shutil.which("stockfish") is not None
    flags = ["--iterations", str(CYCLES), "--games", str(games), "--stockfish-games", "0", "--play.nodes", str(nodes)]
    flags += ["--labels", "stockfish" if stockfish else "search"]
    flags += ["--label.limit", "nodes:1000" if stockfish else f"nodes:{nodes}", "--global-batch", "1024"]
    flags += ["--rating.games", "20", "--rating.rung-games", "10", "--rating.nodes", str(nodes)]
    with tempfile.TemporaryDirectory(prefix="ranks-benchmark-") as folder:
        begun = time.perf_counter()
        flags += ["--label.cache", str(Path(folder, "labels"))]
        run = ranks_train("chess-value", "cycle", Path(folder), device, 1, *flags)
        end_of(run, Path(folder), "cycle")
        run_s = time.perf_counter() - begun
        rows = read_rows(Path(folder, "cycle", "metrics.jsonl"))
    last = rows[-1]
    positions, iteration_s = last["cycle/positions"], last["time/iteration_s"]
    found = {
        "cycles": len(rows),
        "run_s": run_s,
        "iteration_s": iteration_s,
        "positions": positions,
        "positions_per_s": positions / iteration_s,
        "labels_per_s": last.get("cycle/labels_per_second"),
        "seconds_400000_positions": WHOLE_CYCLE * iteration_s / positions,
        "seconds_400000_positions_are": "extrapolated",
        "row": {key: value for key, value in last.items() if key.startswith(("time/", "cycle/"))},
    }
    if stockfish:
        goal = {"positions_per_s": CYCLE_GOAL}
        return {**found, "labels": "Stockfish, nodes:1000", "goals_on_16_cores": goal}
    return {**found, "labels": f"the net's own search, nodes:{nodes}", "labels_of_stockfish": NO_STOCKFISH}
