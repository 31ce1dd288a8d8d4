"""Fit the ratings of a whole pool by maximum likelihood over all games at once.

Model: the player with white has the advantage x = own strength - opponent's strength + first move,
in nats. Its expected score is 1 / (1 + e^-x) (Bradley and Terry 1952; the first move as an additive
term: Davidson and Beaver 1977), and draws follow Davidson (see davidson.py) with one nu for the
pool. One nat is 400 / ln 10 = 173.7 Elo.

Legend: K pairings that met, G = 2 games of a pair (first player white, then black), F free
parameters (strengths, first move, log nu), N players; 3 = points of white in halves.

The intervals are those of the sandwich estimate I^-1 (sum of g g^T over pairs of games) I^-1, with
I the observed information and g the slope of a pair's log-likelihood (White 1982, clustered by
pair). They are valid if the two games of a pair depend on each other, and if the model of draws is
not exact. A few pairs can have equal results by chance and then show no spread. So each pairing's
sum is a weighted mean of the observed and the expected value, in which the expected value has the
weight of MODEL_PAIRS pairs. Anchors count as exact.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np

from ranks.errors import UserError
from ranks.rating.crosstable import Crosstable
from ranks.rating.elo import ELO_PER_NAT, Interval
from ranks.rating.pool_model import Floats, PoolModel

Bools = np.ndarray[Any, np.dtype[np.bool_]]
MODEL_PAIRS = 10
"""If no pairing has more than P pairs, every interval is at least sqrt(MODEL_PAIRS / (P +
MODEL_PAIRS)) times as wide as the model's own."""
CONVERGED = 1e-9
"""The fit has converged when no parameter changes by more than this, in nats."""
NEVER = 20.0
"""An advantage, in nats, or log nu above this counts as infinite."""
LARGEST_ELO = 10_000.0
"""The largest absolute Elo of an anchor."""


@dataclass(frozen=True)
class Ratings:
    """The ratings of a pool in Elo. Intervals are 95 % unless another level is given."""

    players: list[str]
    """The strongest first."""
    elo_N: Floats
    covariance_NN: Floats
    """Of `elo_N`, in Elo squared; rows of anchors are 0."""
    first_move: Interval
    """The advantage of the white pieces in the openings that were played; one value for all
    pairings."""
    draw_share: Interval
    """Share of draws between equals without a first-move advantage, from 0 to 1."""
    scale: str
    """The zero or the anchors of the scale."""
    given: frozenset[str]
    """The anchors. Their intervals have no width, and their own error is in no interval."""
    prior_games: float

    def rating(self, player: str) -> Interval:
        """One player's rating on `scale`."""
        row = self.players.index(player)
        return _interval(float(self.elo_N[row]), float(self.covariance_NN[row, row]))

    def difference(self, first: str, second: str, level: float = 0.95) -> Interval:
        """The Elo of `first` minus that of `second`, with the interval of the difference."""
        a, b = self.players.index(first), self.players.index(second)
        variance = self.covariance_NN[a, a] + self.covariance_NN[b, b] - 2 * self.covariance_NN[a, b]
        return _interval(float(self.elo_N[a] - self.elo_N[b]), float(variance), level)


def fit(table: Crosstable, anchors: Mapping[str, float] | None = None, prior_games: float = 0.0) -> Ratings:
    """Rate all players of `table`.

    `anchors` maps players to given Elo; without anchors the mean of the pool is 0.

    `prior_games` is a weak prior: it adds about that many games to each player, half won and half
    lost with either colour, spread over its pairings. A player that lost or won every game then
    gets a finite rating. Without a prior such a table has no maximum of likelihood (Ford 1957) and
    raises UserError.
    """
    anchors = dict(anchors or {})
    names = table.players
    unknown = sorted(set(anchors) - set(names))
    if unknown:
        raise UserError(f"anchors {', '.join(unknown)}", f"players that met: {', '.join(names)}", "name one of them")
    if any(not abs(elo) <= LARGEST_ELO for elo in anchors.values()):
        found = "; ".join(f"{name} = {elo:g}" for name, elo in anchors.items())
        raise UserError("a scale from anchors", found, f"give ratings from -{LARGEST_ELO:g} to {LARGEST_ELO:g}")
    if len(anchors) == len(names):
        raise UserError("ratings", "no player to rate", "play at least one pair of games with a player not anchored")
    _require_one_scale(table, anchors, finite=prior_games == 0)
    pairs_K33 = np.stack(list(table.pairings.values())).astype(np.float64)
    pairs_K33[:, ::2, ::2] += prior_games * len(names) / (16 * len(pairs_K33))
    model = PoolModel.of(table, anchors)
    x_F = _maximise(model, pairs_K33)
    try:
        covariance_FF = _sandwich(model, pairs_K33, x_F)
    except np.linalg.LinAlgError:
        raise _no_maximum() from None
    elo_N = ELO_PER_NAT * (model.strength_NF @ x_F[:-2] + model.offset_N)
    elo_NF = ELO_PER_NAT * model.strength_NF
    order = np.argsort(-elo_N, kind="stable")
    log_nu = _interval(float(x_F[-1]), float(covariance_FF[-1, -1]))
    return Ratings(
        players=[names[row] for row in order],
        elo_N=elo_N[order],
        covariance_NN=(elo_NF @ covariance_FF[:-2, :-2] @ elo_NF.T)[np.ix_(order, order)],
        first_move=_interval(float(ELO_PER_NAT * x_F[-2]), float(ELO_PER_NAT**2 * covariance_FF[-2, -2])),
        draw_share=Interval(*(nu / (nu + 2) for nu in (math.exp(min(value, 700)) for value in log_nu))),
        scale="logistic Elo, " + ("; ".join(f"{n} = {e:g}" for n, e in anchors.items()) or "mean of the pool = 0"),
        given=frozenset(anchors),
        prior_games=prior_games,
    )


def _maximise(model: PoolModel, pairs_K33: Floats) -> Floats:
    """float64[F]: the maximum likelihood parameters, by Fisher scoring with limited steps.

    log nu is -inf if no game was drawn. Raises UserError if the likelihood has no maximum.
    """
    drawn = bool(pairs_K33[:, 1].any() or pairs_K33[:, :, 1].any())
    num_free = model.design_KGF.shape[-1] + drawn
    x_F = np.zeros(model.design_KGF.shape[-1] + 1)
    x_F[:-2] = model.start
    x_F[-1] = 0.0 if drawn else -math.inf
    best, num_K = model.log_likelihood(pairs_K33, x_F), pairs_K33.sum((1, 2))
    for _ in range(200):
        slope_KG3F = model.game_slopes(x_F)
        slope_F = model.gradient(pairs_K33, slope_KG3F)[:num_free]
        information_FF = model.expected_information(num_K, x_F, slope_KG3F)[:num_free, :num_free]
        try:
            step_F = np.linalg.solve(information_FF, slope_F)
        except np.linalg.LinAlgError:
            break
        step_F /= max(1.0, float(np.abs(step_F).max()))
        trial_F = x_F.copy()
        trial_F[:num_free] += step_F
        slope_beyond_F = model.gradient(pairs_K33, model.game_slopes(trial_F))[:num_free]
        rise, beyond = slope_F @ step_F, slope_beyond_F @ step_F
        if beyond < 0 < rise:  # the step passed the maximum on this line
            step_F *= rise / (rise - beyond)
        while True:
            trial_F = x_F.copy()
            trial_F[:num_free] += step_F
            found = model.log_likelihood(pairs_K33, trial_F)
            if found >= best or np.abs(step_F).max() < CONVERGED:
                break
            step_F /= 2
        x_F, best = trial_F, found
        if x_F[-1] > NEVER or np.any(np.abs(model.design_KGF @ x_F[:-1]) > NEVER + np.abs(model.offset_KG)):
            break
        if np.abs(step_F).max() < CONVERGED:
            return x_F
    raise _no_maximum()


def _no_maximum() -> UserError:
    return UserError(
        "ratings by maximum likelihood",
        "the likelihood has no maximum: too few games, too many draws, or one colour won no game",
        "play more games, or use a prior (1 game)",
    )


def _sandwich(model: PoolModel, pairs_K33: Floats, x_F: Floats) -> Floats:
    """float64[F, F]: the sandwich covariance of the parameters.

    Central differences give the observed information.

    With P pairs it is scaled by P / (P - F) as usual, since the residuals of a fit are smaller than
    the errors. Raises LinAlgError if the likelihood has no proper maximum at x_F.
    """
    num_free = len(x_F) - (x_F[-1] == -math.inf)
    around_FF = 1e-5 * np.eye(len(x_F))[:num_free]
    below, above = (
        [model.gradient(pairs_K33, model.game_slopes(x_F + sign * d)) for d in around_FF] for sign in (-1, 1)
    )
    rows = [low - high for low, high in zip(below, above, strict=True)]
    information_FF = np.stack(rows)[:, :num_free] / 2e-5
    np.linalg.cholesky(information_FF)
    bread_FF = np.linalg.inv(information_FF)
    num_K = pairs_K33.sum((1, 2))
    seen_K = num_K / (num_K + MODEL_PAIRS)
    slope_KG3F = model.game_slopes(x_F)
    slope_K33F = model.pair_slopes(slope_KG3F)[..., :num_free]
    spread_FF = np.einsum("k,kab,kabe,kabf->ef", seen_K, pairs_K33, slope_K33F, slope_K33F)
    spread_FF += model.expected_information((1 - seen_K) * num_K, x_F, slope_KG3F)[:num_free, :num_free]
    num_pairs = num_K.sum()
    scale = num_pairs / max(num_pairs - num_free, 1.0)
    covariance_FF = np.zeros((len(x_F), len(x_F)))
    covariance_FF[:num_free, :num_free] = scale * bread_FF @ spread_FF @ bread_FF.T
    return covariance_FF


def _require_one_scale(table: Crosstable, anchors: Mapping[str, float], finite: bool) -> None:
    """Raise UserError if parts of the pool never met or, if `finite`, one part scored no point."""
    names = table.players
    anchored_N = np.array([name in anchors for name in names])
    met_NN = np.eye(len(names), dtype=bool) | np.outer(anchored_N, anchored_N)
    scored_NN = met_NN.copy()
    for (first, second), pairs_33 in table.pairings.items():
        a, b = names.index(first), names.index(second)
        met_NN[a, b] = met_NN[b, a] = pairs_33.any()
        scored_NN[a, b] |= pairs_33.flat[1:].any()
        scored_NN[b, a] |= pairs_33.flat[:-1].any()
    parts = _parts(names, met_NN)
    if len(parts) > 1:
        raise UserError("one scale for the pool", f"never met: {' | '.join(parts)}", "play games between them")
    parts = _parts(names, scored_NN)
    if finite and len(parts) > 1:
        raise UserError(
            "ratings by maximum likelihood",
            f"{' | '.join(parts)}: between these groups one side made no point, so no finite rating fits",
            "play more games, add a player of a strength between them, or use a prior (1 game)",
        )


def _parts(names: Sequence[str], edge_NN: Bools) -> list[str]:
    """The strongly connected components of a graph, each as the names of its nodes."""
    reach_NN = edge_NN
    for _ in names:
        reach_NN = reach_NN @ edge_NN
    both_NN = reach_NN & reach_NN.T
    parts = {tuple(row) for row in both_NN.tolist()}
    return sorted(", ".join(name for name, inside in zip(names, row, strict=True) if inside) for row in parts)


def _interval(value: float, variance: float, level: float = 0.95) -> Interval:
    reach = NormalDist().inv_cdf((1 + level) / 2) * math.sqrt(max(variance, 0.0))
    return Interval(value, value - reach, value + reach)
