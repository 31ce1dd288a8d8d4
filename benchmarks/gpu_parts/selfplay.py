"""Self-play of chess on a device: evaluations/s by batch, plies/s end to end, and how long the device works.

The busy share is the time of the forward passes and copies of all batches, by CUDA events, over the wall time of
`SelfPlay.play`. It counts the gaps between the kernels of one batch as work; device.py counts kernels one by one.
On the CPU everything is small, and nothing is said of a device.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from benchmarks.gpu_parts.device import union_us
from benchmarks.gpu_parts.updates import wait
from benchmarks.measure import THREADS
from ranks import RunConfig, World
from ranks.chess.core.rules import CHESS
from ranks.engine.update.evaluate import eval_mode
from ranks.search.evaluation import Leaves
from ranks.selfplay import SelfPlay, SelfPlayConfig
from ranks.selfplay.checks.rules import check_rules
from ranks.selfplay.net.batch_evaluator import BatchEvaluator, BatchMemory
from ranks.selfplay.net.evaluation_graphs import EvaluationGraphs
from ranks.selfplay.times import PlayTimes
from ranks.workloads.chess_spiking.building import build_net
from ranks.workloads.chess_spiking.config import PRESETS, NetConfig
from ranks.workloads.chess_spiking.encoding import encoding_of
from ranks.workloads.chess_spiking.net.fused import use_fused_kernels

NETS = {
    "6x64": NetConfig(neuron="relu"),
    "10x128": NetConfig(neuron="relu", blocks=10, width=128),
    "default": NetConfig(),
    "origin": PRESETS["origin"]().net,
}
"""6x64 and 10x128: residual nets with ReLUs; default and origin: spiking nets."""
MEASURED_S = 1.0
OPENING_PLIES, MAX_PLIES = 100, 110
"""The first iteration's games begin with 0 to 100 random moves and end after 110 plies, so positions of all stages are
there at once. Later games have no random moves, so each ply that is counted had its search."""
PLIES_GOAL, BUSY_GOAL, BARE_GOAL = 5_500, 0.85, 0.70
"""On one H200: plies/s with 32 simulations; busy share, and share of a bare forward loop at that batch, with 10x128."""


class Playing:
    """A net on a device, with its encoding and its rank."""

    def __init__(self, device: str, precision: str, net: str) -> None:
        threads = THREADS if device == "cpu" else None  # trees grow on all cores while a GPU evaluates
        self.world = World.join(RunConfig(precision=precision, threads=threads), device=device, workload="selfplay")
        torch.manual_seed(1)
        self.net = build_net(NETS[net]).to(self.world.device)
        self.fused = use_fused_kernels(self.net, self.world)
        self.encoding = encoding_of(NETS[net], self.world.seed)

    def memory(self, batch: int) -> BatchMemory:
        """A batch of positions of random games."""
        seen: Leaves = check_rules(CHESS, 100)
        memory = BatchMemory(CHESS, batch, self.world.device)
        for into, array in zip(memory.leaves, seen, strict=True):
            into[:] = array[torch.arange(batch).numpy() % len(array)]
        return memory

    def seconds_of(self, do: Any) -> float:
        """Of one call, as a mean over MEASURED_S after three that warm up; the device is waited for at the end."""
        for _ in range(3):
            do()
        wait(self.world.device)
        start, calls = time.perf_counter(), 0
        while time.perf_counter() - start < MEASURED_S:
            for _ in range(4):
                do()
            calls += 4
            wait(self.world.device)
        return (time.perf_counter() - start) / calls

    def rates(self, batch: int) -> dict[str, float]:
        """Evaluations/s from packed positions to priors on the host, and of the bare forward pass of the net."""
        memory = self.memory(batch)
        graphs = EvaluationGraphs(print) if self.world.device.type == "cuda" else None
        evaluator = BatchEvaluator(self.encoding, self.world.device, PlayTimes(), graphs=graphs)
        planes: list[Tensor] = []

        def keep(_: nn.Module, inputs: tuple[Tensor, ...]) -> None:
            planes[:] = [inputs[0].clone()]

        def evaluate() -> None:
            evaluator.launch(self.net, memory)
            evaluator.wait(memory)

        with eval_mode(self.net, self.world):
            handle = self.net.register_forward_pre_hook(keep)
            evaluate()
            handle.remove()
            if graphs is not None:
                graphs.clear()  # the hook is not in the next one

            def forward() -> None:
                self.net(planes[0])

            bare = forward if graphs is None else lambda: graphs.run("bare forward pass", batch, forward)
            return {
                "evaluations_per_s": batch / self.seconds_of(evaluate),
                "bare_forward_per_s": batch / self.seconds_of(bare),
            }


def evaluations(device: str, precision: str, net: str, batches: list[int]) -> dict[str, Any]:
    """Evaluations/s by batch of one net."""
    playing = Playing(device, precision, net)
    by_batch = {str(batch): playing.rates(batch) for batch in batches}
    best = max(by_batch, key=lambda batch: by_batch[batch]["evaluations_per_s"])
    return {"by_batch": by_batch, "best_batch": int(best), "fused_kernel": playing.fused, **by_batch[best]}


class TimedEvaluator(BatchEvaluator):
    """Marks each batch in the device's stream, from the copies in to the copies out."""

    spans: ClassVar[list[tuple[torch.cuda.Event, torch.cuda.Event]]] = []

    def launch(self, net: Any, memory: BatchMemory) -> None:
        if self.device.type != "cuda":
            super().launch(net, memory)
            return
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        super().launch(net, memory)
        end.record()
        self.spans.append((start, end))


def selfplay(
    device: str, precision: str, net: str, slots: int, simulations: int, games: int, cuda_graph: bool = True
) -> dict[str, Any]:
    """Games in all stages, each ply with so many simulations or without a search: plies/s of the third iteration."""
    from ranks.selfplay import selfplay as module

    module.BatchEvaluator = TimedEvaluator  # type: ignore[misc]
    playing = Playing(device, precision, net)
    gpu = playing.world.device.type == "cuda"
    opening_plies, max_plies = (OPENING_PLIES, MAX_PLIES) if gpu else (6, 12)  # short games, so that some end
    cfg = SelfPlayConfig(simulations=max(1, simulations), max_plies=max_plies, cuda_graph=cuda_graph)
    if not simulations:
        cfg = replace(cfg, search="none")
    opened = replace(cfg, opening_plies=opening_plies)
    stages = SelfPlay(CHESS, playing.encoding, slots, games, opened, playing.world)
    stages.play(playing.net, 0)
    source = SelfPlay(CHESS, playing.encoding, slots, games, cfg, playing.world)
    source.load_state_dict(stages.state_dict())
    source.play(playing.net, 1)
    TimedEvaluator.spans.clear()
    wait(playing.world.device)
    origin_mark = torch.cuda.Event(enable_timing=True) if gpu else None
    if origin_mark is not None:
        origin_mark.record()
    start = time.perf_counter()
    ended = source.play(playing.net, 2)
    wait(playing.world.device)
    wall_s = time.perf_counter() - start
    found = source.statistics()
    result: dict[str, Any] = {
        "plies_per_s": found["plies_per_second"],
        "evaluations_per_s": found["evaluations_per_second"],
        "games_per_hour": len(ended) / wall_s * 3600,
        "wall_s": wall_s,
        "slots": slots,
        "threads": torch.get_num_threads(),
        "shares": {name: value for name, value in found.items() if name.endswith("_share")},
        "gpu_busy_share": None,
        "goals_on_one_h200": {"plies_per_s": PLIES_GOAL, "10x128 busy": BUSY_GOAL, "10x128 of bare": BARE_GOAL},
    }
    if origin_mark is not None:
        spans = [
            (origin_mark.elapsed_time(a) * 1e3, origin_mark.elapsed_time(b) * 1e3) for a, b in TimedEvaluator.spans
        ]
        result["gpu_busy_share"] = union_us(spans) / 1e6 / wall_s
    rows = -(-slots // 2) if gpu else slots  # on a device a batch is half of the slots
    bare = playing.rates(rows)["bare_forward_per_s"]
    result |= {"bare_forward_per_s": bare, "by_bare_forward": found["evaluations_per_second"] / bare}
    return result
