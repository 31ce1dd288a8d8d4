"""The probabilities of win, draw and loss for a given difference of strength.

Davidson (1970), On extending the Bradley-Terry model to accommodate ties: the probability of a draw
is nu times the geometric mean of win and loss, D = nu sqrt(W L). Our notation differs in one point.
In Davidson the strengths give the odds W / L, so that the scale of ratings depends on the share of
draws. Here they give the expected score, W + D / 2 = 1 / (1 + e^-x), so that ratings are logistic
Elo for any share of draws. The family is the same; nu = 0 is Bradley-Terry.

Legend: ... any batch, 3 = points of the white player in halves (lost, drawn, won).
"""

from __future__ import annotations

from typing import Any

import numpy as np

Floats = np.ndarray[Any, np.dtype[np.float64]]


def outcome_probabilities(advantage_x: Floats, nu: float) -> Floats:
    """float64[..., 3]: probabilities of loss, draw and win for an advantage x in nats, also tiny
    ones.

    With u = 4 p (1 - p), D = nu sqrt(W L) and W + D / 2 = p give D = nu u / (nu + r), r^2 = nu^2 (1
    - u) + 4 u, and L = (1 - p) (r + k) / (nu + r), W = p (r - k) / (nu + r) with k = nu (1 - 2 p);
    (r + k) (r - k) = 4 u.
    """
    score_x, other_x = 1 / (1 + np.exp(-advantage_x)), 1 / (1 + np.exp(advantage_x))
    u_x, k_x = 4 * score_x * other_x, nu * (1 - 2 * score_x)
    root_x = np.sqrt(k_x**2 + 4 * u_x)
    larger_x = root_x + np.abs(k_x)
    smaller_x = 4 * u_x / larger_x
    loss_x = other_x * np.where(k_x > 0, larger_x, smaller_x)
    win_x = score_x * np.where(k_x > 0, smaller_x, larger_x)
    return np.stack([loss_x, nu * u_x, win_x], -1) / (nu + root_x)[..., None]


def log_slopes(chance_x3: Floats) -> tuple[Floats, Floats]:
    """d log P / dx and d log P / d log nu of `outcome_probabilities`, each float64[..., 3].

    From log D = log nu + (log W + log L) / 2. If draws are impossible, their slopes are 0.
    """
    loss_x, draw_x, win_x = np.moveaxis(chance_x3, -1, 0)
    score_slope_x = (win_x + draw_x / 2) * (loss_x + draw_x / 2)
    draw_by_nu_x = draw_x / (1 + draw_x * (1 / win_x + 1 / loss_x) / 4)
    draw_by_x = draw_by_nu_x * score_slope_x * (1 / win_x - 1 / loss_x) / 2
    by_x_3 = np.stack([-score_slope_x - draw_by_x / 2, draw_by_x, score_slope_x - draw_by_x / 2], -1)
    by_nu_3 = np.stack([-draw_by_nu_x / 2, draw_by_nu_x, -draw_by_nu_x / 2], -1)
    possible_x3 = np.where(chance_x3 > 0, chance_x3, 1.0)
    return by_x_3 / possible_x3, by_nu_3 / possible_x3
