"""What the engine costs: over a bare loop at 1 rank, over PyTorch's DDP at 2 ranks, and what
`--exact` costs.

    python -m benchmarks.engine.overhead            about 3 minutes on 2 CPU cores; nothing else should run
    python -m benchmarks.engine.overhead --quick    under a minute

The loops of a comparison take turns in one process (A B A B ...), so that noise of the machine
affects all of them. The figures are medians of pairs, with quartiles. The CPU time of a step also
rises with what runs next to it (caches, a shared core), so the difference of the lower deciles of
short blocks is given too, and the cost of the all-reduce alone, which differs between machines by as
much as the engine's. The bare loops gather, run
and update the same net on the same data: with 1 rank in the shortest form (one flat gradient, norm
and scale in three calls), with 2 ranks by DistributedDataParallel. They log nothing. The engine's
loop is that of a workload: Learner.step, Run.log, one row of metrics.jsonl per iteration.
"""

# B samples of a batch, F = 64 features, C = 8 classes

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.measure import (
    alternate,
    differences,
    environment,
    origin,
    ratios,
    run_ranks,
    shown,
    spread,
    undisturbed_difference,
    write_result,
)

GOAL_US = 60.0
GOAL_RATIO = 1.03
STEP_S = 0.010
CLIP = 1.0
LR = 1e-5  # small, so that both nets stay about the same


def worker(part: str, quick: bool, out: Path) -> None:
    """One rank of one comparison; the first rank writes the figures."""
    import torch
    import torch.distributed as dist
    from torch import Tensor, nn
    from torch.nn import functional as F

    from ranks import Learner, Loss, OptimConfig, Run, RunConfig, StepBatch, World, stream
    from ranks.engine.distributed.comm import Comm
    from ranks.engine.distributed.rendezvous.process_env import ProcessEnv

    class Net(nn.Module):
        def __init__(self, width: int) -> None:
            super().__init__()
            self.width = width
            layers = [nn.Linear(64, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 8)]
            self.layers = nn.Sequential(*layers)

        def forward(self, x_BF: Tensor) -> Tensor:
            return self.layers(x_BF)

    class Samples:
        cost, sha256 = None, "made from a fixed seed"

        def __init__(self, num: int) -> None:
            made = torch.Generator().manual_seed(0)
            self.x_NF = torch.randn(num, 64, generator=made)
            self.class_N = torch.randint(8, (num,), generator=made)

        def __len__(self) -> int:
            return len(self.class_N)

        def gather(self, ids: Tensor) -> tuple[Tensor, Tensor]:
            return self.x_NF[ids], self.class_N[ids]

    @dataclass(frozen=True)
    class Config:
        width: int
        global_batch: int

    def loss_of(model: nn.Module, batch: tuple[Tensor, Tensor]) -> Loss:
        x_BF, class_B = batch
        logits_BC = model(x_BF)
        loss = F.cross_entropy(logits_BC, class_B, reduction="sum")
        return Loss(loss, len(class_B), accuracy=(logits_BC.argmax(1) == class_B).to(loss.dtype))

    def forward_backward(model: nn.Module, batch: tuple[Tensor, Tensor]) -> None:
        x_BF, class_B = batch
        logits_BC = model(x_BF)
        (logits_BC.argmax(1) == class_B).to(torch.float32).sum()  # the metric is computed, as in the engine's loop
        F.cross_entropy(logits_BC, class_B).backward()

    runs = out.with_suffix(".runs")
    runs.mkdir(exist_ok=True)
    world = World.join(RunConfig(threads=1, runs_dir=runs, save_every="10h"), device="cpu", workload="bare")

    def batches(data: Samples, batch: int) -> Callable[[int], Tensor]:
        """Sample ids of this rank in iteration i: a shuffled epoch, cut up."""
        per_rank = batch // world.size
        order = torch.randperm(len(data))
        many = len(data) // per_rank
        return lambda i: order[(i % many) * per_rank : (i % many + 1) * per_rank]

    def bare(width: int, batch: int, data: Samples, all_reduce: bool) -> Callable[[int], None]:
        model, ids, at = Net(width), batches(data, batch), [0]
        parameters = list(model.parameters())
        flat = torch.zeros(sum(p.numel() for p in parameters))
        start = 0
        for p in parameters:
            p.grad = flat[start : start + p.numel()].view(p.shape)
            start += p.numel()
        optimizer = torch.optim.AdamW(parameters, lr=LR, fused=True)

        def run(steps: int) -> None:
            for _ in range(steps):
                flat.zero_()
                forward_backward(model, data.gather(ids(at[0])))
                if all_reduce:
                    dist.all_reduce(flat)
                flat.mul_((CLIP / (torch.linalg.vector_norm(flat) + 1e-6)).clamp(max=1.0))
                optimizer.step()
                at[0] += 1

        return run

    def ddp(width: int, batch: int, data: Samples) -> Callable[[int], None]:
        model, ids, at = nn.parallel.DistributedDataParallel(Net(width)), batches(data, batch), [0]
        optimizer = torch.optim.AdamW(model.parameters(), lr=LR, fused=True)

        def run(steps: int) -> None:
            for _ in range(steps):
                optimizer.zero_grad()
                forward_backward(model, data.gather(ids(at[0])))
                nn.utils.clip_grad_norm_(model.parameters(), CLIP)
                optimizer.step()
                at[0] += 1

        return run

    def engine(width: int, batch: int, data: Samples, *, exact: bool, name: str) -> Callable[[int], None]:
        config = RunConfig(exact=exact, threads=1, runs_dir=runs, save_every="10h", name=name)
        own = World(config, ProcessEnv("alone"), world.device, Comm(world.rank, world.size, staged=False), name)
        learner = Learner(Net(width), OptimConfig(lr=LR, clip_norm=CLIP, schedule="constant"), own)
        samples = stream(data, batch, own)
        run = Run.open(Config(width, batch), own, keep={"learner": learner})
        loop = run.iterations(10**9)

        def steps(num: int) -> None:
            for _ in range(num):
                part: StepBatch[tuple[Tensor, Tensor]] = samples.at(next(loop))
                run.log(learner.step(loss_of, part))

        return steps

    def batch_for(make: Callable[[int], Callable[[int], None]]) -> int:
        """The global batch with which a step takes about `STEP_S` (the same on every rank)."""
        batch = 256 * world.size
        for _ in range(8):
            run = make(batch)
            run(3)
            taken: list[float] = []
            for _ in range(9):
                start = time.perf_counter()
                run(2)
                taken.append((time.perf_counter() - start) / 2)
            slowest = world.comm.max_host(sorted(taken)[len(taken) // 2])
            batch = max(64, min(len(data) // 2, int(batch * (STEP_S / slowest) ** 0.7) // 64 * 64))
        return batch

    data = Samples(1 << 14)
    result: dict[str, Any] = {}
    wait = (lambda: None) if world.size == 1 else world.comm.barrier
    if part == "one":
        dist.init_process_group("gloo", store=dist.FileStore(str(runs / "store"), 1), rank=0, world_size=1)
        for label, width, batch in (("small", 64, 64), ("10ms", 256, batch_for(lambda b: bare(256, b, data, False)))):
            ways = {
                "bare": bare(width, batch, data, True),
                "engine": engine(width, batch, data, exact=False, name=f"{label}-fast"),
                "bare, no all-reduce": bare(width, batch, data, False),
                "exact": engine(width, batch, data, exact=True, name=f"{label}-exact"),
            }
            rounds, steps = (60 if quick else 300, 8) if label == "small" else (10 if quick else 60, 20)
            cpu = alternate(ways, rounds=rounds, steps=steps, clock=time.process_time)
            result[label] = {
                "width": width,
                "global_batch": batch,
                "bare_step_ms": spread([1e3 * v for v in cpu["bare"]]),
                "engine_over_bare_us": differences(cpu["engine"], cpu["bare"], 1e-6),
                "engine_over_bare_without_all_reduce_us": differences(cpu["engine"], cpu["bare, no all-reduce"], 1e-6),
                "engine_over_bare_undisturbed_us": undisturbed_difference(cpu["engine"], cpu["bare"], 1e-6),
                "all_reduce_us": differences(cpu["bare"], cpu["bare, no all-reduce"], 1e-6),
                "engine_to_bare": ratios(cpu["engine"], cpu["bare"]),
                "exact_to_fast": ratios(cpu["exact"], cpu["engine"]),
            }
    else:
        width = 256
        batch = batch_for(lambda b: ddp(width, b, data))
        ways = {
            "ddp": ddp(width, batch, data),
            "engine": engine(width, batch, data, exact=False, name="fast"),
            "exact": engine(width, batch, data, exact=True, name="exact"),
        }
        wall = alternate(ways, rounds=8 if quick else 60, steps=20, clock=time.perf_counter, between=wait)
        result["10ms"] = {
            "width": width,
            "global_batch": batch,
            "ddp_step_ms": spread([1e3 * v for v in wall["ddp"]]),
            "engine_to_ddp": ratios(wall["engine"], wall["ddp"]),
            "exact_to_fast": ratios(wall["exact"], wall["engine"]),
        }
    if world.rank == 0:
        out.write_text(json.dumps(result))
    wait()
    world.leave()


def report(found: dict[str, Any]) -> None:
    """The figures and whether they meet the goals."""
    small, one, two = found["ranks_1"]["small"], found["ranks_1"]["10ms"], found["ranks_2"]["10ms"]
    over, ratio = small["engine_over_bare_us"], two["engine_to_ddp"]
    print(
        f"1 rank, CPU time of a step over the bare loop's {small['bare_step_ms']['median']:.2f} ms: {shown(over, 0)} us"
    )
    print(f"   goal <= {GOAL_US:.0f} us: {'met' if over['median'] <= GOAL_US else 'MISSED'}")
    print(
        f"   undisturbed: {small['engine_over_bare_undisturbed_us']:.0f} us; "
        f"the bare loop's all-reduce alone: {shown(small['all_reduce_us'], 0)} us"
    )
    print(f"   a bare loop without all-reduce instead: {shown(small['engine_over_bare_without_all_reduce_us'], 0)} us")
    print(f"   at {one['bare_step_ms']['median']:.1f} ms a step: {shown(one['engine_to_bare'])} x bare")
    print(f"2 ranks, wall time of a step against DDP's {two['ddp_step_ms']['median']:.1f} ms: {shown(ratio)} x")
    print(f"   goal <= {GOAL_RATIO} x: {'met' if ratio['median'] <= GOAL_RATIO else 'MISSED'}")
    print(f"--exact against fast, 1 rank:  {shown(one['exact_to_fast'])} x   2 ranks: {shown(two['exact_to_fast'])} x")


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer pairs")
    parser.add_argument("--write", metavar="NAME", help="write benchmarks/results/NAME.json")
    parser.add_argument("--part", choices=("one", "two"), help=argparse.SUPPRESS)
    parser.add_argument("--out", type=Path, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.part:
        worker(asked.part, asked.quick, asked.out)
        return 0
    os.environ.update(environment())
    found: dict[str, Any] = {"origin": origin()}
    with tempfile.TemporaryDirectory(prefix="ranks-benchmark-") as folder:
        for part, num_ranks in (("one", 1), ("two", 2)):
            out = Path(folder, f"{part}.json")
            quick = ["--quick"] if asked.quick else []
            run_ranks(["-m", "benchmarks.engine.overhead", "--part", part, "--out", str(out), *quick], num_ranks)
            found[f"ranks_{num_ranks}"] = json.loads(out.read_text())
    report(found)
    if asked.write:
        print(f"written: {write_result(asked.write, found)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
