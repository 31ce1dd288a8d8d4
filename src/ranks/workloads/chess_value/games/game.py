"""One game that gives positions: random moves at its beginning and now and then later, else two players.

A game is a function of its random numbers, its players and its limits: players start with a cleared table.

Legend: P positions before each move, W = 13 words of a position.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ranks.chess.board import Board
from ranks.chess.players.player import Limits, Player
from ranks.workloads.chess_value.labels.label import NO_RESULT, RESULTS
from ranks.workloads.chess_value.players.score_units import label_cp
from ranks.workloads.chess_value.tasks.worker import Interrupted

DECIDED_CP, DECIDED_PLIES = 1562, 4
"""A game ends as won when so many moves in a row were played with at least this score for the same side, in the unit of
labels: a win probability of 98 %, and 2,500 centipawns of the engine."""


class GameSide(NamedTuple):
    """Who moves, and with which limits."""

    player: Player
    limits: Limits
    counts: bool
    """Whether its nodes are those of the net."""


class FinishedGame(NamedTuple):
    """The moves of a game and how it ended."""

    moves: NDArray[np.uint16]
    result: int
    """For white: 1 won, 0 drawn, -1 lost; 2: unknown."""
    nodes: int
    """That the net searched."""


class OpeningNoise(NamedTuple):
    """Random numbers from 0 to 1 of one game."""

    opening_plies: int
    """Random moves at the beginning."""
    random_share: float
    """Share of random moves after them."""
    random_P2: NDArray[np.float64]
    """[most plies, 2]: whether the move is random, and which."""


def play_game(
    white: GameSide, black: GameSide, noise: OpeningNoise, seed: int, stopping: Callable[[], bool]
) -> FinishedGame:
    """Play one game. Raises Interrupted soon after `stopping()`, Forfeit where a player cannot continue."""
    board, sides, decided, nodes = Board(), (white, black), 0, 0

    def ended(result: int) -> FinishedGame:
        return FinishedGame(np.array(board.moves, np.uint16), result, nodes)

    for player in {id(side.player): side.player for side in sides}.values():
        player.new_game(seed)
    for is_random, which in noise.random_P2.tolist():
        outcome = board.outcome()
        if outcome is not None:
            return ended(RESULTS[outcome.result])
        if stopping():
            raise Interrupted
        if board.ply < noise.opening_plies or is_random < noise.random_share:
            legal = sorted(board.legal_moves())
            board.push(legal[int(which * len(legal))])
            decided = 0
            continue
        sign = 1 if board.white_to_move else -1
        side = sides[0 if sign == 1 else 1]
        choice = side.player.choose(board, side.limits)
        decided = _count(decided, sign * label_cp(choice, side.player))
        nodes += choice.nodes if side.counts else 0
        board.push(choice.move)
        if abs(decided) >= DECIDED_PLIES:
            return ended(1 if decided > 0 else -1)
    outcome = board.outcome()
    return ended(RESULTS[outcome.result] if outcome is not None else NO_RESULT)


def boards_of(moves: Sequence[int]) -> NDArray[np.uint64]:
    """uint64[P, 13]: the positions before each move of a game from the initial position."""
    board = Board()
    for move in moves:
        board.push(move)
    return board.rows[:-1].copy()


def _count(decided: int, score_cp: int) -> int:
    """How many moves in a row were played with a decided score for white (above 0) or black (below 0)."""
    if abs(score_cp) < DECIDED_CP:
        return 0
    sign = 1 if score_cp > 0 else -1
    return decided + sign if decided * sign > 0 else sign
