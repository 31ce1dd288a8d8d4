"""Checks of a caller's arguments, which become arrays that kernels can use: kernels do not check bounds.

Legend: P slots, T moves of a game, W words of a state.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ranks.errors import UserError
from ranks.search.evaluation import Int64Array, Moves, Words
from ranks.search.game import Game


def check_integers(given: Sequence[int] | Int64Array | Moves, name: str, end: int) -> Int64Array:
    """int64[n] from a flat list of whole numbers from 0 to end - 1."""
    array = np.asarray(given)
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        raise UserError(f"a list, each item a {name}", f"{array.dtype}{list(array.shape)}", "give whole numbers")
    numbers = array.astype(np.int64)
    outside = (numbers < 0) | (numbers >= end)
    if outside.any():
        raise UserError(f"{name} {array[outside][0]}", f"it can be 0 to {end - 1}", "give one of these")
    return numbers


def check_slots(given: Sequence[int] | Int64Array | None, num_games: int) -> Int64Array:
    """The given slots, all if None."""
    return np.arange(num_games) if given is None else check_integers(given, "slot", num_games)


def check_slot(given: int, num_games: int) -> int:
    """One slot."""
    return int(check_integers([given], "slot", num_games)[0])


def check_game_id(given: int) -> np.uint64:
    """A game's id: 64 bits without a sign."""
    if not 0 <= int(given) < 2**64:
        raise UserError(f"game_id = {given}", "a game's id is 64 bits without a sign", "give 0 to 2**64 - 1")
    return np.uint64(given)


def check_moves(given: Sequence[int] | Int64Array | Moves) -> Moves:
    """Moves as 16-bit numbers. Whether they are legal is not checked here."""
    return check_integers(given, "move", 2**16).astype(np.uint16)


def check_state(given: Words | None, game: Game) -> Words:
    """A state of shape (W,), from shape (W,) or (1, W); the game's initial state if None."""
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


def check_simulations(given: int | Int64Array, num_slots: int, most: int) -> Int64Array:
    """A number of simulations for each slot, from one number for all of them or one each."""
    array = np.asarray(given)
    simulations_P = check_integers(
        np.full(num_slots, array) if array.ndim == 0 else array, "number of simulations", most + 1
    )
    if len(simulations_P) != num_slots:
        raise UserError(f"{len(simulations_P)} numbers of simulations", f"{num_slots} slots", "give one, or one each")
    return simulations_P
