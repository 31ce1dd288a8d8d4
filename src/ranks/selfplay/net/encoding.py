"""How positions and moves are shown to a net, on the device.

Legend: B positions, W words of a packed position, M the most legal moves of a position, C planes of H x
W squares, A moves that the policy head knows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

import numpy as np
import torch
from torch import Tensor, nn

from ranks.errors import UserError
from ranks.search.evaluation import Leaves
from ranks.search.game import Game

PolicyValueNet: TypeAlias = Callable[[Tensor], tuple[Tensor, Tensor]]
"""planes [B, C, H, W] -> policy logits [B, A], and the value for the side to move: [B] from -1 (lost)
to 1 (won), or logits of win, draw and loss [B, 3]."""


@dataclass(frozen=True)
class Positions:
    """Packed positions with their legal moves, on the net's device."""

    states_BW: Tensor
    """int64: the bits of the game's words."""
    moves_BM: Tensor
    """int64: the game's moves, 0 to 65,535; behind the moves of a position other moves of the game, or 0."""
    num_moves_B: Tensor
    """int64; 0 in a row that is not used."""

    @classmethod
    def of(cls, leaves: Leaves, device: torch.device | str = "cpu") -> Positions:
        """The positions of a search."""
        return cls(
            torch.from_numpy(leaves.states_BW.view(np.int64)).to(device),
            torch.from_numpy(leaves.moves_BM.astype(np.int64)).to(device),
            torch.from_numpy(leaves.num_moves_B.astype(np.int64)).to(device),
        )

    def is_move(self) -> Tensor:
        """bool[B, M]: which columns hold moves."""
        return torch.arange(self.moves_BM.shape[1], device=self.num_moves_B.device) < self.num_moves_B[:, None]


Symmetry: TypeAlias = Callable[[Positions], Positions]
"""The mirror image of each position: another position of equal value, whose moves stand in the same columns. It runs on
the device without waiting for it. Twice it gives the position again."""


def mirrored_where(is_mirrored_B: Tensor, positions: Positions, symmetry: Symmetry) -> Positions:
    """Some of the positions, and the mirror images of the others."""
    images, is_mirrored_B1 = symmetry(positions), is_mirrored_B[:, None]
    return Positions(
        torch.where(is_mirrored_B1, images.states_BW, positions.states_BW),
        torch.where(is_mirrored_B1, images.moves_BM, positions.moves_BM),
        positions.num_moves_B,
    )


def moves_as_indices(positions: Positions) -> Tensor:
    """For games whose moves are the indices of their logits."""
    return positions.moves_BM


@dataclass(frozen=True)
class Encoding:
    """What a net sees of a position, as functions that run on the device without waiting for it."""

    planes: Callable[[Positions], Tensor]
    """The net's input [B, C, H, W], of any type; it is converted to the type of the weights."""
    move_indices: Callable[[Positions], Tensor] = moves_as_indices
    """int64[B, M]: the index of each move among the policy logits, from 0 to A - 1; behind the moves of
    a position anything."""


def policy_and_value(net: Any, encoding: Encoding, positions: Positions, num_logits: int = 1) -> tuple[Tensor, Tensor]:
    """Logits of the legal moves [B, M], -inf behind them, and the net's value ([B] or [B, 3]).

    `num_logits`: the fewest that the net may return. Raises UserError for outputs of other shapes or types. A move
    whose index is none of the logits gets NaN, since the host does not wait for the device here: see
    `check_move_indices`.
    """
    logits_BA, value = outputs(net, encoding, positions)
    is_move_BM = positions.is_move()
    rows = len(is_move_BM)
    if logits_BA.ndim != 2 or len(logits_BA) != rows or logits_BA.shape[1] < num_logits:
        raise UserError(
            f"policy logits of {rows} positions, and of moves with indices up to {num_logits - 1}",
            f"the net returned the shape {list(logits_BA.shape)}",
            f"return [B, A] with an A of {num_logits} or more, or give other indices (Encoding.move_indices)",
        )
    check_value(value, rows)
    indices_BM = indices_of(encoding, positions)
    inside_BM = indices_BM.clamp(0, logits_BA.shape[1] - 1)
    logits_BM = logits_BA.gather(1, inside_BM).masked_fill(inside_BM != indices_BM, torch.nan)
    return logits_BM.masked_fill(~is_move_BM, -torch.inf), value


def outputs(net: Any, encoding: Encoding, positions: Positions) -> tuple[Tensor, Tensor]:
    """Policy logits and value as the net returns them. Raises UserError where they are not two tensors of
    floating-point numbers, or the planes are no tensor."""
    planes: Any = encoding.planes(positions)
    if not isinstance(planes, Tensor):
        raise UserError("the planes of a position", f"Encoding.planes returned {_kind(planes)}", "return a tensor")
    found: Any = net(planes.to(dtype_of(net)))
    parts = list(cast("Sequence[Any]", found)) if isinstance(found, (tuple, list)) else [found]
    if len(parts) != 2 or not all(isinstance(part, Tensor) and part.is_floating_point() for part in parts):
        returned = " and ".join(map(_kind, parts[:3])) + " and more" * (len(parts) > 3)
        do = "return two tensors of floating-point numbers, policy logits [B, A] and the value"
        raise UserError("policy logits and value", f"the net returned {returned}", do)
    return parts[0], parts[1]


def indices_of(encoding: Encoding, positions: Positions) -> Tensor:
    """int64[B, M]: the index of each move among the logits. Raises UserError for another shape or type."""
    indices: Any = encoding.move_indices(positions)
    shape = positions.moves_BM.shape
    if not isinstance(indices, Tensor) or indices.dtype not in (torch.int32, torch.int64) or indices.shape != shape:
        asked = f"the indices of {list(shape)} moves"
        raise UserError(asked, f"Encoding.move_indices returned {_kind(indices)}", "return an int64 of the same shape")
    return indices.long()


def _kind(found: Any) -> str:
    """'a tensor of float32 [8, 24]', or 'a list'."""
    if isinstance(found, Tensor):
        return f"a tensor of {str(found.dtype).removeprefix('torch.')} {list(found.shape)}"
    return f"a {type(found).__name__}"


def check_value(value: Tensor, rows: int) -> None:
    """Raises UserError for a value whose shape is not [B] or [B, 3]."""
    if tuple(value.shape) not in ((rows,), (rows, 3)):
        raise UserError(
            f"the value of {rows} positions",
            f"the net returned the shape {list(value.shape)}",
            "return [B], for example value[:, 0], or logits of win, draw and loss [B, 3]",
        )


def largest_move_index(encoding: Encoding, leaves: Leaves, device: torch.device) -> int:
    """The largest index among the policy logits of any legal move in these positions. It waits for the
    device. Raises UserError where two moves of a position have the same index, and as `indices_of`."""
    positions = Positions.of(leaves, device)
    is_move_BM = positions.is_move()
    indices_BM = indices_of(encoding, positions).masked_fill(~is_move_BM, -1)
    sorted_BM, order_BM = indices_BM.sort(1)
    is_twice_BM = (sorted_BM[:, 1:] == sorted_BM[:, :-1]) & (sorted_BM[:, 1:] >= 0)
    if is_twice_BM.any():
        row, column = (int(place) for place in is_twice_BM.nonzero()[0])
        first, second = (int(positions.moves_BM[row, order_BM[row, at]]) for at in (column, column + 1))
        found = f"both have the index {int(sorted_BM[row, column])}, so a net cannot tell them apart"
        do = "give each legal move of a position a logit of its own (Encoding.move_indices)"
        raise UserError(f"the policy logits of the moves {first} and {second}", found, do)
    return max(0, int(indices_BM.max()))


def check_move_indices(game: Game, net: Any, encoding: Encoding, leaves: Leaves, device: torch.device) -> None:
    """Raises UserError where a legal move of these positions has an index that is none of the net's logits. It
    evaluates the net again and waits for the device, so it is for batches whose priors are NaN."""
    positions = Positions.of(leaves, device)
    with torch.no_grad():
        num_logits = outputs(net, encoding, positions)[0].shape[1]
    indices_BM = indices_of(encoding, positions)
    is_wrong_BM = positions.is_move() & ((indices_BM < 0) | (indices_BM >= num_logits))
    if is_wrong_BM.any():
        move, index = (int(found_BM[is_wrong_BM][0]) for found_BM in (positions.moves_BM, indices_BM))
        raise UserError(
            f"the policy logit of move {move} of {game.name}",
            f"its index is {index}, and the net returned {num_logits} logits",
            f"return more logits, or give indices from 0 to {num_logits - 1} (Encoding.move_indices)",
        )


def dtype_of(net: Any) -> torch.dtype:
    """The type of a net's weights."""
    first = next(net.parameters(), None) if isinstance(net, nn.Module) else None
    return torch.get_default_dtype() if first is None else first.dtype


def expected_outcome(value: Tensor) -> Tensor:
    """[B], -1 to 1, from a value [B] or from logits of win, draw and loss [B, 3]."""
    if value.ndim == 1:
        return value
    wdl_B3 = value.softmax(1)
    return wdl_B3[:, 0] - wdl_B3[:, 2]
