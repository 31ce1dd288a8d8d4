"""What a game gives to the search: its rules as jitted functions with explicit signatures.

Legend: G rows of states, W words of one state.

Two players move in turn; values are always those of the side to move. A state is W words of 64 bits. The functions get
whole arrays and row numbers, since a view of a row costs more than many a rule.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numba import types

LOST, DRAWN, WON = -1, -2, -3
"""What `look` returns where the game is over, for the side to move."""

STATES = types.Array(types.uint64, 2, "C")
KEYS = types.Array(types.uint64, 1, "C")
MOVES = types.Array(types.uint16, 1, "C")
PLAY = types.void(STATES, types.int64, STATES, types.int64, types.uint16)
LOOK = types.int64(STATES, types.int64, KEYS, types.int64, types.int64, MOVES, types.int64)
PLAY_TYPE = types.FunctionType(PLAY)
"""The type of `Game.play` as an argument of a kernel."""
LOOK_TYPE = types.FunctionType(LOOK)


class FirstClass:
    """A jitted rule as an argument of kernels. Numba looks the address of a jitted function up at each call; this
    object has looked before."""

    def __init__(self, rule: Any, signature: Any) -> None:
        compiled = rule.get_compile_result(signature)
        self.rule = rule  # keeps the machine code alive
        self.address: int = compiled.library.get_pointer_to_function(compiled.fndesc.llvm_cfunc_wrapper_name)
        self._numba_type_ = types.FunctionType(signature)

    def __wrapper_address__(self) -> int:
        """Numba's protocol for first-class functions."""
        return self.address


class Game(NamedTuple):
    """The rules of one game.

    `play(from_states, from_row, to_states, to_row, move)` writes the state after `move`; the two rows may be the same.

    `look(states, row, keys, first, end, moves, at)` writes the legal moves of a state to `moves[at:at+n]` in a fixed
    order and returns n > 0, or LOST, DRAWN or WON. `keys[first:end]` are the keys of all positions before this one,
    oldest first, for games in which a repetition counts; it may begin anywhere before the last irreversible move.
    """

    name: str
    initial: np.ndarray[Any, np.dtype[np.uint64]]
    """uint64[W]: where a game starts."""
    max_moves: int
    """No state has more legal moves."""
    key_word: int
    """Which word of a state is its key; two states with equal keys count as the same position."""
    history: int
    """As many earlier positions as `look` may ever ask for; 0 where repetition does not matter."""
    play: Callable[..., None]
    look: Callable[..., int]
