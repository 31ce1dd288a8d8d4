"""Forecasts compared with facts: errors, how often the interval holds, and what the choice of ranks costs."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.forecast.network_jobs.jobs import NetworkJob
from ranks.hardware.forecast.job import ForecastInterval

BUSY = 0.7
"""Share of the cores from which on a measurement says something of the cores, not of the forecast."""
CLOSE = 1.03
"""A choice is right if the best one saves less than this."""


@dataclass(frozen=True)
class JobFact:
    """One configuration: seconds of an iteration as forecast and as measured."""

    job: NetworkJob
    num_ranks: int
    forecast_s: ForecastInterval
    fact_s: float
    cpu: float

    @property
    def error(self) -> float:
        return self.forecast_s.middle / self.fact_s - 1

    @property
    def is_within(self) -> bool:
        return self.forecast_s.low <= self.fact_s <= self.forecast_s.high


def judge(facts: Sequence[JobFact]) -> dict[str, Any]:
    """The figures of all configurations whose cores were free enough."""
    kept = [fact for fact in facts if fact.cpu <= BUSY]
    choices = list(_choices(kept))
    return {
        "measured": len(facts),
        "thrown_out": len(facts) - len(kept),
        **_errors(kept),
        "by_ranks": {n: _errors([f for f in kept if f.num_ranks == n]) for n in sorted({f.num_ranks for f in kept})},
        "jobs": len(choices),
        "right_fastest": sum(choice["fastest"] <= CLOSE for choice in choices),
        "right_cheapest": sum(choice["cheapest"] <= CLOSE for choice in choices),
        "choices": choices,
    }


def ledger(facts: Sequence[JobFact]) -> list[dict[str, Any]]:
    """Each forecast with its fact."""
    return [
        {
            "job": fact.job.number,
            "ranks": fact.num_ranks,
            "forecast_s": [fact.forecast_s.low, fact.forecast_s.middle, fact.forecast_s.high],
            "fact_s": fact.fact_s,
            "error": fact.error,
            "is_within": fact.is_within,
            "cpu": fact.cpu,
        }
        for fact in facts
    ]


def _errors(facts: Sequence[JobFact]) -> dict[str, Any]:
    """How far the forecasts of some configurations are from their facts."""
    errors = sorted(abs(fact.error) for fact in facts)
    return {
        "configurations": len(facts),
        "median_error": statistics.median(errors),
        "p90_error": errors[max(0, math.ceil(0.9 * len(errors)) - 1)],
        "mean_error": statistics.fmean(fact.error for fact in facts),
        "within_interval": sum(fact.is_within for fact in facts) / len(facts),
    }


def _choices(facts: Sequence[JobFact]) -> Iterator[dict[str, Any]]:
    """For each job with every number of ranks: what its chosen number of ranks takes and costs, by the best one's."""
    for number in sorted({fact.job.number for fact in facts}):
        of_job = [fact for fact in facts if fact.job.number == number]
        if len(of_job) < 2:
            continue
        yield {
            "job": number,
            "fastest": _regret(of_job, {fact.num_ranks: 1.0 for fact in of_job}),
            "cheapest": _regret(of_job, {fact.num_ranks: float(fact.num_ranks) for fact in of_job}),
        }


def _regret(facts: Sequence[JobFact], price: Mapping[int, float]) -> float:
    """`price`: of a second with so many ranks."""

    def each(fact: JobFact, seconds: float) -> float:
        """Price of an item."""
        return price[fact.num_ranks] * seconds / fact.job.items_of(fact.num_ranks)

    chosen = min(facts, key=lambda fact: each(fact, fact.forecast_s.middle))
    return each(chosen, chosen.fact_s) / min(each(fact, fact.fact_s) for fact in facts)
