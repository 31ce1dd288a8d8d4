"""How long ranks wait for a slower one, with equal shards and with measured `--shares`.

    python -m benchmarks.selfplay.unequal_ranks [--ranks 4] [--slow 2.0] [--quick]        about a minute

The last rank's device is slower by a factor. A device is emulated: the net sleeps for a time in proportion to the rows
of its batch, three times as long in an update, so the benchmark needs few cores and tells what the loop does, not what
a GPU does. Each rank plays games and updates the net. A rank waits where it neither sleeps for its net nor uses its
CPU, so what other programs do to it counts as waiting; `idle_devices` is what the numbers of rows alone imply. A first
run with equal shards measures the rows a second of each rank's device; the `--shares` of the second are these speeds,
as whole numbers. Shards are whole: with few of them the shares are met only roughly (--shards). Writes
benchmarks/results/unequal_ranks_DATE.json.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.measure import origin, run_ranks, write_result

SHARDS, SLOTS, SECONDS_A_ROW, GOAL = 128, 256, 0.0004, 0.05


def worker(folder: Path, shares: tuple[int, ...] | None, slow: float, iterations: int) -> None:
    """One rank: writes its times."""
    from functools import partial

    import torch
    from torch import Tensor, nn

    from ranks import Learner, OptimConfig, Run, RunConfig, World
    from ranks.search import TICTACTOE
    from ranks.selfplay import (
        Encoding,
        Positions,
        ReplayConfig,
        ReplayWindow,
        SelfPlay,
        SelfPlayConfig,
        alphazero_loss,
    )

    class Device:
        """An emulated device: rows that it computed, and how long it took."""

        factor, busy_s, rows = 1.0, 0.0, 0

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.Linear(18, 10)

        def forward(self, planes: Tensor) -> tuple[Tensor, Tensor]:
            passes = 3 if self.training else 1
            started = time.perf_counter()
            time.sleep(passes * len(planes) * SECONDS_A_ROW * Device.factor)
            Device.busy_s += time.perf_counter() - started
            Device.rows += passes * len(planes)
            out = self.linear(planes.flatten(1))
            return out[:, :9], torch.tanh(out[:, 9])

    def planes(positions: Positions) -> Tensor:
        return (positions.states_BW[:, :, None] >> torch.arange(9)) & 1

    config = RunConfig(threads=1, shards=SHARDS, shares=shares, runs_dir=folder, name="run", save_every="1h")
    world = World.join(config, device="cpu", workload="benchmark")
    Device.factor = slow if world.rank == world.size - 1 else 1.0
    net, encoding = Net(), Encoding(planes)
    learner = Learner(net, OptimConfig(schedule="constant"), world)
    selfplay = SelfPlay(TICTACTOE, encoding, SLOTS, SLOTS, SelfPlayConfig(simulations=16), world)
    window = ReplayWindow(TICTACTOE, ReplayConfig(reuse=1.0), world)
    loss = partial(alphazero_loss, encoding=encoding)
    started, cpu_s = time.perf_counter(), time.process_time()
    with Run.open(config, world, keep=dict(learner=learner, selfplay=selfplay, window=window)) as run:
        for iteration in run.iterations(iterations + 1, long=True):
            if iteration == 1:  # the first one is a warm-up
                started, cpu_s, Device.busy_s, Device.rows = time.perf_counter(), time.process_time(), 0.0, 0
            window.add(selfplay.play(net, iteration))
            for batch in window.batches(SLOTS):
                run.log(learner.step(loss, batch))
        wall_s, cpu_s = time.perf_counter() - started, time.process_time() - cpu_s
    found = {"busy_s": Device.busy_s, "cpu_s": cpu_s, "wall_s": wall_s, "rows": Device.rows}
    (folder / f"rank{world.rank}.json").write_text(json.dumps(found))
    world.leave()


def measured(ranks: int, shares: tuple[int, ...] | None, slow: float, iterations: int) -> dict[str, Any]:
    """Run the ranks. What each waited, as a share of the time, and its rows a second."""
    with tempfile.TemporaryDirectory(prefix="ranks-unequal-") as name:
        given = ",".join(map(str, shares)) if shares else "equal"
        worker = ["-m", "benchmarks.selfplay.unequal_ranks", "--worker", name, given, str(slow), str(iterations)]
        run_ranks(worker, ranks)
        of = [json.loads((Path(name) / f"rank{rank}.json").read_text()) for rank in range(ranks)]
    nominals = [one["rows"] * (slow if rank == ranks - 1 else 1.0) for rank, one in enumerate(of)]
    waiting = [1 - (one["busy_s"] + one["cpu_s"]) / one["wall_s"] for one in of]
    return {
        "shares": shares,
        "waiting_of_ranks": [round(share, 4) for share in waiting],
        "others_wait": round(statistics.mean(waiting[:-1]), 4),
        "idle_devices": [round(1 - nominal / max(nominals), 4) for nominal in nominals],
        "rows_per_second_of_device": [one["rows"] / one["busy_s"] for one in of],
        "iterations_per_second": iterations / max(one["wall_s"] for one in of),
    }


def main() -> None:
    if sys.argv[1:2] == ["--worker"]:
        folder, given, slow, iterations = sys.argv[2:6]
        shares = None if given == "equal" else tuple(map(int, given.split(",")))
        return worker(Path(folder), shares, float(slow), int(iterations))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--slow", type=float, default=2.0, help="the last rank's device is slower by this factor")
    parser.add_argument("--quick", action="store_true")
    asked = parser.parse_args()
    began, iterations = origin(), 1 if asked.quick else 5
    equal = measured(asked.ranks, None, asked.slow, iterations)
    speeds = equal["rows_per_second_of_device"]
    shares = tuple(round(20 * speed / min(speeds)) for speed in speeds)
    by_speed = measured(asked.ranks, shares, asked.slow, iterations)
    content = {
        "origin": began,
        "ranks": asked.ranks,
        "slower_by": asked.slow,
        "shards": SHARDS,
        "goal": GOAL,
        "equal_shards": equal,
        "measured_shares": by_speed,
    }
    print(json.dumps(content, indent=2))
    if not asked.quick:
        print("wrote", write_result(f"unequal_ranks_{began['date'][:10]}", content))


if __name__ == "__main__":
    main()
