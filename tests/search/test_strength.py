"""Playing strength on solved games; noise, budgets and policies as the papers define them."""

from __future__ import annotations

from typing import Literal

import numba
import numpy as np
import pytest

from ranks.search.config import SearchConfig
from ranks.search.evaluation import Evaluation, Leaves, uniform_evaluator
from ranks.search.game import LEGAL_MOVES, PLAY, Game
from ranks.search.games.connect_four import CONNECT_FOUR
from ranks.search.games.connect_four_solver import TABLE_BITS, score, solve
from ranks.search.games.tictactoe import TICTACTOE
from ranks.search.gumbel import considered_visits
from ranks.search.search import Search
from tests.search import reference
from tests.search.solved_positions import Solved, positions, share_of_best_moves


def perft(game: Game, depth: int) -> int:
    def count(node: reference.Node, left: int) -> int:
        if left == 1 or not node.moves:
            return len(node.moves)
        return sum(count(reference.after(game, node, move), left - 1) for move in node.moves)

    return count(reference.new_node(game, game.initial[None].copy(), []), depth)


@pytest.mark.parametrize(
    ("game", "counts"),
    [(TICTACTOE, [9, 72, 504, 3024, 15120, 54720]), (CONNECT_FOUR, [7, 49, 343, 2401, 16807])],
    ids=lambda value: getattr(value, "name", ""),
)
def test_rules_by_perft(game: Game, counts: list[int]) -> None:
    assert [perft(game, depth + 1) for depth in range(len(counts))] == counts


def test_every_line_wins_and_edges_do_not_wrap() -> None:
    row_of = lambda bit: (bit // 7, bit % 7)  # noqa: E731 - column and row of a square
    squares = [7 * column + row for column in range(7) for row in range(6)]
    lines = set()
    for start in squares:
        for dc, dr in ((1, 0), (0, 1), (1, 1), (1, -1)):
            line = [(row_of(start)[0] + i * dc, row_of(start)[1] + i * dr) for i in range(4)]
            if all(0 <= c < 7 and 0 <= r < 6 for c, r in line):
                lines.add(sum(1 << 7 * c + r for c, r in line))
    assert len(lines) == 69
    rng = np.random.default_rng(0)
    moves, keys = np.zeros(7, np.uint16), np.zeros(1, np.uint64)
    for _ in range(3000):
        stones = int(sum(1 << square for square in rng.choice(squares, int(rng.integers(4, 14)), replace=False)))
        lost = CONNECT_FOUR.legal_moves(np.array([[0, stones]], np.uint64), 0, keys, 0, 0, moves, 0) == -1
        assert lost == any(stones & line == line for line in lines)


def test_solver_agrees_with_plain_minimax() -> None:
    table = np.zeros(1 << TABLE_BITS, np.uint64)

    def minimax(node: reference.Node) -> int:
        """The score: of a game that is over, the stones that the winner has left, plus one."""
        if node.outcome is not None:
            stones = sum(int(word).bit_count() for word in node.state[0])
            return int(node.outcome) * ((44 - stones) // 2)
        return max(-minimax(reference.after(CONNECT_FOUR, node, move)) for move in node.moves)

    values = []
    for position in positions(25, least_stones=31, seed=3):
        node = reference.new_node(CONNECT_FOUR, CONNECT_FOUR.initial[None].copy(), [])
        for move in position.moves:
            node = reference.after(CONNECT_FOUR, node, move)
        for child in (reference.after(CONNECT_FOUR, node, move) for move in node.moves):
            if child.outcome is None:
                values.append(minimax(child))
                mine, theirs = child.state[0]
                assert solve(mine, theirs, table) == np.sign(values[-1])
                assert score(mine, theirs, table) == values[-1]
    assert {-3, -1, 0, 1, 2} <= set(values)


@pytest.fixture(scope="module")
def solved() -> list[Solved]:
    """300 random positions of 26 to 33 stones in which some moves are better than others.

    Earlier positions are often decided by zugzwang twenty plies later, which no search without a network finds."""
    return positions(300, least_stones=26, seed=1)


def test_one_simulation_solves_few_positions(solved: list[Solved]) -> None:
    assert share_of_best_moves(solved, SearchConfig(simulations=1, reuse=False)) < 0.8


@pytest.mark.parametrize("root", ["puct", "gumbel"])
def test_solved_connect_four_positions(root: Literal["puct", "gumbel"], solved: list[Solved]) -> None:
    config = SearchConfig(simulations=8000, root=root, gumbel_scale=0.0, reuse=False, edges_per_node=5)
    assert share_of_best_moves(solved, config) >= 0.99


def boards(games: list[list[int]], config: SearchConfig) -> Search:
    search = Search(TICTACTOE, config, len(games), groups=1)
    for slot, moves in enumerate(games):
        search.set_root(slot, 0, moves)
    return search


@pytest.mark.parametrize("side", [0, 1])
@pytest.mark.parametrize("root", ["puct", "gumbel"])
def test_tictactoe_is_never_lost(root: Literal["puct", "gumbel"], side: int) -> None:
    """Against every possible line of play; positions of one depth are searched at once, equal ones once."""
    no_search = SearchConfig(simulations=1)
    config = SearchConfig(simulations=5000, root=root, gumbel_scale=0.0, reuse=False)
    games: list[list[int]] = [[]]
    ply = 0
    while games:
        if ply % 2 == side:
            chosen_P = boards(games, config).run(uniform_evaluator).chosen_P.tolist()
            games = [[*moves, move] for moves, move in zip(games, chosen_P, strict=True)]
        else:
            board = boards(games, no_search)
            games = [[*moves, int(move)] for slot, moves in enumerate(games) for move in board.legal_moves(slot)]
        board = boards(games, no_search)
        outcome_P = board.outcome()
        if ply % 2 != side:
            assert not (outcome_P == -1).any(), [games[slot] for slot in np.flatnonzero(outcome_P == -1)]
        games = list(
            {board.state(slot).tobytes(): games[slot] for slot in np.flatnonzero(np.isnan(outcome_P)).tolist()}.values()
        )
        ply += 1
    assert ply == 9


@pytest.mark.parametrize("alpha", [0.3, 1.5])
def test_dirichlet_noise_has_the_right_mean_and_variance(alpha: float) -> None:
    games = 4000
    config = SearchConfig(simulations=1, dirichlet_alpha=alpha, dirichlet_fraction=1.0, reuse=False)
    search = Search(TICTACTOE, config, games, groups=1)
    for slot in range(games):
        search.set_root(slot, slot)
    result = search.run(uniform_evaluator)
    order = np.argsort(result.moves_PM, axis=1)
    samples = np.take_along_axis(result.priors_PM.astype(np.float64), order, axis=1)
    variance = (1 / 9) * (8 / 9) / (9 * alpha + 1)
    np.testing.assert_allclose(samples.sum(axis=1), 1, atol=1e-6)
    assert np.abs(samples.mean(axis=0) - 1 / 9).max() < 4.5 * np.sqrt(variance / games)
    assert np.abs(samples.var(axis=0) / variance - 1).max() < 0.2
    assert abs(samples.var(axis=0).mean() / variance - 1) < 0.03
    covariance = np.cov(samples.T)[~np.eye(9, dtype=bool)]
    np.testing.assert_allclose(covariance.mean(), -(1 / 81) / (9 * alpha + 1), rtol=0.03)


def test_noise_is_added_once_and_depends_on_game_and_ply() -> None:
    config = SearchConfig(simulations=20, dirichlet_fraction=0.25)
    search = Search(TICTACTOE, config, 3)
    for slot, game_id in enumerate([5, 5, 6]):
        search.set_root(slot, game_id)
    first = search.run(uniform_evaluator)
    again = search.run(uniform_evaluator)
    np.testing.assert_array_equal(first.priors_PM[0], first.priors_PM[1])
    assert (first.priors_PM[0] != first.priors_PM[2]).any()
    assert np.abs(first.priors_PM - 1 / 9).max() <= 0.25
    assert sorted(again.priors_PM[0]) == sorted(first.priors_PM[0])
    assert again.visits_PM[0].sum() == 40


def test_sequential_halving_divides_simulations_as_in_the_paper() -> None:
    assert considered_visits(4, 8) == (0, 0, 0, 0, 1, 1, 2, 2)
    for num_considered in range(1, 20):
        for simulations in (1, 2, 7, 16, 33, 100, 200):
            assert list(considered_visits(num_considered, simulations)) == reference.sequential_halving(
                num_considered, simulations
            )
    share = [(visit, considered_visits(16, 200).count(visit)) for visit in (0, 2, 3, 8, 9, 20, 21, 45)]
    assert share == [(0, 16), (2, 16), (3, 8), (8, 8), (9, 4), (20, 4), (21, 2), (45, 2)]
    priors, values = arms(1)
    result = bandit(priors, values, SearchConfig(simulations=32, root="gumbel", num_considered=8))
    assert sorted(result.visits_PM[0].tolist()) == [1, 1, 1, 1, 3, 3, 11, 11]


ARMS = 8


@numba.njit([PLAY])
def play_arm(from_states, from_row, to_states, to_row, move):
    arm = from_states[from_row, 0]
    to_states[to_row, 0] = np.uint64(move) + np.uint64(1) if arm == np.uint64(0) else arm
    to_states[to_row, 1] = from_states[from_row, 1]
    to_states[to_row, 2] = from_states[from_row, 2] + np.uint64(1)


@numba.njit([LEGAL_MOVES])
def look_arm(states, row, keys, first, end, moves, at):
    count = ARMS if states[row, 0] == np.uint64(0) else 1
    for move in range(count):
        moves[at + move] = move
    return count


BANDIT = Game("bandit", np.zeros(3, np.uint64), ARMS, 0, 0, play_arm, look_arm)
"""One choice among arms, then positions with one move. Words: arm + 1, number of the bandit, plies."""


def arms(count: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(4)
    return rng.dirichlet(np.ones(ARMS), count), rng.uniform(-0.9, 0.9, (count, ARMS))


def bandit(priors_GA: np.ndarray, values_GA: np.ndarray, config: SearchConfig):
    """Search bandits with exact evaluations: an arm has its own value, the root the mean value under its priors."""

    def evaluate(leaves: Leaves) -> Evaluation:
        arm_B, game_B, ply_B = leaves.states_BW.astype(np.int64).T
        priors_BM = np.where(arm_B[:, None] == 0, priors_GA[game_B], np.eye(ARMS)[0]).astype(np.float32)
        sign_B = np.where(ply_B % 2 == 0, 1.0, -1.0)
        mean_B = (priors_GA * values_GA).sum(axis=1)[game_B]
        value_B = np.where(arm_B == 0, mean_B, sign_B * values_GA[game_B, arm_B - 1])
        return Evaluation(priors_BM, value_B.astype(np.float32))

    search = Search(BANDIT, config, len(priors_GA), groups=1)
    for slot in range(len(priors_GA)):
        search.set_root(slot, slot, start=np.array([0, slot, 0], np.uint64))
    return search.run(evaluate)


@pytest.mark.parametrize(("simulations", "share"), [(2, 0.9), (4, 0.95), (8, 1.0), (16, 1.0), (64, 1.0)])
def test_the_improved_policy_of_a_gumbel_root_is_better_than_the_priors(simulations: int, share: float) -> None:
    """Always where every arm was visited. Elsewhere v_mix estimates some arms, and is sometimes wrong."""
    priors_GA, values_GA = arms(500)
    result = bandit(priors_GA, values_GA, SearchConfig(simulations=simulations, root="gumbel", num_considered=ARMS))
    by_arm = np.argsort(result.moves_PM, axis=1)
    policy_GA = np.take_along_axis(result.policy_PM, by_arm, axis=1)
    np.testing.assert_allclose(policy_GA.sum(axis=1), 1)
    before_G, after_G = (priors_GA * values_GA).sum(axis=1), (policy_GA * values_GA).sum(axis=1)
    assert (after_G >= before_G - 1e-6).mean() >= share
    assert after_G.mean() > before_G.mean() + 0.1
    played_G = values_GA[np.arange(500), result.chosen_P]
    assert played_G.mean() > before_G.mean() + 0.1
    visited = result.visits_PM > 0
    expected = np.take_along_axis(values_GA, result.moves_PM.astype(int), axis=1)
    np.testing.assert_allclose(result.q_PM[visited], expected[visited], atol=1e-6)
