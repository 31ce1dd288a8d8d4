"""A player that uses the tree search of ranks.search with any evaluator.

It keeps its tree from move to move."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from ranks.chess.board import Board
from ranks.chess.core.evaluation import CP_PER_DECADE, expected_outcomes
from ranks.chess.core.position import HALF_MOVES
from ranks.chess.core.rules import CHESS
from ranks.chess.core.tables import Words
from ranks.chess.core.words import CLOCKS_WORD
from ranks.chess.players.player import Choice, Info, Limits
from ranks.chess.players.spec import no_options, number
from ranks.chess.players.time_plan import time_plan
from ranks.errors import UserError
from ranks.search.config import SearchConfig
from ranks.search.evaluation import Evaluation, Evaluator, Leaves, uniform_evaluator
from ranks.search.search import Search

MOST_SIMULATIONS = 100_000
MOST_LEAVES = 8
"""The most leaves in one batch. A larger batch shares the fixed cost of a call to the evaluator."""


class SearchPlayer:
    """Plays the move that the search chooses.

    Nodes are simulations; a move gets `config.simulations` at most."""

    def __init__(self, name: str, evaluator: Evaluator, config: SearchConfig) -> None:
        self.name, self.config = name, config
        self._evaluator = evaluator
        self._search: Search | None = Search(CHESS, config, num_games=1)
        self._game_id = 0
        self._start: Words | None = None
        self._moves: list[int] = []

    def new_game(self, seed: int) -> None:
        self._game_id = seed % 2**64
        self._start = None

    def choose(self, board: Board, limits: Limits) -> Choice:
        started_s = limits.now()
        enough_s = time_plan(limits).enough_s
        assert self._search is not None, f"{self.name} is closed"
        self._go_to(self._search, board)
        simulations = min(limits.nodes or self.config.simulations, self.config.simulations)
        self._search.begin(simulations=simulations)
        for step, _ in enumerate(self._search.steps(self._evaluator), start=1):
            elapsed_s = limits.now() - started_s
            if limits.on_info and step.bit_count() == 1:
                _report(self._lines(self._search, limits.multipv), elapsed_s, limits)
            stopped = limits.should_stop is not None and limits.should_stop()
            if stopped or elapsed_s >= enough_s:
                break
        lines = self._lines(self._search, max(limits.multipv, 1))
        if limits.on_info and lines:
            _report(lines, limits.now() - started_s, limits)
        return lines[0] if lines else Choice(board.legal_moves()[0])

    def close(self) -> None:
        self._search = None

    def _go_to(self, search: Search, board: Board) -> None:
        """Move the root to a board's position: along the moves that were played, else with a new
        tree.

        For the tree a third repetition or 50 moves end the game, but a GUI may continue until
        someone claims the draw. Then the tree starts from the position without its history."""
        known = len(self._moves)
        same_start = self._start is not None and (self._start == board.rows[0]).all()
        self._start = board.rows[0].copy()
        try:
            if board.outcome():
                search.set_root(0, self._game_id, (), without_history(board.words))
            elif same_start and board.moves[:known] == self._moves:
                for move in board.moves[known:]:
                    search.play([move])
            else:
                search.set_root(0, self._game_id, board.moves, self._start)
        except UserError:  # the game passed through a drawn position
            search.set_root(0, self._game_id, (), board.words)
        self._moves = board.moves.copy()

    def _lines(self, search: Search, multipv: int) -> list[Choice]:
        """The chosen move first, then the others by visits; empty if nothing has been evaluated."""
        result = search.result()
        num_moves, chosen = int(result.num_moves_P[0]), int(result.chosen_P[0])
        visits = {int(m): int(v) for m, v in zip(result.moves_PM[0, :num_moves], result.visits_PM[0], strict=False)}
        values = {int(m): float(q) for m, q in zip(result.moves_PM[0, :num_moves], result.q_PM[0], strict=False)}
        order = sorted(visits, key=lambda move: (move != chosen, -visits[move]))
        lines: list[Choice] = []
        for move in order[:multipv]:
            pv = search.principal_variation(0, move) or [move]
            lines.append(Choice(move, centipawns(values[move]), None, len(pv), int(result.simulations_P[0]), tuple(pv)))
        return lines


def _report(lines: Sequence[Choice], elapsed_s: float, limits: Limits) -> None:
    assert limits.on_info is not None
    for rank, line in enumerate(lines, start=1):
        limits.on_info(Info(line.depth, line.score_cp, None, line.nodes, elapsed_s, line.pv, rank))


def without_history(words: Words) -> Words:
    """A copy of a position, uint64[13], with the halfmove clock at 0."""
    words = words.copy()
    words[CLOCKS_WORD] &= ~HALF_MOVES
    return words


def centipawns(value: float) -> int:
    """Convert an expected outcome from -1 to 1 to centipawns on the logistic scale, at most 49
    pawns."""
    value = min(max(value, -1 + 1e-12), 1 - 1e-12)
    return round(CP_PER_DECADE * math.log10((1 + value) / (1 - value)))


def material_evaluator(leaves: Leaves) -> Evaluation:
    """Uniform priors; the value is the outcome that the material predicts."""
    value_B = np.zeros(len(leaves.num_moves_B), np.float32)
    expected_outcomes(leaves.states_BW, leaves.num_moves_B, value_B)
    return uniform_evaluator(leaves)._replace(value_B=value_B)


def material_player(spec: str, argument: str | None, options: Mapping[str, str]) -> SearchPlayer:
    """`mcts:SIMULATIONS`: the tree search of ranks.search with a material evaluator."""
    no_options(spec, options)
    simulations = number(spec, argument, 1, MOST_SIMULATIONS, "mcts:SIMULATIONS, e.g. mcts:800")
    leaves_per_game = max(1, min(simulations // 100, MOST_LEAVES))
    config = SearchConfig(simulations=simulations, count_reused=True, leaves_per_game=leaves_per_game)
    return SearchPlayer(spec, material_evaluator, config)
