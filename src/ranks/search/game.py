"""What a game gives to the search: its rules as jitted functions with explicit signatures.

Legend: G rows of states, W words of one state.

Two players move in turn; values are always those of the side to move. A state is W words of 64 bits. The functions get
whole arrays and row numbers, because a view of a row costs more time than many rules.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numba import types

LOST, DRAWN, WON = -1, -2, -3
"""What `Game.legal_moves` returns where the game is over, for the side to move; see `outcome_of`."""

STATES = types.Array(types.uint64, 2, "C")
KEYS = types.Array(types.uint64, 1, "C")
MOVES = types.Array(types.uint16, 1, "C")
PLAY = types.void(STATES, types.int64, STATES, types.int64, types.uint16)
"""The Numba signature of `Game.play`."""
LEGAL_MOVES = types.int64(STATES, types.int64, KEYS, types.int64, types.int64, MOVES, types.int64)
"""The Numba signature of `Game.legal_moves`."""
PLAY_TYPE = types.FunctionType(PLAY)
"""The type of `Game.play` as an argument of a kernel."""
LEGAL_MOVES_TYPE = types.FunctionType(LEGAL_MOVES)


def outcome_of(num_moves: Any) -> Any:
    """How a game ended for the side to move, -1, 0 or 1, from LOST, DRAWN or WON: from a negative number of moves."""
    return -2.0 - num_moves


class CompiledRule:
    """A jitted rule as an argument of kernels, with its address already looked up.

    Numba looks the address of a jitted function up at each call. This object follows Numba's protocol for first-class
    functions and does it once.
    """

    def __init__(self, rule: Any, signature: Any) -> None:
        compiled = rule.get_compile_result(signature)
        self.rule = rule  # keeps the machine code alive
        self.address: int = compiled.library.get_pointer_to_function(compiled.fndesc.llvm_cfunc_wrapper_name)
        self._numba_type_ = types.FunctionType(signature)

    def __wrapper_address__(self) -> int:
        """The address that Numba asks for."""
        return self.address


class Game(NamedTuple):
    """The rules of one game.

    `play(from_states, from_row, to_states, to_row, move)` writes the state after `move`; the two rows may be the same.

    `legal_moves(states, row, keys, first, end, moves, at)` writes the legal moves of a state to `moves[at:at+n]` in a
    fixed order and returns n > 0. Where the game is over it returns LOST, DRAWN or WON. `keys[first:end]` are the keys
    of all positions before this one, oldest first, for games in which a repetition counts; it may begin anywhere before
    the last irreversible move.
    """

    name: str
    initial: np.ndarray[Any, np.dtype[np.uint64]]
    """uint64[W]: where a game starts."""
    max_moves: int
    """No state has more legal moves."""
    key_word: int
    """Which word of a state is its key; two states with equal keys count as the same position."""
    history: int
    """The most earlier positions that `legal_moves` ever reads; 0 where repetition does not matter."""
    play: Callable[..., None]
    legal_moves: Callable[..., int]
    num_players: int = 2
    has_chance: bool = False
    """Dice or cards: such games, like those below, are for programs that refuse them with a clear message."""
    has_hidden_information: bool = False
    draw_kinds: tuple[str, ...] = ()
    """Names of the kinds of draws, for statistics: stalemate, ..."""
    draw_kind: Callable[[np.ndarray[Any, np.dtype[np.uint64]]], int] | None = None
    """Of a drawn position, uint64[W] as `legal_moves` has left it: the index of its kind in `draw_kinds`."""
    edges_per_node: int | None = None
    """Room of a tree for legal moves, as a mean over its nodes, where `SearchConfig.edges_per_node` does not say; None:
    max_moves. It saves memory where few positions have many moves: a chess position has 218 at most, and 35 on
    average. A search whose room is used up ends early."""
