"""Piece-square tables that are tuned on the labels of a run of chess-value: the control of its net.

    python -m benchmarks.chess_value.tables RUN FOLDER

Writes FOLDER/tables.safetensors, which the player `engine:FOLDER` evaluates with. All 2 x 6 x 64 values are fitted by
Adam to the loss of the net: the squared error of the win probability, on all training positions of the run. A pawn
counts as much as in the net's scores, since the margins of the engine's pruning are made for that. The net's engine and
that player then differ in their evaluation alone.

Legend: N positions, 6 kinds of pieces, 64 squares, P = 2 phases (midgame, endgame).
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from benchmarks.measure import THREADS
from ranks.chess.engine.evaluator import TABLES_FILE
from ranks.chess.engine.nnue.weights import ENGINE_CP_PER_LOGIT
from ranks.chess.engine.tables import KIND_PHASE, LARGEST_CP, MAX_PHASE, TableValues, default_values, save_tables
from ranks.progress import ProgressBar
from ranks.workloads.chess_value.labels.label import NO_SCORE
from ranks.workloads.chess_value.labels.units import LABEL_CP_PER_LOGIT
from ranks.workloads.chess_value.net.planes import resnet_planes
from ranks.workloads.chess_value.parts import saved_parts

KINDS, SQUARES = 6, 64
BATCH, PASSES, LR_CP = 16_384, 4, 2.0
"""Positions of an update, passes over all positions, and centipawns that a value changes by in an early update."""


class Scored(NamedTuple):
    """Positions with their scores, for the side to move."""

    boards_N13: np.ndarray
    cp_N: np.ndarray


def positions_of(run: Path, name: str) -> Scored:
    """The labelled positions in a run's kept files `positions` or `validation`."""
    parts = saved_parts(run, name).parts
    boards_N13 = np.concatenate([part.boards_N13 for part in parts])
    cp_N = np.concatenate([part.cp_N for part in parts])
    known = cp_N != NO_SCORE
    return Scored(boards_N13[known], cp_N[known])


def scores(values_PKS: Tensor, boards_N13: np.ndarray) -> Tensor:
    """[N]: centipawns of the tables for the side to move, without the engine's rounding."""
    planes = resnet_planes(torch.from_numpy(boards_N13.view(np.int64)))[:, : 2 * KINDS]
    own_NKS, other_NKS = planes[:, :KINDS].flatten(2), planes[:, KINDS:].flip(2).flatten(2)  # each from its own side
    phase_N = (own_NKS + other_NKS).sum(2) @ torch.from_numpy(KIND_PHASE).float()
    share_N = phase_N.clamp(max=MAX_PHASE) / MAX_PHASE
    sums_N2 = (own_NKS - other_NKS).flatten(1) @ values_PKS.flatten(1).T
    return sums_N2[:, 0] * share_N + sums_N2[:, 1] * (1 - share_N)


def loss_of(values_PKS: Tensor, found: Scored) -> Tensor:
    """The mean squared error of the win probability."""
    expected_N = torch.from_numpy(found.cp_N.astype(np.float32)).div(LABEL_CP_PER_LOGIT).sigmoid()
    return (scores(values_PKS, found.boards_N13).div(ENGINE_CP_PER_LOGIT).sigmoid() - expected_N).square().mean()


def tuned(train: Scored, seed: int = 0) -> TableValues:
    """Tables fitted to the scores, from the default ones."""
    values_PKS = torch.from_numpy(default_values()).float().requires_grad_()
    optimizer = torch.optim.Adam([values_PKS], lr=LR_CP)
    batches = len(train.cp_N) // BATCH * PASSES
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, batches)
    generator = np.random.default_rng(seed)
    with ProgressBar(batches, unit="updates") as bar:
        for _ in range(PASSES):
            order_N = generator.permutation(len(train.cp_N))
            for at in range(len(train.cp_N) // BATCH):
                ids_B = np.sort(order_N[at * BATCH : (at + 1) * BATCH])
                optimizer.zero_grad()
                loss_of(values_PKS, Scored(train.boards_N13[ids_B], train.cp_N[ids_B])).backward()
                optimizer.step()
                schedule.step()
                bar.advance()
    return values_PKS.detach().round().clamp(-LARGEST_CP, LARGEST_CP).int().numpy()


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("run", type=Path, help="the folder of a run, runs/NAME")
    parser.add_argument("folder", type=Path)
    asked = parser.parse_args()
    torch.set_num_threads(THREADS)
    train, validation = positions_of(asked.run, "positions"), positions_of(asked.run, "validation")
    values_PKS = tuned(train)
    with torch.no_grad():
        for name, values in (("default", default_values()), ("tuned", values_PKS)):
            loss = loss_of(torch.from_numpy(values).float(), validation)
            print(f"{name} tables: validation loss {loss:.5f} ({len(validation.cp_N):,} positions)")
    asked.folder.mkdir(parents=True, exist_ok=True)
    save_tables(asked.folder / TABLES_FILE, values_PKS)
    print(f"written: {asked.folder / TABLES_FILE}, from {len(train.cp_N):,} positions")


if __name__ == "__main__":
    main()
