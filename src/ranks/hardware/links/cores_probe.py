"""Measure how fast equal work is on one core, and on two cores at once: `ranks launch --ranks 2 cores_probe.py OUT`.

    rank 0   | alone ........ | together ... | alone ........ | together ... |
    rank 1   |                | together ... |                | together ... |

Both ranks begin each piece of the work together. Rank 0 writes the seconds of all pieces as JSON.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import torch

from ranks import RunConfig, World

SIDE, PIECE_S = 256, 0.05
ROUNDS, ALONE, TOGETHER = 4, 8, 12
"""Rounds, and pieces in each of them."""


def seconds_of_piece(matrix: torch.Tensor, repeats: int) -> float:
    """Of a matrix product and a function of each element, so many times: what nets do, in small."""
    began = time.perf_counter()
    for _ in range(repeats):
        torch.tanh(matrix @ matrix)
    return time.perf_counter() - began


def measure(world: World) -> dict[str, list[list[float]]]:
    """The pieces of rank 0 alone, one list a round, and those of all ranks together, one list a piece. Every rank calls
    it."""
    matrix = torch.full((SIDE, SIDE), 1e-3)
    once_s = min(seconds_of_piece(matrix, 10) for _ in range(10)) / 10
    repeats = max(1, round(PIECE_S / world.comm.max_host(once_s)))
    alone_s, mine_s = list[list[float]](), list[float]()
    for _ in range(ROUNDS):
        world.comm.barrier()
        alone_s.append([seconds_of_piece(matrix, repeats) for _ in range(ALONE if world.rank == 0 else 0)])
        world.comm.barrier()
        for _ in range(TOGETHER if world.size > 1 else 0):
            mine_s.append(seconds_of_piece(matrix, repeats))
            world.comm.barrier()
    ranks_s = world.comm.gather_objects(mine_s)
    return {"alone_s": alone_s, "together_s": [list(piece_s) for piece_s in zip(*ranks_s, strict=True)]}


def main(argv: list[str]) -> None:
    """Join the other rank, measure, and write."""
    world = World.join(RunConfig(threads=1), device="cpu")
    found = measure(world)
    if world.rank == 0:
        Path(argv[0]).write_text(json.dumps(found) + "\n", encoding="utf-8")
    world.leave()


if __name__ == "__main__":
    main(sys.argv[1:])
