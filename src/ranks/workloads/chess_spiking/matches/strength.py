"""How strong a player with tree search is: paired games against the fixed players, without a run.

Nothing is resigned, and no result is given by material.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from ranks.rating.elo import estimate
from ranks.search.evaluation import Evaluator
from ranks.workloads.chess_spiking.matches.games import GameBatch, GameResult
from ranks.workloads.chess_spiking.matches.plan import EVALUATION_SEED, EvaluationPlan, MatchConfig
from ranks.workloads.chess_spiking.matches.rating import NET, fit_ratings, pairs_of

GAMES_AT_ONCE = 64
"""Searched together. Larger batches of a net are slower on a CPU."""


def play_rungs(evaluator: Evaluator, match: MatchConfig) -> list[dict[str, Any]]:
    """A row for each fixed player: the score of `evaluator` (won 1, drawn 1/2) with its 95 % interval over pairs, its
    draws, and in each row its rating over all games."""
    plan = EvaluationPlan.make(match.games, EVALUATION_SEED, best=False)
    results: list[GameResult] = []
    for first in range(0, plan.games, GAMES_AT_ONCE):
        batch = GameBatch(plan, range(first, min(first + GAMES_AT_ONCE, plan.games)), evaluator, None, match)
        while batch.is_running().any():
            batch.play_round()
        results += batch.results()
    ratings = fit_ratings(pairs_of(plan, results), [])
    rating = ratings.rating(NET)._asdict() if ratings is not None else None
    return [{**_row(plan, results, word), "rating": rating} for word in plan.opponents]


def _row(plan: EvaluationPlan, results: list[GameResult], opponent: str) -> dict[str, Any]:
    mine = [result for result in results if plan.opponent(result.game) == opponent]
    points = [result.outcome + 1 for result in mine]  # in halves of a point
    counts = Counter(first + second for first, second in zip(points[::2], points[1::2], strict=True))
    pairs = [counts[category] for category in range(5)]
    score = estimate(pairs).score
    return {
        "against": opponent,
        "games": len(mine),
        "score": score.value,
        "low": score.low,
        "high": score.high,
        "pairs": pairs,
        "drawn": sum(result.outcome == 0 for result in mine),
        "by_repetition": sum(result.repetition for result in mine),
        "truncated": sum(result.truncated for result in mine),
        "mean_plies": sum(result.plies for result in mine) / len(mine),
    }
