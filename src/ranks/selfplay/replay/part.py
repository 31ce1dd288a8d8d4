"""One part of the replay window: the positions of one iteration, never changed. Its fields are the
arrays of a kept file, so they may be memory-mapped.

Legend: P positions, E entries (legal moves of all positions), B rows of a batch, W words of a packed
position, M the most legal moves of a position.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from ranks.search.game import Game
from ranks.selfplay.games import Games
from ranks.selfplay.losses import Targets
from ranks.selfplay.net.encoding import Positions, Symmetry, mirrored_where
from ranks.selfplay.records import SHARE_ONE, ragged


@dataclass(frozen=True)
class HostBatch:
    """A batch of positions on the host, filled by the parts that hold them."""

    state_BW: NDArray[np.int64]
    legal_BM: NDArray[np.int32]
    share_BM: NDArray[np.float32]
    num_moves_B: NDArray[np.int64]
    move_B: NDArray[np.int32]
    outcome_B: NDArray[np.float32]
    value_B: NDArray[np.float32]
    is_mirrored_B: NDArray[np.bool_]
    """Which rows become their mirror images on the device."""

    @classmethod
    def empty(cls, rows: int, game: Game) -> HostBatch:
        """A batch of zeros."""
        return cls(
            np.zeros((rows, len(game.initial)), np.int64),
            np.zeros((rows, game.max_moves), np.int32),
            np.zeros((rows, game.max_moves), np.float32),
            np.zeros(rows, np.int64),
            np.zeros(rows, np.int32),
            np.zeros(rows, np.float32),
            np.zeros(rows, np.float32),
            np.zeros(rows, np.bool_),
        )

    def targets(self, root_value: float, device: torch.device, symmetry: Symmetry | None = None) -> Targets:
        """Copy the batch to the device. `root_value`: the root value's share of the value target."""
        is_played_BM = self.legal_BM == self.move_B[:, None]
        is_played_BM &= np.arange(self.legal_BM.shape[1]) < self.num_moves_B[:, None]
        share_BM = self.share_BM / np.maximum(self.share_BM.sum(1, keepdims=True), 1e-9)
        value_B = (1 - root_value) * self.outcome_B + root_value * self.value_B

        def there(array: NDArray[Any]) -> torch.Tensor:
            tensor = torch.from_numpy(array)
            if device.type == "cpu":
                return tensor
            pinned = torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=True)
            return pinned.copy_(tensor).to(device, non_blocking=True)

        positions = Positions(there(self.state_BW), there(self.legal_BM).long(), there(self.num_moves_B))
        if symmetry is not None:
            positions = mirrored_where(there(self.is_mirrored_B), positions, symmetry)
        return Targets(
            positions,
            policy_BM=there(share_BM.astype(np.float32)),
            column_B=there(is_played_BM.argmax(1)),
            outcome_B=there(self.outcome_B),
            root_value_B=there(self.value_B),
            value_B=there(value_B.astype(np.float32)),
        )


@dataclass(frozen=True)
class Part:
    """The positions of one iteration, in the order of games and plies."""

    state_PW: NDArray[np.uint64]
    move_P: NDArray[np.uint16]
    outcome_P: NDArray[np.int8]
    value_P: NDArray[np.float32]
    end_P: NDArray[np.int64]
    """The entries of position p are end_P[p - 1] to end_P[p] - 1."""
    legal_E: NDArray[np.uint16]
    share_E: NDArray[np.uint16]

    def __len__(self) -> int:
        return len(self.move_P)

    @classmethod
    def of(cls, games: Games) -> Part:
        """The positions of games whose search was a full one."""
        full_P = np.flatnonzero(games.records.full_P)
        records = games.records.select(full_P)
        return cls(
            records.state_PW,
            records.move_P,
            games.outcome_P()[full_P],
            records.value_P,
            records.num_moves_P.cumsum(dtype=np.int64),
            records.legal_E,
            records.share_E,
        )

    @classmethod
    def opened(cls, arrays: Mapping[str, NDArray[Any]]) -> Part:
        """The part in the arrays of a file, which also holds what `GameMoves` says."""
        return cls(**{field.name: arrays[field.name] for field in fields(cls)})

    def read(self, index_B: NDArray[np.int64], rows: HostBatch, at_B: NDArray[np.int64]) -> None:
        """Write some positions to the rows `at_B` of a batch."""
        first_B = np.where(index_B > 0, self.end_P[index_B - 1], 0)
        count_B = self.end_P[index_B] - first_B
        entries_E = ragged(first_B, count_B)
        row_E = np.repeat(at_B, count_B)
        column_E = ragged(np.zeros_like(count_B), count_B)
        rows.state_BW[at_B] = self.state_PW[index_B].view(np.int64)
        rows.legal_BM[row_E, column_E] = self.legal_E[entries_E]
        rows.share_BM[row_E, column_E] = self.share_E[entries_E] / np.float32(SHARE_ONE)
        rows.num_moves_B[at_B] = count_B
        rows.move_B[at_B] = self.move_P[index_B]
        rows.outcome_B[at_B] = self.outcome_P[index_B]
        rows.value_B[at_B] = self.value_P[index_B]
