"""The sequential probability ratio test (SPRT), which ends a match as soon as it decides.

Legend: C categories of a score from 0 to 1 in equal steps (5 for pairs of games, 3 for single
games); ... any batch.

The generalised test (GSPRT): the log-likelihood ratio compares the most likely distribution with
expectation s1 to the most likely one with expectation s0. It assumes no draw ratio and no bias of
the openings. Sources: Van den Bergh, Comments on normalized Elo and GSPRT (2020), proposition 1.1;
Li, Liu and Ying, Generalized sequential probability ratio test for separate families of hypotheses
(2014).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from ranks.errors import UserError
from ranks.rating.elo import score_of

Floats = np.ndarray[Any, np.dtype[np.float64]]
NEVER_SEEN = 1e-3
"""The count used for a category that has not occurred, as in fishtest; with 0, no distribution
might fit."""


class Verdict(NamedTuple):
    """The state of a test."""

    llr: float
    lower: float
    upper: float
    accepted: Literal["H0", "H1"] | None
    """None: not decided yet."""

    def __str__(self) -> str:
        percent = 100 * self.llr / (self.upper if self.llr > 0 else -self.lower)
        end = f" - {self.accepted} was accepted" if self.accepted else ""
        return f"SPRT: llr {self.llr:.2f} ({percent:.1f}%), lbound {self.lower:.2f}, ubound {self.upper:.2f}{end}"


@dataclass(frozen=True)
class Sprt:
    """H0: the player is `elo0` stronger; H1: it is `elo1` stronger (logistic Elo)."""

    elo0: float
    elo1: float
    alpha: float = 0.05
    """The probability of accepting H1 if H0 is true."""
    beta: float = 0.05
    """The probability of accepting H0 if H1 is true."""

    def __post_init__(self) -> None:
        if not (self.elo0 < self.elo1 and 0 < self.alpha < 0.5 and 0 < self.beta < 0.5):
            raise UserError(
                f"--sprt elo0={self.elo0:g},elo1={self.elo1:g},alpha={self.alpha:g},beta={self.beta:g}",
                "elo0 must be below elo1, alpha and beta between 0 and 0.5",
                "for example --sprt elo0=0,elo1=10",
            )

    @property
    def bounds(self) -> tuple[float, float]:
        """Wald's bounds of the log-likelihood ratio: below the first accept H0, above the second
        H1."""
        return math.log(self.beta / (1 - self.alpha)), math.log((1 - self.beta) / self.alpha)

    def verdict(self, counts_C: Sequence[int]) -> Verdict:
        """The state of the test after these pairs (C = 5) or games (C = 3)."""
        lower, upper = self.bounds
        llr = float(log_likelihood_ratio(np.asarray(counts_C, np.float64), score_of(self.elo0), score_of(self.elo1)))
        return Verdict(llr, lower, upper, "H0" if llr <= lower else "H1" if llr >= upper else None)


def parse_sprt(text: str) -> Sprt:
    """`elo0=0,elo1=10[,alpha=0.05,beta=0.05]`. Raises UserError."""
    known = {"elo0", "elo1", "alpha", "beta"}
    try:
        words = [word.split("=") for word in text.split(",")]
        values = {name.strip(): float(value) for name, value in words}
        if not {"elo0", "elo1"} <= values.keys() <= known or not all(map(math.isfinite, values.values())):
            raise ValueError
    except ValueError:
        raise UserError(
            f"--sprt {text}", "this is not a test", "write --sprt elo0=0,elo1=10[,alpha=0.05,beta=0.05]"
        ) from None
    return Sprt(**values)


def log_likelihood_ratio(counts_xC: Floats, score0: float, score1: float) -> Floats:
    """The generalised log-likelihood ratio of `score1` over `score0`, for float64[..., C] counts.

    Without any game it is 0.
    """
    scores_C = np.linspace(0, 1, counts_xC.shape[-1])
    seen_xC = np.where(counts_xC > 0, counts_xC, NEVER_SEEN)
    share_xC = seen_xC / seen_xC.sum(-1, keepdims=True)
    gain_xC = np.log(most_likely(share_xC, scores_C, score1) / most_likely(share_xC, scores_C, score0))
    return np.where(counts_xC.any(-1), (seen_xC * gain_xC).sum(-1), 0.0)


def most_likely(share_xC: Floats, scores_C: Floats, expectation: float) -> Floats:
    """The distribution of highest likelihood with this expectation, for observed shares > 0.

    p_i = share_i / (1 + x (a_i - s)), where x solves sum_i share_i (a_i - s) / (1 + x (a_i - s)) =
    0. The sum falls monotonically between the two poles, so bisection finds x.
    """
    away_C = scores_C - expectation
    low_x1 = np.full((*share_xC.shape[:-1], 1), -1 / away_C[-1])
    high_x1 = np.full_like(low_x1, -1 / away_C[0])
    for _ in range(60):
        middle_x1 = (low_x1 + high_x1) / 2
        beyond_x1 = (share_xC * away_C / (1 + middle_x1 * away_C)).sum(-1, keepdims=True) > 0
        low_x1, high_x1 = np.where(beyond_x1, middle_x1, low_x1), np.where(beyond_x1, high_x1, middle_x1)
    return share_xC / (1 + (low_x1 + high_x1) / 2 * away_C)
