from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from ranks.chess.match.standings import rate
from ranks.errors import UserError
from ranks.rating import bradley_terry
from ranks.rating.bradley_terry import MODEL_PAIRS, fit
from ranks.rating.crosstable import Crosstable, Points
from ranks.rating.davidson import log_slopes, outcome_probabilities
from ranks.rating.elo import ELO_PER_NAT, Z95, elo_of


def simulated(elo: dict[str, float], pairs: int, seed: int, shared: float = 0.0) -> Crosstable:
    """A round robin in the model; a share `shared` of openings decides both games of its pair by
    the same random number."""
    rng = np.random.default_rng(seed)
    table = Crosstable()
    for first, second in itertools.combinations(elo, 2):
        uniform_P, other_P, shared_P = rng.random((3, pairs))
        ahead = elo[first] - elo[second]
        white = results(uniform_P, ahead + 35.0)
        black = 2 - results(np.where(shared_P < shared, uniform_P, other_P), 35.0 - ahead)
        for points in zip(white.tolist(), black.tolist(), strict=True):
            table.add(first, second, *points)
    return table


def results(uniform_P: np.ndarray, advantage_elo: float) -> np.ndarray:
    chance_3 = outcome_probabilities(np.array(advantage_elo / ELO_PER_NAT), 0.8)
    return np.searchsorted(chance_3.cumsum()[:2], uniform_P)


def test_crosstable_reads_the_same_from_both_sides() -> None:
    table = Crosstable()
    table.add("B", "A", 2, 1, 3)
    table.add("A", "B", 2, 0, 2)
    assert table.players == ["A", "B"]
    assert table.pentanomial("B", "A") == [0, 0, 2, 3, 0]
    assert table.pentanomial("A", "B") == [0, 3, 2, 0, 0]
    assert table.games("B", "A") == (5, 2, 3)
    assert table.games("A", "B") == (2, 5, 3)
    assert table.between("A", "B")[1, 0] == 3
    assert (table.between("B", "A")[2, 1], table.between("B", "A")[2, 0]) == (3, 2)
    assert table.pentanomial("A", "C") == [0, 0, 0, 0, 0]


def test_draws_follow_davidson_and_the_score_is_logistic() -> None:
    x = np.linspace(-30, 30, 61)
    for nu in (0.0, 0.3, 2.0, 50.0):
        loss, draw, win = outcome_probabilities(x, nu).T
        np.testing.assert_allclose(loss + draw + win, 1, rtol=1e-12)
        np.testing.assert_allclose(draw, nu * np.sqrt(win * loss), rtol=1e-9)
        np.testing.assert_allclose(win + draw / 2, 1 / (1 + np.exp(-x)), rtol=1e-9)


def test_slopes_agree_with_numerical_differences() -> None:
    x, nu, h = np.linspace(-6, 6, 13), 0.7, 1e-6
    by_x, by_nu = log_slopes(outcome_probabilities(x, nu))
    numeric_x = (np.log(outcome_probabilities(x + h, nu)) - np.log(outcome_probabilities(x - h, nu))) / (2 * h)
    more, less = outcome_probabilities(x, nu * math.exp(h)), outcome_probabilities(x, nu * math.exp(-h))
    np.testing.assert_allclose(by_x, numeric_x, atol=1e-8)
    np.testing.assert_allclose(by_nu, (np.log(more) - np.log(less)) / (2 * h), atol=1e-8)


def test_two_players_get_the_elo_of_their_score() -> None:
    """Without draws or a first-move advantage it reduces to Bradley and Terry: the logistic Elo of
    the score."""
    table = Crosstable()
    table.add("A", "B", 2, 2, 30)
    table.add("A", "B", 2, 0, 10)
    table.add("A", "B", 0, 2, 10)
    table.add("A", "B", 0, 0, 10)
    found = fit(table)
    assert found.difference("A", "B").value == pytest.approx(elo_of(80 / 120), abs=1e-6)
    assert found.first_move.value == pytest.approx(0, abs=1e-6)
    assert found.draw_share == (0, 0, 0)
    assert found.players == ["A", "B"]
    assert found.elo_N.sum() == pytest.approx(0, abs=1e-9)


def test_draws_of_equals_are_found() -> None:
    table = Crosstable()
    table.add("A", "B", 1, 1, 30)
    table.add("A", "B", 2, 0, 20)
    table.add("A", "B", 0, 2, 20)
    table.add("A", "B", 2, 2, 15)
    table.add("A", "B", 0, 0, 15)
    found = fit(table)
    assert found.draw_share.value == pytest.approx(0.3, abs=1e-6)
    assert found.difference("A", "B").value == pytest.approx(0, abs=1e-6)


def test_the_fit_is_the_maximum() -> None:
    """Against a reference: the likelihood written down game by game, at points around the fit."""
    table = simulated({"A": 0, "B": 100, "C": -150}, 40, seed=3)
    found = fit(table)

    def likelihood(elo: dict[str, float], first_move: float, draw_share: float) -> float:
        total, nu = 0.0, 2 * draw_share / (1 - draw_share)
        for (first, second), pairs in table.pairings.items():
            for white, black in np.ndindex(3, 3):
                ahead = elo[first] - elo[second]
                chance = outcome_probabilities(np.array([ahead + first_move, -ahead + first_move]) / ELO_PER_NAT, nu)
                total += pairs[white, black] * math.log(chance[0, white] * chance[1, 2 - black])
        return float(total)

    elo = dict(zip(found.players, found.elo_N.tolist(), strict=True))
    top = likelihood(elo, found.first_move.value, found.draw_share.value)
    for player in elo:
        for step in (-1.0, 1.0):
            assert likelihood({**elo, player: elo[player] + step}, found.first_move.value, found.draw_share.value) < top
    for step in (-1.0, 1.0):
        assert likelihood(elo, found.first_move.value + step, found.draw_share.value) < top
        assert likelihood(elo, found.first_move.value, found.draw_share.value + 0.01 * step) < top


def test_anchors_keep_their_elo_and_name_the_scale() -> None:
    table = simulated({"A": 0, "B": 120, "C": 260, "D": 300}, 100, seed=5)
    free, anchored, two = fit(table), fit(table, {"A": 1350}), fit(table, {"A": 1350, "D": 1650})
    assert anchored.rating("A") == (1350, 1350, 1350)
    assert anchored.scale == "logistic Elo, A = 1350"
    assert free.scale == "logistic Elo, mean of the pool = 0"
    for first, second in itertools.combinations("ABCD", 2):
        assert anchored.difference(first, second) == pytest.approx(free.difference(first, second), abs=1e-4)
    assert (two.rating("A").value, two.rating("D").value) == (1350, 1650)
    assert two.difference("D", "A") == (300, 300, 300)
    assert 1350 < two.rating("B").low < two.rating("B").high < 1650


def test_tables_without_a_maximum_are_refused_without_a_prior() -> None:
    table = simulated({"A": 0, "B": 50}, 20, seed=9)
    table.add("A", "Z", 2, 2, 20)
    with pytest.raises(UserError, match=r"A, B \| Z"):
        fit(table)
    with pytest.raises(UserError, match="no player to rate"):
        fit(table, {"A": 0, "B": 0, "Z": 0})
    with pytest.raises(UserError, match="anchors Y"):
        fit(table, {"Y": 0})
    with pytest.raises(UserError, match="from -10000 to 10000"):
        fit(table, {"A": 1e6})
    found = fit(table, prior_games=1)
    assert found.players[-1] == "Z"
    assert found.rating("Z").low < found.rating("Z").value < -300
    table.add("U", "V", 2, 0)
    with pytest.raises(UserError, match=r"never met: A, B, Z \| U, V"):
        fit(table, prior_games=1)
    drawn = Crosstable()
    drawn.add("A", "B", 1, 1, 30)
    with pytest.raises(UserError, match="too many draws"):
        fit(drawn)
    perfect = Crosstable()  # infinitely many draws would fit exactly
    perfect.add("A", "B", 2, 1, 3)
    perfect.add("A", "B", 1, 1, 3)
    perfect.add("B", "C", 2, 1, 3)
    perfect.add("B", "C", 1, 1, 2)
    with pytest.raises(UserError, match="too many draws"):
        fit(perfect)
    beyond = Crosstable()  # black won every game but one: strengths and first move grow without end together
    beyond.add("A", "B", 0, 2, 2)
    beyond.add("A", "B", 0, 0)
    with pytest.raises(UserError, match="no maximum"):
        fit(beyond)
    assert fit(beyond, prior_games=1).players == ["B", "A"]
    assert 0.5 < fit(perfect, prior_games=1).draw_share.value < 1
    assert fit(drawn, prior_games=1).difference("A", "B").value == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize("shared", [0.0, 0.6])
def test_intervals_cover_the_truth(shared: float) -> None:
    """150 pools of four players: about 95 % of the differences of neighbours lie in their interval,
    also where the two games of a pair hang together, which makes the intervals smaller."""
    elo = {"A": 0.0, "B": 70.0, "C": 120.0, "D": 250.0}
    covered, width = [], []
    for seed in range(150):
        found = fit(simulated(elo, 60, seed, shared))
        for first, second in itertools.pairwise(elo):
            interval = found.difference(second, first)
            covered.append(interval.low <= elo[second] - elo[first] <= interval.high)
            width.append(interval.high - interval.low)
    assert 0.91 <= np.mean(covered) <= 0.98
    assert (np.mean(width) < 75) == (shared > 0)


def small_table(rng: np.random.Generator) -> Crosstable:
    """Two to four players in a round robin with one to five pairs each, any results, often all of
    one kind."""
    table = Crosstable()
    kinds = rng.integers(0, 3, (rng.integers(1, 4), 2))
    for first, second in itertools.combinations("ABCD"[: rng.integers(2, 5)], 2):
        for with_white, with_black in kinds[rng.integers(0, len(kinds), rng.integers(1, 6))].tolist():
            table.add(first, second, with_white, with_black)
    return table


def test_small_tables_are_rated_or_refused_and_no_interval_collapses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pairs with equal or mirrored results show no spread; with a prior every table is
    rated."""
    refused = 0
    for seed in range(150):
        table = small_table(np.random.default_rng(seed))
        found = rate(table, {}).ratings
        refused += found.prior_games > 0
        width = {pair: np.ptp(found.difference(*pair)) for pair in itertools.combinations(found.players, 2)}
        assert min(width.values()) > 10
        if seed % 10 == 0:
            with monkeypatch.context() as model_alone:
                model_alone.setattr(bradley_terry, "MODEL_PAIRS", 1e12)
                of_model = fit(table, prior_games=found.prior_games)
            most = max(int(pairs_33.sum()) for pairs_33 in table.pairings.values()) + found.prior_games
            for pair in width:
                least = math.sqrt(MODEL_PAIRS / (most + MODEL_PAIRS)) * np.ptp(of_model.difference(*pair))
                assert width[pair] > 0.999 * least
    assert 75 < refused < 135


def test_the_models_own_interval_is_that_of_independent_games(monkeypatch: pytest.MonkeyPatch) -> None:
    """80 of 120 games without draws: the log odds have the variance 1 / (120 p q), here times P /
    (P - F)."""
    table = Crosstable()
    outcomes: list[tuple[Points, Points, int]] = [(2, 2, 30), (2, 0, 10), (0, 2, 10), (0, 0, 10)]
    for with_white, with_black, pairs in outcomes:
        table.add("A", "B", with_white, with_black, pairs)
    monkeypatch.setattr(bradley_terry, "MODEL_PAIRS", 1e12)
    low, high = fit(table).difference("A", "B")[1:]
    expected = 2 * Z95 * ELO_PER_NAT * math.sqrt(1 / (120 * (2 / 3) * (1 / 3)) * 60 / 58)
    assert high - low == pytest.approx(expected, rel=1e-4)


def test_two_equal_or_mirrored_pairs_separate_no_players() -> None:
    pairs_of_games: list[list[tuple[Points, Points]]] = [[(2, 1), (1, 2)], [(2, 1), (2, 1)], [(2, 2), (2, 2)]]
    for both in pairs_of_games:
        table = Crosstable()
        for points in both:
            table.add("A", "B", *points)
        standings = rate(table, {})
        assert standings.rows[0].player == "A"
        assert standings.unseparated == [("A", "B")]


def checked_until_separated(seed: int, looks: int) -> bool:
    """Two equal players, 10 pairs, doubled at each check: whether any check calls them
    separated."""
    rng, table = np.random.default_rng(seed), Crosstable()
    for more in (10, 10, 20, 40, 80):
        white, black = (results(rng.random(more), 35.0) for _ in range(2))
        for points in zip(white.tolist(), (2 - black).tolist(), strict=True):
            table.add("A", "B", *points)
        if not rate(table, {}, looks).unseparated:
            return True
    return False


def test_repeated_checks_do_not_separate_equals() -> None:
    """Five checks at 95 % each would find a difference in one of eight cases; the level for five
    checks in 5 % at most."""
    assert np.mean([checked_until_separated(seed, looks=5) for seed in range(150)]) <= 0.05
    assert np.mean([checked_until_separated(seed, looks=1) for seed in range(50)]) > 0.05
