"""benchmarks/forecast/network_jobs/judge.py: how forecasts of sleeping jobs are judged."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from benchmarks.forecast.network_jobs import jobs
from benchmarks.forecast.network_jobs.judge import JobFact, judge
from ranks.hardware.forecast.job import ForecastInterval


def judged(*facts: tuple[int, float, float], is_weak: bool = False, busy: tuple[int, ...] = ()) -> Any:
    """The judgement of one job. `facts`: (ranks, forecast, fact) in seconds; `busy`: ranks that took all cores."""
    job = replace(jobs.draw()[jobs.TUNED], is_weak=is_weak)
    return judge(
        [
            JobFact(job, n, ForecastInterval.around(forecast_s, 0.1), fact_s, 0.9 if n in busy else 0.2)
            for n, forecast_s, fact_s in facts
        ]
    )


def test_jobs_for_tuning_and_for_judging_are_apart() -> None:
    drawn = jobs.draw()
    assert [job.is_judged for job in drawn] == jobs.TUNED * [False] + jobs.JUDGED * [True]


def test_errors_and_intervals() -> None:
    found = judged((1, 1.0, 1.0), (2, 0.55, 0.5), (4, 0.3, 0.25), (8, 9.0, 1.0), busy=(8,))
    assert found["thrown_out"] == 1  # it says nothing of the forecast
    assert found["median_error"] == pytest.approx(0.1)
    assert found["within_interval"] == pytest.approx(2 / 3)
    assert {n: of["mean_error"] for n, of in found["by_ranks"].items()} == pytest.approx({1: 0.0, 2: 0.1, 4: 0.2})


def test_a_wrong_choice_costs_what_the_best_one_would_have_saved() -> None:
    """The forecast has four ranks ahead of two; in fact they take 1.2 times as long."""
    found = judged((1, 1.0, 1.0), (2, 0.6, 0.5), (4, 0.5, 0.6))
    assert found["choices"][0]["fastest"] == pytest.approx(1.2)
    assert found["choices"][0]["cheapest"] == pytest.approx(1.0)
    assert (found["right_fastest"], found["right_cheapest"]) == (0, 1)


def test_more_ranks_with_more_items_are_compared_by_item() -> None:
    found = judged((1, 1.0, 1.0), (2, 1.1, 1.1), is_weak=True)  # twice the items in 1.1 times the time
    assert found["choices"][0]["fastest"] == pytest.approx(1.0)
