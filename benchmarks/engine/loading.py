"""Background loading: items/s against torch's DataLoader, and how long a loop waits for its data.

    python -m benchmarks.engine.loading            about 8 minutes on 2 CPU cores; nothing else should run
    python -m benchmarks.engine.loading --quick    about a minute

Both loaders read the same map-style data set in the same order with the same number of worker processes and the same
number of batches read ahead; DataLoader keeps its workers (one endless iterator). Their batches are equal, which is
checked. They take turns in one process (A B A B ...), a pause before each turn lets the other's workers come to rest.
A turn asks for batches and reads a number of each. Then a whole training loop, whose steps compute for a fixed
time, runs with a `gather` that sleeps three steps: with workers and without.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader

from benchmarks.engine.loading_data import Case, Items, SlowRows
from benchmarks.measure import THREADS, alternate, origin, ratios, shown, spread, write_result
from ranks import Learner, Loss, OptimConfig, Run, RunConfig, World, stream
from ranks.data import from_map_style
from ranks.engine.files.jsonl import read_rows

GOAL_RATIO, GOAL_WAIT, GOAL_WITHOUT = 1.0, 0.02, 0.60
CASES = [
    Case(item_bytes, cost, batch)
    for item_bytes, batch in ((4 << 10, 256), (256 << 10, 32), (2 << 20, 8))
    for cost in ("none", "sleep", "decode")
]
PREFETCH = 2
TURN_S = 0.4
"""How long a turn is to take, about."""
REST_S = 0.15
NUM_ITEMS = 1 << 14
STEP_S = 0.05
LOOP_WORKERS = 8


def compare(case: Case, workers: int, rounds: int, world: World) -> dict[str, Any]:
    """Items/s of both loaders, and the ratio of pairs of turns."""
    items = Items(case, NUM_ITEMS)
    batches = stream(from_map_style(items), case.batch, world, workers=workers, prefetch=PREFETCH)
    numbers, loaded = count(), endless(items, case, workers, world)

    def ours(num: int) -> None:
        for _ in range(num):
            batch = batches.at(next(numbers))
            used(batch.gather(batch.shards.ids))

    def torchs(num: int) -> None:
        for _ in range(num):
            used(next(loaded))

    check_equal(batches.at(0), next(loaded))
    torchs(2 * workers * PREFETCH)
    ours(2 * workers * PREFETCH)
    start = time.perf_counter()
    torchs(2 * workers * PREFETCH)
    ours(2 * workers * PREFETCH)
    batch_s = (time.perf_counter() - start) / (4 * workers * PREFETCH)
    steps = max(4 * workers * PREFETCH, int(TURN_S / batch_s))
    found = alternate(
        {"torch": torchs, "ranks": ours},
        rounds=rounds,
        steps=steps,
        clock=time.perf_counter,
        between=lambda: time.sleep(REST_S),
    )
    batches.close()
    loaded.close()
    return {
        "item_bytes": case.item_bytes,
        "cost": case.cost,
        "batch": case.batch,
        "batches_of_a_turn": steps,
        "ranks_items_per_s": spread([case.batch / s for s in found["ranks"]], 1),
        "torch_items_per_s": spread([case.batch / s for s in found["torch"]], 1),
        "ratio": ratios(found["torch"], found["ranks"]),
        "goal": GOAL_RATIO,
    }


def endless(items: Items, case: Case, workers: int, world: World) -> Iterator[Any]:
    """Batches of a DataLoader in the order of our stream, without an end."""
    order = stream(from_map_style(items), case.batch, world)

    class Batches:
        def __iter__(self) -> Iterator[list[int]]:
            for number in count():
                yield order.shards(number).ids.tolist()

        def __len__(self) -> int:
            return 1 << 30

    loader = DataLoader(items, batch_sampler=Batches(), num_workers=workers, prefetch_factor=PREFETCH)  # type: ignore[arg-type]
    yield from loader


def check_equal(batch: Any, others: Any) -> None:
    """Raises RuntimeError where the first batches differ."""
    ours = batch.gather(batch.shards.ids)
    if not all(torch.equal(a, b) for a, b in zip(ours, others, strict=True)):
        raise RuntimeError("the two loaders gave different batches")


def used(batch: Any) -> None:
    """Read a number of the batch, as a training step would at least."""
    data, label_N = batch
    assert len(data) == len(label_N)
    data[-1, -1].item()


@dataclass(frozen=True)
class Config:
    """Of the loop."""

    iterations: int


class Net(nn.Module):
    """A layer."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.width = width
        self.layer = nn.Linear(64, width)

    def forward(self, x_BF: Tensor) -> Tensor:
        return self.layer(x_BF)


def waiting_share(workers: int, iterations: int, folder: Path) -> dict[str, Any]:
    """Of the time of a loop whose `gather` sleeps three steps: how much it waits for data."""
    name = f"workers-{workers}"
    world = World.join(RunConfig(threads=THREADS, runs_dir=folder, save_every="10h", name=name), device="cpu")
    square = torch.randn(512, 512)

    def loss(model: nn.Module, x_BF: Tensor) -> Loss:
        until_s = time.perf_counter() + STEP_S
        while time.perf_counter() < until_s:
            square.mm(square)
        loss_B = model(x_BF).square().sum(1)
        return Loss(loss_B.sum(), len(loss_B))

    batches = stream(SlowRows(4096, 3 * STEP_S), 32, world, workers=workers, prefetch=PREFETCH)
    learner = Learner(Net(8), OptimConfig(), world, updates=iterations)
    with Run.open(Config(iterations), world, keep={"learner": learner}) as run:
        for iteration in run.iterations(iterations):
            run.log(learner.step(loss, batches.at(iteration)))
    run.finish()
    world.leave()
    rows = read_rows(folder / name / "metrics.jsonl")
    waited_s = sum(row.get("time/data_wait_s", 0.0) + row["time/data_s"] for row in rows)
    whole_s = sum(row["time/iteration_s"] - row["time/save_s"] for row in rows)
    return {"workers": workers, "iterations": len(rows), "share": round(waited_s / whole_s, 4)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer rounds; writes no file")
    parser.add_argument("--workers", type=int, default=2, help="of both loaders")
    parser.add_argument("--only", default="", help="cases whose name has this text; writes no file")
    asked = parser.parse_args()
    torch.set_num_threads(THREADS)
    rounds = 4 if asked.quick else 30
    cases = [case for case in CASES if asked.only in case.name]
    result: dict[str, Any] = {"origin": origin(), "workers": asked.workers, "prefetch": PREFETCH, "cases": {}}
    world = World.join(RunConfig(threads=THREADS), device="cpu", workload="loading")
    for case in cases:
        found = result["cases"][case.name] = compare(case, asked.workers, rounds, world)
        speed = found["ranks_items_per_s"]["median"]
        print(f"{case.name:16} {speed:12,.0f} items/s, {shown(found['ratio'])} of DataLoader's", flush=True)
    world.leave()
    with tempfile.TemporaryDirectory(prefix="ranks-loading-") as folder:
        iterations = 40 if asked.quick else 300
        loops = [waiting_share(workers, iterations, Path(folder)) for workers in (LOOP_WORKERS, 0)]
    result["loop"] = {
        "step_s": STEP_S,
        "gather_s": 3 * STEP_S,
        "with_workers": {**loops[0], "goal_at_most": GOAL_WAIT},
        "without": {**loops[1], "goal_at_least": GOAL_WITHOUT},
    }
    for loop in loops:
        print(f"a loop with {loop['workers']} workers waits for data {loop['share']:.1%} of its time")
    if not (asked.quick or asked.only):
        name = f"loading_{result['origin']['date'][:10]}"
        print(f"wrote {write_result(name, result)}")


if __name__ == "__main__":
    main()
