from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from ranks.errors import UserError
from ranks.rating.elo import elo_of, estimate, score_of
from ranks.rating.report import WinsLossesDraws, report
from ranks.rating.sprt import Sprt, log_likelihood_ratio, parse_sprt


def test_elo_and_score_are_inverse_and_known_values_hold() -> None:
    for elo in (-900.0, -35.0, 0.0, 10.0, 400.0):
        assert elo_of(score_of(elo)) == pytest.approx(elo, abs=1e-9)
    assert score_of(400) == pytest.approx(10 / 11)
    assert score_of(-1e6) == 0.0
    assert score_of(1e6) == 1.0
    assert (elo_of(1.0), elo_of(0.0)) == (math.inf, -math.inf)


def test_estimate_of_games_is_the_textbook_one() -> None:
    found = estimate([20, 50, 30])
    mean, n = 0.55, 100
    variance = (20 * mean**2 + 50 * (0.5 - mean) ** 2 + 30 * (1 - mean) ** 2) / (n - 1)
    assert found.games == 100
    assert found.score.value == pytest.approx(mean)
    assert found.score.high - mean == pytest.approx(1.959964 * math.sqrt(variance / n), rel=0.05)
    assert found.elo.low == pytest.approx(elo_of(found.score.low))
    assert found.normalised_elo == pytest.approx((mean - 0.5) / math.sqrt(variance) * 800 / math.log(10))
    assert found.los == pytest.approx(0.5 * (1 + math.erf((30 - 20) / math.sqrt(2 * (30 + 20)))))


def test_pairs_of_independent_games_agree_with_the_games() -> None:
    """The pairs of all ordered pairs of games: the same mean, the same spread per game."""
    loss, draw, win = 20, 50, 30
    points = [0] * loss + [1] * draw + [2] * win
    pairs = np.bincount([a + b for a, b in itertools.product(points, points)], minlength=5)
    by_pairs, by_games = estimate(pairs.tolist()), estimate([loss, draw, win])
    assert by_pairs.score.value == pytest.approx(by_games.score.value)
    assert by_pairs.normalised_elo == pytest.approx(by_games.normalised_elo, rel=0.01)


def test_pairs_that_cancel_their_opening_have_a_smaller_interval() -> None:
    """White wins every game: over games a wide spread, over pairs none but the opening's."""
    over_games, over_pairs = estimate([101, 0, 99]), estimate([1, 0, 99, 0, 0])
    assert over_pairs.elo.high - over_pairs.elo.low < (over_games.elo.high - over_games.elo.low) / 5


@pytest.mark.parametrize(("counts", "los"), [([0, 0, 0, 0, 40], 1.0), ([0, 0, 40, 0, 0], 0.5), ([40, 0, 0, 0, 0], 0.0)])
def test_equal_results_of_all_pairs_give_a_wide_interval(counts: list[int], los: float) -> None:
    found = estimate(counts)
    assert found.score.low <= found.score.value <= found.score.high
    assert found.score.high - found.score.low == pytest.approx(1 - 0.025 ** (1 / 40))
    assert found.los == pytest.approx(los, abs=1e-6)
    assert not math.isnan(found.elo.low)


def test_no_games_and_one_pair() -> None:
    nothing = estimate([0, 0, 0, 0, 0])
    assert math.isnan(nothing.elo.value)
    assert (nothing.games, nothing.los, nothing.elo.low, nothing.elo.high) == (0, 0.5, -math.inf, math.inf)
    one = estimate([0, 0, 0, 0, 1])
    assert one.elo.value == math.inf
    assert one.elo.low < -400
    with pytest.raises(ValueError, match="shape"):
        estimate([1, 2])


@pytest.mark.parametrize("pairs", [15, 25, 100])
@pytest.mark.parametrize(
    "chance",
    [
        [0.1, 0.2, 0.3, 0.25, 0.15],
        [0.0, 0.01, 0.04, 0.25, 0.7],
        [0.0025, 0.0, 0.095, 0.0, 0.9025],
        [0.0, 0.0, 0.01, 0.08, 0.91],
        [0.9, 0.09, 0.01, 0.0, 0.0],
    ],
    ids=["level", "better", "better without draws", "much better", "worse"],
)
def test_interval_of_the_elo_covers_the_truth(chance: list[float], pairs: int) -> None:
    """95 % of 2,000 matches, give or take three standard deviations of that share; more where few results are
    possible."""
    rng = np.random.default_rng(1)
    truth = elo_of(float(np.array(chance) @ np.linspace(0, 1, 5)))
    found = [estimate(counts).elo for counts in rng.multinomial(pairs, chance, size=2000).tolist()]
    covered = np.mean([interval.low <= truth <= interval.high for interval in found])
    assert 0.935 <= covered <= 0.99


def test_interval_of_a_lopsided_score_is_within_its_bounds_and_not_symmetric() -> None:
    """29 pairs won and one drawn; by hand: mean 59/60, var = 0.25 (1/30)(29/30) 30/29 = 1/120, r = (0.508475 29 + 1)/30
    = 0.52486, so 57.158 pairs of Wilson: 0.9086 to 0.9972."""
    found = estimate([0, 0, 1, 0, 29]).score
    assert found.low == pytest.approx(0.9086, abs=1e-4)
    assert found.high == pytest.approx(0.9972, abs=1e-4)


def reference_llr(counts: list[int], score0: float, score1: float) -> float:
    """Trinomial, by brute force: of all distributions with the expectation, the one of highest
    likelihood."""

    def best(score: float) -> float:
        loss = np.linspace(0, 1, 2_000_001)[1:-1]
        win = loss + 2 * score - 1
        draw = 1 - loss - win
        loss, win, draw = (share[(win > 0) & (draw > 0)] for share in (loss, win, draw))
        return float((counts[0] * np.log(loss) + counts[1] * np.log(draw) + counts[2] * np.log(win)).max())

    return best(score1) - best(score0)


@pytest.mark.parametrize("counts", [[20, 50, 30], [300, 100, 310], [5, 1, 90]])
def test_likelihood_ratio_agrees_with_the_reference(counts: list[int]) -> None:
    score0, score1 = score_of(0), score_of(10)
    reference = reference_llr(counts, score0, score1)
    assert log_likelihood_ratio(np.array(counts, float), score0, score1) == pytest.approx(reference, abs=1e-5)
    as_pairs = np.array([counts[0], 0, counts[1], 0, counts[2]], float)
    assert log_likelihood_ratio(as_pairs, score0, score1) == pytest.approx(reference, abs=0.01)


def test_likelihood_ratio_is_antisymmetric_and_0_without_games() -> None:
    counts = np.array([3.0, 8.0, 20.0, 9.0, 5.0])
    forth, back = log_likelihood_ratio(counts, 0.5, 0.53), log_likelihood_ratio(counts[::-1], 0.5, 0.47)
    assert forth == pytest.approx(back, abs=1e-9)
    assert log_likelihood_ratio(np.zeros(5), 0.5, 0.53) == 0


@pytest.mark.parametrize("elo", [0.0, 40.0])
def test_sprt_keeps_its_error_rates(elo: float) -> None:
    """400 matches where H0 or H1 is true, checked after every four pairs; because of overshoot it
    errs less, not more."""
    test = Sprt(0, 40)
    rng = np.random.default_rng(7)
    chance = np.array([0.08, 0.2, 0.44, 0.2, 0.08])
    tilt = chance * np.exp(tilt_to(chance, score_of(elo)) * np.linspace(0, 1, 5))
    counts = rng.multinomial(4, tilt / tilt.sum(), size=(400, 400)).cumsum(1).astype(float)
    llr = log_likelihood_ratio(counts, score_of(0), score_of(40))
    lower, upper = test.bounds
    ended = (llr <= lower) | (llr >= upper)
    assert ended.any(1).all()
    accepted_h1 = llr[np.arange(400), ended.argmax(1)] >= upper
    wrong = accepted_h1.mean() if elo == 0 else 1 - accepted_h1.mean()
    assert wrong <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / 400)
    assert wrong >= 0.01


def tilt_to(chance: np.ndarray, score: float) -> float:
    """The exponential tilt that moves the expectation to `score`."""
    grid = np.linspace(-5, 5, 100_001)
    weights = chance * np.exp(grid[:, None] * np.linspace(0, 1, 5))
    return float(grid[np.abs(weights @ np.linspace(0, 1, 5) / weights.sum(1) - score).argmin()])


def test_the_format_of_the_report() -> None:
    games = WinsLossesDraws(90, 40, 70)
    assert report("A", "B", games, [10, 0, 50, 10, 30], parse_sprt("elo0=0,elo1=10")) == [
        "Score of A vs B: 90 - 40 - 70  [0.625] 200",
        "Elo difference: 88.7 +/- 44.2, LOS: 100.0 %, DrawRatio: 35.0 %",
        "Normalised Elo: 101.5",
        "Ptnml(0-2): 10, 0, 50, 10, 30",
        "SPRT: llr 1.55 (52.7%), lbound -2.94, ubound 2.94",
    ]
    assert str(Sprt(0, 10).verdict([0, 0, 50, 100, 100])).endswith("ubound 2.94 - H1 was accepted")
    assert str(Sprt(0, 10).verdict([200, 100, 50, 0, 0])).endswith("ubound 2.94 - H0 was accepted")
    assert report("A", "B", WinsLossesDraws(2, 0, 0), [0, 0, 0, 0, 1], None)[1].startswith(
        "Elo difference: inf, 95 % from -636.4 to inf"
    )


@pytest.mark.parametrize(
    "text",
    ["", "elo0=0", "elo0=5,elo1=0", "elo0=a,elo1=3", "elo0=0,elo1=1,x=2", "elo0=0,elo1=nan", "elo0=0,elo1=1,alpha=0"],
)
def test_an_invalid_sprt_is_refused(text: str) -> None:
    with pytest.raises(UserError, match="--sprt elo0=0,elo1=10"):
        parse_sprt(text)
