"""What a caller gives, made into arrays that kernels can trust: kernels read and write without looking at bounds.

Legend: P slots, T moves of a game, W words of a state.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ranks.errors import UserError
from ranks.search.evaluation import Longs, Moves, Words
from ranks.search.game import Game


def integers(given: Sequence[int] | Longs | Moves, name: str, end: int) -> Longs:
    """A flat list of whole numbers from 0 to end - 1."""
    array = np.asarray(given)
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        raise UserError(f"a list, each item a {name}", f"{array.dtype}{list(array.shape)}", "give whole numbers")
    numbers = array.astype(np.int64)
    outside = (numbers < 0) | (numbers >= end)
    if outside.any():
        raise UserError(f"{name} {array[outside][0]}", f"it can be 0 to {end - 1}", "give one of these")
    return numbers


def slots_of(given: Sequence[int] | Longs | None, num_games: int) -> Longs:
    """The slots asked for, all if None."""
    return np.arange(num_games) if given is None else integers(given, "slot", num_games)


def slot_of(given: int, num_games: int) -> int:
    return int(integers([given], "slot", num_games)[0])


def game_id_of(given: int) -> np.uint64:
    if not 0 <= int(given) < 2**64:
        raise UserError(f"game_id = {given}", "a game's id is 64 bits without a sign", "give 0 to 2**64 - 1")
    return np.uint64(given)


def moves_of(given: Sequence[int] | Longs | Moves) -> Moves:
    """Numbers that can be moves; whether they are legal is for the rules to say."""
    return integers(given, "move", 2**16).astype(np.uint16)


def state_of(given: Words | None, game: Game) -> Words:
    """The words of a state, of shape (W,), from (W,) or one row of shape (1, W); the game's initial state if None."""
    if given is None:
        return game.initial
    array, num_words = np.asarray(given), len(game.initial)
    if array.shape not in ((num_words,), (1, num_words)) or array.dtype.kind not in "iu":
        raise UserError(
            f"a start of {game.name}",
            f"{array.dtype}{list(array.shape)}",
            f"give uint64[{num_words}] or one row of them, uint64[1, {num_words}]",
        )
    return np.ascontiguousarray(array.reshape(num_words), np.uint64)


def budgets_of(given: int | Longs, num_slots: int, most: int) -> Longs:
    """A number of simulations for each slot, from one for all of them or one each."""
    array = np.asarray(given)
    budget_P = integers(np.full(num_slots, array) if array.ndim == 0 else array, "budget of simulations", most + 1)
    if len(budget_P) != num_slots:
        raise UserError(f"{len(budget_P)} budgets of simulations", f"{num_slots} slots", "give one, or one each")
    return budget_P
