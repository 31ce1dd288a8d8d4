"""Scores, Elo, and their estimates from the counts of a match.

Legend: C categories of a score from 0 to 1 in equal steps. C = 3 counts single games (loss, draw,
win), C = 5 counts pairs of games on one opening with both colours (0, 0.5, 1, 1.5 and 2 points).

The games of a pair are not independent, since an opening favours one colour. So all variances are
taken over pairs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

ELO_PER_NAT = 400 / math.log(10)
"""The Elo of one nat (one unit of log odds)."""
Z95 = NormalDist().inv_cdf(0.975)


class Interval(NamedTuple):
    """An estimate and its 95 % confidence interval."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        if math.isfinite(self.low) and math.isfinite(self.high):
            return f"{self.value:.1f} +/- {(self.high - self.low) / 2:.1f}"
        return f"{self.value:.1f}, 95 % from {self.low:.1f} to {self.high:.1f}"


class Estimate(NamedTuple):
    """Estimates for one player of a match."""

    games: int
    score: Interval
    """Points per game, from 0 to 1."""
    elo: Interval
    """Logistic Elo difference to the opponent."""
    normalised_elo: float
    """Elo in units of the standard deviation of one game. It alone determines how many games a test
    needs."""
    los: float
    """Likelihood of superiority: the probability that this player is the stronger one, from 0 to
    1."""


def elo_of(score: float) -> float:
    """Logistic Elo of an expected score: 400 log10(s / (1 - s)); infinite for s <= 0 and s >= 1."""
    if score <= 0.0:
        return -math.inf
    if score >= 1.0:
        return math.inf
    return ELO_PER_NAT * math.log(score / (1 - score))


def score_of(elo: float) -> float:
    """The expected score of an Elo difference: 1 / (1 + 10^(-elo/400))."""
    nats = elo / ELO_PER_NAT
    return 1 / (1 + math.exp(-nats)) if nats >= 0 else math.exp(nats) / (1 + math.exp(nats))


def estimate(counts_C: Sequence[int]) -> Estimate:
    """Score, Elo with 95 % intervals, normalised Elo and LOS of a match.

    Pass pairs (C = 5) where games are paired.

    The interval of the score is Wilson's (Wilson 1927), with N / r in place of the N pairs, and the
    interval of the Elo is its image. r = var / (s (1 - s)) is the variance of a pair by that of a
    coin with the same mean; draws and paired openings make it less than 1. One more pair with r = 1
    is counted in, so that few pairs which happen to be equal do not look certain. The textbook's
    s +/- 1.96 sqrt(var / N) covers only 85 to 90 % of 25 lopsided pairs. If all N pairs have the
    same result (one pair, a clean sweep) the variance is 0 and cannot be used. If the true share of
    such pairs were q = 0.025^(1/N) or less, this would happen with a probability below 2.5 %. So
    the interval is [q s, 1 - q (1 - s)]. Without games score and Elo are nan, their intervals are
    unbounded, and LOS is 0.5.

    Normalised Elo is (s - 1/2) / sigma * 800 / ln 10 with sigma the standard deviation per game
    (Van den Bergh, Normalized Elo, 2020): sqrt(2) times that of a pair's mean. LOS is Phi(sum(s_i -
    1/2) / sqrt(sum (s_i - 1/2)^2)): for single games the usual (W - L) / sqrt(W + L), here over
    pairs.
    """
    counts = np.asarray(counts_C, np.float64)
    if counts.ndim != 1 or len(counts) not in (3, 5):
        raise ValueError(f"3 counts of games or 5 counts of pairs, not an array of shape {counts.shape}")
    games_each = 1 if len(counts) == 3 else 2
    n = float(counts.sum())
    if n == 0:
        unbounded = Interval(math.nan, -math.inf, math.inf)
        return Estimate(0, Interval(math.nan, 0.0, 1.0), unbounded, math.nan, 0.5)
    scores_C = np.linspace(0, 1, len(counts))
    mean = float(counts @ scores_C / n)
    if np.count_nonzero(counts) == 1:
        share = 0.025 ** (1 / n)
        low, high = share * mean, 1 - share * (1 - mean)
        sigma = 0.0
    else:
        variance = float(counts @ (scores_C - mean) ** 2 / (n - 1))
        sigma = math.sqrt(games_each * variance)
        low, high = _wilson(mean, variance, n)
    return Estimate(
        games=int(n) * games_each,
        score=Interval(mean, low, high),
        elo=Interval(elo_of(mean), elo_of(low), elo_of(high)),
        normalised_elo=_ratio(mean - 0.5, sigma) * 2 * ELO_PER_NAT,
        los=NormalDist().cdf(
            _ratio(float(counts @ (scores_C - 0.5)), math.sqrt(float(counts @ (scores_C - 0.5) ** 2)))
        ),
    )


def _wilson(mean: float, variance: float, n: float) -> tuple[float, float]:
    """Wilson's interval of the mean of n pairs, 0 < mean < 1; see `estimate`."""
    coin = mean * (1 - mean)
    r = (variance / coin * (n - 1) + 1) / n
    k = Z95**2 * r / n
    middle, reach = (mean + k / 2) / (1 + k), math.sqrt(k * coin + k**2 / 4) / (1 + k)
    return middle - reach, middle + reach


def _ratio(above: float, below: float) -> float:
    if below > 0:
        return above / below
    return 0.0 if above == 0 else math.copysign(math.inf, above)
