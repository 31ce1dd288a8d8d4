"""Measure all-reduces by their size: `ranks launch --ranks 2 probe.py OUT`, or under torchrun on two machines.

Rank 0 writes the curve as JSON. A size is measured some times, larger sizes until one takes too long.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from pathlib import Path

import torch

from ranks.engine.distributed.world import World
from ranks.hardware.links.curve import AllReduceCurve

NUM_BYTES = tuple(2**power for power in (3, 10, 13, 15, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 28))
MOST_TIMES, SIZE_S, LONGEST_S = 15, 0.6, 2.0
"""How often a size is measured, for how long at most, and after which time of one all-reduce no larger size is."""


def measure(world: World, device: torch.device) -> AllReduceCurve:
    """The curve of tensors on a device. Every rank calls it."""
    sizes, seconds = list[int](), list[float]()
    for num_bytes in NUM_BYTES:
        tensor = torch.zeros(num_bytes // 4, device=device)
        _once(world, tensor)
        times: list[float] = []
        enough = False
        while not enough:
            times.append(_once(world, tensor))
            enough = world.any(len(times) >= MOST_TIMES or sum(times) > SIZE_S)
        sizes.append(num_bytes)
        seconds.append(world.comm.max_host(statistics.median(times)))
        if seconds[-1] > LONGEST_S:
            break
    return AllReduceCurve(world.size, tuple(sizes), tuple(seconds))


def _once(world: World, tensor: torch.Tensor) -> float:
    """Seconds of one all-reduce that all ranks begin together."""
    world.comm.barrier()
    began = time.perf_counter()
    world.comm.sum_async(tensor).wait()
    if tensor.device.type == "cuda":
        torch.cuda.synchronize(tensor.device)
    return time.perf_counter() - began


def main(argv: list[str]) -> None:
    """Join the other ranks, measure, and write the curves of the device and of the host."""
    world = World.join()
    host = measure(world, torch.device("cpu"))
    device = measure(world, world.device) if world.device.type == "cuda" else host
    if world.rank == 0:
        curves = {"device": vars(device), "host": vars(host), "on": str(world.device)}
        Path(argv[0]).write_text(json.dumps(curves) + "\n", encoding="utf-8")
    world.leave()


if __name__ == "__main__":
    main(sys.argv[1:])
