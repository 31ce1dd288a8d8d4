"""One part of the replay window: the positions of one iteration, never changed. Its fields are the
arrays of a kept file, so they may be memory-mapped.

Legend: P positions, E entries (legal moves of all positions), B rows of a batch, K parts, W words of a
packed position, M the most legal moves of a position.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from ranks.errors import UserError
from ranks.search.game import Game
from ranks.selfplay.games import Games
from ranks.selfplay.losses import Targets
from ranks.selfplay.net.encoding import Positions, Symmetry, mirrored_where
from ranks.selfplay.records import SHARE_ONE, ragged

NO_OUTCOME = 2
"""In place of the outcome: the game was truncated at the most plies, so nobody knows how it would have ended."""


@dataclass(frozen=True)
class HostBatch:
    """A batch of positions on the host."""

    state_BW: NDArray[np.int64]
    legal_BM: NDArray[np.int32]
    share_BM: NDArray[np.float32]
    num_moves_B: NDArray[np.int64]
    outcome_B: NDArray[np.float32]
    root_value_B: NDArray[np.float32]
    is_truncated_B: NDArray[np.bool_]
    """Which rows are of games without an outcome; theirs is 0 here."""
    is_mirrored_B: NDArray[np.bool_]
    """Which rows become their mirror images on the device."""

    @classmethod
    def empty(cls, rows: int, game: Game) -> HostBatch:
        """A batch of zeros."""
        return cls(
            state_BW=np.zeros((rows, len(game.initial)), np.int64),
            legal_BM=np.zeros((rows, game.max_moves), np.int32),
            share_BM=np.zeros((rows, game.max_moves), np.float32),
            num_moves_B=np.zeros(rows, np.int64),
            outcome_B=np.zeros(rows, np.float32),
            root_value_B=np.zeros(rows, np.float32),
            is_truncated_B=np.zeros(rows, np.bool_),
            is_mirrored_B=np.zeros(rows, np.bool_),
        )

    def targets(self, root_value: float, device: torch.device, symmetry: Symmetry | None = None) -> Targets:
        """Copy the batch to the device. `root_value`: the root value's share of the value target. Where the game has
        no outcome, the target is the root value alone, with this share as its weight."""
        share_BM = self.share_BM / np.maximum(self.share_BM.sum(1, keepdims=True), 1e-9)
        mixed_B = (1 - root_value) * self.outcome_B + root_value * self.root_value_B
        value_B = np.where(self.is_truncated_B, self.root_value_B, mixed_B)
        value_weight_B = np.where(self.is_truncated_B, root_value, 1.0)

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
            outcome_B=there(self.outcome_B),
            value_B=there(value_B.astype(np.float32)),
            value_weight_B=there(value_weight_B.astype(np.float32)),
            is_truncated_B=there(self.is_truncated_B),
        )


@dataclass(frozen=True)
class Part:
    """The positions of one iteration, in the order of games and plies."""

    state_PW: NDArray[np.uint64]
    move_P: NDArray[np.uint16]
    outcome_P: NDArray[np.int8]
    """For the side to move, -1, 0 or 1, or NO_OUTCOME."""
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
        is_truncated_P = np.repeat(games.truncated_N, games.plies_N)
        return cls(
            records.state_PW,
            records.move_P,
            np.where(is_truncated_P, np.int8(NO_OUTCOME), games.outcome_P())[full_P],
            records.value_P,
            records.num_moves_P.cumsum(dtype=np.int64),
            records.legal_E,
            records.share_E,
        )

    @classmethod
    def opened(cls, arrays: Mapping[str, NDArray[Any]]) -> Part:
        """The part in the arrays of a file, which also holds what `GameMoves` says. Raises UserError where another
        version of ranks wrote other arrays."""
        names = [field.name for field in fields(cls)]
        if missing := sorted({*names} - arrays.keys()):
            found = f"a part without the arrays {', '.join(missing)}: another version of ranks wrote it"
            raise UserError("the replay window of this run", found, "give the run another --name")
        return cls(**{name: arrays[name] for name in names})


def read(parts: Sequence[Part], ids_B: NDArray[np.int64], game: Game) -> HostBatch:
    """Read some positions of a window. `ids_B`: their indices in the parts, one after the other.

    A batch may touch hundreds of parts, so what is done for each of them is only to copy its rows. The copies are in
    the order of the parts, and `order_B` says to which row of the batch each belongs.
    """
    start_K = np.cumsum([0, *map(len, parts)])
    order_B = ids_B.argsort(kind="stable")
    sorted_B = ids_B[order_B]
    bounds = np.searchsorted(sorted_B, start_K).tolist()
    touched = [
        (part, slice(first, end), sorted_B[first:end] - start)
        for part, start, (first, end) in zip(parts, start_K.tolist(), pairwise(bounds), strict=False)
        if end > first
    ]

    def column(name: str, like: NDArray[Any]) -> NDArray[Any]:
        found = np.empty((len(ids_B), *like.shape[1:]), like.dtype)
        for part, rows, index_B in touched:
            found[rows] = getattr(part, name)[index_B]
        return found

    first_B, end_B = np.empty(len(ids_B), np.int64), np.empty(len(ids_B), np.int64)
    for part, rows, index_B in touched:
        end_B[rows] = part.end_P[index_B]
        first_B[rows] = np.where(index_B > 0, part.end_P[index_B - 1], 0)
    count_B = end_B - first_B
    entry_E = ragged(first_B, count_B)
    end_of_row_B = count_B.cumsum()
    legal_E, share_E = np.empty(len(entry_E), np.uint16), np.empty(len(entry_E), np.uint16)
    for part, rows, _ in touched:
        entries = slice(int(end_of_row_B[rows.start] - count_B[rows.start]), int(end_of_row_B[rows.stop - 1]))
        legal_E[entries] = part.legal_E[entry_E[entries]]
        share_E[entries] = part.share_E[entry_E[entries]]

    batch, any_part = HostBatch.empty(len(ids_B), game), parts[0]
    row_E, column_E = np.repeat(order_B, count_B), ragged(np.zeros_like(count_B), count_B)
    outcome_B = column("outcome_P", any_part.outcome_P)
    batch.state_BW[order_B] = column("state_PW", any_part.state_PW).view(np.int64)
    batch.legal_BM[row_E, column_E] = legal_E
    batch.share_BM[row_E, column_E] = share_E / np.float32(SHARE_ONE)
    batch.num_moves_B[order_B] = count_B
    batch.is_truncated_B[order_B] = outcome_B == NO_OUTCOME
    batch.outcome_B[order_B] = np.where(outcome_B == NO_OUTCOME, 0, outcome_B)
    batch.root_value_B[order_B] = column("value_P", any_part.value_P)
    return batch
