"""From the results of a match to a rating and metrics.

One fit rates the newest weights and the best ones (`ranks.rating`): the games of both against the fixed
players, whose Elo is given, and their games with each other.
"""

from __future__ import annotations

from collections.abc import Sequence

from ranks.chess.match.net_rating import NET, Pair, rate_nets
from ranks.rating.bradley_terry import Ratings
from ranks.rating.crosstable import Points
from ranks.workloads.chess_spiking.matches.games import GameResult
from ranks.workloads.chess_spiking.matches.plan import RUNGS, EvaluationPlan


def pairs_of(plan: EvaluationPlan, results: Sequence[GameResult]) -> list[Pair]:
    """The pairs of all games."""
    points: list[Points] = [{-1: 0, 0: 1, 1: 2}[result.outcome] for result in results]  # pyright: ignore[reportAssignmentType]
    return [Pair(plan.opponent(game), points[game], points[game + 1]) for game in range(0, plan.games, 2)]


def fit_ratings(pairs: Sequence[Pair], of_best: Sequence[Pair]) -> Ratings | None:
    """The ratings of NET and BEST against the fixed players; None where the games do not determine them."""
    return rate_nets(pairs, of_best, RUNGS)


def metrics_of(plan: EvaluationPlan, results: Sequence[GameResult], ratings: Ratings | None) -> dict[str, float]:
    """The rating with its 95 % interval, the score against each opponent (won 1, drawn 1/2), the number of games,
    shares of draws, the mean length."""
    metrics: dict[str, float] = {}
    if ratings is not None:
        rating = ratings.rating(NET)
        metrics = {"rating": rating.value, "rating_low": rating.low, "rating_high": rating.high}
    for opponent in plan.opponents:
        scores = [(result.outcome + 1) / 2 for result in results if plan.opponent(result.game) == opponent]
        if scores:
            metrics[f"score_{opponent.replace(':', '-')}"] = sum(scores) / len(scores)
    count = len(results)
    return metrics | {
        "games": float(count),
        "drawn": sum(result.outcome == 0 for result in results) / count,
        "drawn_by_repetition": sum(result.repetition for result in results) / count,
        "truncated": sum(result.truncated for result in results) / count,
        "mean_length": sum(result.plies for result in results) / count,
    }
