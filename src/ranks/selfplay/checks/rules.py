"""Checks that a game can be learned by self-play, and that its rules keep to their contract.

Kernels do not check bounds, so rules that write too far would destroy memory.
"""

from __future__ import annotations

import dis
import inspect
from collections.abc import Iterator
from types import FunctionType
from typing import Any

import numpy as np

from ranks.errors import UserError
from ranks.search.evaluation import Leaves, Moves, Words
from ranks.search.game import DRAWN, LOST, WON, Game
from ranks.search.trees import GUARD
from ranks.selfplay.games import NO_KIND
from ranks.selfplay.random import MOVE, uniform

GAMES = 16
"""Random games that are played."""
ELSEWHERE = 3
"""Another row, and another place of keys and moves, than 0."""
ONES = np.uint64(2**64 - 1)


def check_rules(game: Game, max_plies: int) -> Leaves:
    """Play some random games and check each answer of the rules. Returns the positions that were seen.

    Raises UserError for chance, hidden information, more than two players, for fields that a game
    cannot have, and for rules that return an impossible number of moves, a move twice, change the
    position that they start from, or answer otherwise for the same position in another row or with
    more earlier keys than `history`; for rules that are not compiled, or raise.
    """
    what = f"self-play of {game.name}"
    check_fields(game, what)
    if game.num_players != 2 or game.has_chance or game.has_hidden_information:
        found = f"it has {game.num_players} players" if game.num_players != 2 else "it has chance or hidden information"
        raise UserError(what, found, "only games of two players without chance and hidden information can be learned")
    for name, rule in (("play", game.play), ("legal_moves", game.legal_moves)):
        if not hasattr(rule, "get_compile_result"):
            do = f"decorate it: @kernel({name.upper()}), with ranks.jit.kernel and ranks.search.game.{name.upper()}"
            raise UserError(what, f"its rule {name} is plain Python", do)
        function: FunctionType = rule.py_func  # type: ignore[attr-defined]
        for raising in _raising(function, {function}):
            where = "," if raising is function else f" in {raising.__name__}, which it calls,"
            found = f"its rule {name} has a raise or an assert{where} which compiled searches do not see"
            raise UserError(what, found, "write rules that never raise")
    seen = [leaf for number in range(GAMES) for leaf in _random_game(game, what, number, min(max_plies, 200))]
    if not seen:
        raise UserError(what, "the game is over in its first position", "return its legal moves")
    states, moves, num_moves = zip(*seen, strict=True)
    return Leaves(np.stack(states), np.stack(moves), np.array(num_moves, np.int32))


def _raising(function: FunctionType, seen: set[FunctionType]) -> Iterator[FunctionType]:
    """Yields the functions that have a raise or an assert: this one, and the compiled ones that it calls by name."""
    if any(step.opname == "RAISE_VARARGS" for step in dis.get_instructions(function)):
        yield function
    names = inspect.getclosurevars(function)
    for value in (*names.globals.values(), *names.nonlocals.values()):
        called: FunctionType | None = getattr(value, "py_func", None)
        if called is not None and called not in seen:
            seen.add(called)
            yield from _raising(called, seen)


def check_fields(game: Game, what: str) -> None:
    """Raises UserError for fields of other types, and for numbers that the search cannot have."""
    initial: Any = game.initial
    if not isinstance(initial, np.ndarray) or initial.dtype != np.uint64 or initial.ndim != 1 or not len(initial):
        shown = f"{initial.dtype}{list(initial.shape)}" if isinstance(initial, np.ndarray) else type(initial).__name__
        raise UserError(what, f"its first state is {shown}", "give a uint64[W], for example np.zeros(2, np.uint64)")
    limits = {"max_moves": (1, 65_535), "key_word": (0, len(initial) - 1), "history": (0, 2**31 - 1)}
    if game.edges_per_node is not None:
        limits["edges_per_node"] = (1, game.max_moves)
    for name, (least, most) in limits.items():
        value: Any = getattr(game, name)
        if not isinstance(value, int) or not least <= value <= most:
            raise UserError(what, f"its {name} is {value!r}", f"give a whole number from {least} to {most:,}")


def draw_kind_of(game: Game, state_W: Words) -> int:
    """The index of the kind of a draw, NO_KIND where the game names none. Raises UserError for another index."""
    if game.draw_kind is None:
        return NO_KIND
    kind: Any = game.draw_kind(state_W)
    if not isinstance(kind, int | np.integer) or not 0 <= kind < len(game.draw_kinds):
        found = f"draw_kind returned {kind!r}, and there are {len(game.draw_kinds)} draw_kinds"
        raise UserError(f"self-play of {game.name}", found, "return the index of one of draw_kinds")
    return int(kind)


def _random_game(game: Game, what: str, number: int, max_plies: int) -> Iterator[tuple[Words, Moves, int]]:
    """Yields the state, the legal moves and their number of each position."""
    state_W = game.initial.copy()
    keys = np.zeros(max_plies, np.uint64)
    for ply in range(max_plies):
        earlier = keys[max(0, ply - game.history) : ply]
        where = f"in random game {number} at ply {ply}"
        before_W = state_W
        count, legal, state_W = _legal_moves(game, what, where, state_W, earlier)
        if ply > game.history and legal_moves_at(game, before_W, keys[:ply], 0)[0] != count:
            found = f"{where} legal_moves gives another answer with all {ply} earlier keys"
            do = f"give a history above {game.history}: the most earlier positions that matter"
            raise UserError(what, found, do)
        if count == DRAWN:
            draw_kind_of(game, state_W)
        if count in (LOST, DRAWN, WON):
            return
        keys[ply] = state_W[game.key_word]
        yield state_W, legal, count
        random = uniform(0, np.array([number]), np.array([ply]), MOVE)[0]
        state_W = _play(game, what, where, state_W, legal[int(random * count)])


def _legal_moves(game: Game, what: str, where: str, state_W: Words, earlier: Words) -> tuple[int, Moves, Words]:
    """The number of legal moves, the moves, and the state as the rules have left it. The rules are asked twice, with
    the state, the keys and the moves at other places, as in the trees."""
    count, legal, after_W = legal_moves_at(game, state_W, earlier, 0)
    again, legal_again, after_again_W = legal_moves_at(game, state_W, earlier, ELSEWHERE)
    if count not in (LOST, DRAWN, WON):
        if not 0 < count <= game.max_moves:
            found = f"{where} legal_moves returned {count}"
            raise UserError(what, found, f"return 1 to {game.max_moves} (max_moves), or LOST, DRAWN or WON")
        if len(np.unique(legal[:count])) != count:
            found = f"{where} legal_moves wrote a move twice: {legal[:count].tolist()}"
            raise UserError(what, found, "write each move once")
    same_moves = again == count and (legal_again[: max(count, 0)] == legal[: max(count, 0)]).all()
    if not same_moves or (after_W != after_again_W).any():
        found = f"{where} legal_moves gives other answers for the same state in another row"
        raise UserError(
            what, found, "read states[row] and keys[first:end] alone, and write moves[at], moves[at + 1], ..."
        )
    legal[count if count > 0 else 0 :] = legal[0] if count > 0 else 0  # as in batches: moves, whatever is behind
    return count, legal, after_W


def legal_moves_at(game: Game, state_W: Words, earlier: Words, at: int) -> tuple[int, Moves, Words]:
    """The state is in row `at`, its keys and its moves begin there; everything else is filled with ones."""
    states = np.full((at + 2, len(state_W)), ONES)
    keys = np.full(at + len(earlier) + 1, ONES)
    moves = np.full(at + game.max_moves + GUARD, np.uint16(0xFFFF))
    states[at], keys[at : at + len(earlier)] = state_W, earlier
    count = int(game.legal_moves(states, at, keys, at, at + len(earlier), moves, at))
    return count, moves[at : at + game.max_moves], states[at]


def _play(game: Game, what: str, where: str, state_W: Words, move: int) -> Words:
    """The state after a move. The rules are asked three times: to write it over zeros, over ones, and in place, as the
    trees do."""
    after: list[Words] = []
    for from_row, to_row, fill in ((0, 1, np.uint64(0)), (ELSEWHERE, 1, ONES), (ELSEWHERE, ELSEWHERE, ONES)):
        states = np.full((ELSEWHERE + 2, len(state_W)), fill)
        states[from_row] = state_W
        before = states.copy()
        game.play(states, from_row, states, to_row, move)
        before[to_row] = states[to_row]
        after.append(before[to_row])
        if (states != before).any():
            raise UserError(what, f"{where} play changed another state than its target", "write to to_states[to_row]")
    for other, how in zip(after[1:], ("over a state with other words", "in place of the state itself"), strict=True):
        if (other != after[0]).any():
            found = f"{where} play gives another state when it writes {how}"
            do = "read all words of from_states[from_row] before the first write, and write all of to_states[to_row]"
            raise UserError(what, found, do)
    return after[0]
