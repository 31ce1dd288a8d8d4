"""What a cycle says about itself."""

from __future__ import annotations

import time

from ranks.workloads.chess_value.cycle_report import CycleReport, MatchTime
from ranks.workloads.chess_value.labelling.labeller import LabelledPart, OutcomeLabels
from ranks.workloads.chess_value.positions.sourced import SourcedPositions, sourced
from tests.chess_value.boards import random_boards


def positions(count: int, cp: int | None = None) -> SourcedPositions:
    return sourced(random_boards(count), [cp] * count, [1] * count, "own", [False] * count)


def report_of(*parts: LabelledPart) -> CycleReport:
    report = CycleReport(0, time.perf_counter())
    assert len(list(report.timed(iter(parts)))) == len(parts)
    return report


def test_labels_a_second_are_those_that_were_computed_in_the_time_that_it_took() -> None:
    """Not positions in the time that the training waited, which is next to nothing where labels overlap it."""
    part = LabelledPart(*positions(20).split())
    report = report_of(part._replace(computed=10, seconds=4.0), part._replace(cached=15, computed=5, seconds=1.0))
    metrics = report.metrics(None)
    assert metrics["labels_per_second"] == 3.0
    assert metrics["cached_share"] == 0.5
    assert "40 positions, 3 labels/s, 50% cached, no update yet" in report.line(None)


def test_without_computed_labels_none_is_counted() -> None:
    cached = report_of(LabelledPart(*positions(20).split(), cached=20))
    assert "labels_per_second" not in cached.metrics(None)
    assert "20 positions, 100% cached, " in cached.line(None)
    outcome = report_of(*OutcomeLabels().label(positions(20), 2, lambda: None))  # pyright: ignore[reportArgumentType]
    assert not {"labels_per_second", "cached_share"} & outcome.metrics(None).keys()
    assert "20 positions, no update yet" in outcome.line(None)


def test_too_long_matches_are_said_once() -> None:
    def cycle(match_s: float) -> CycleReport:
        return CycleReport(0, time.perf_counter() - 100.0, match_s=match_s)

    time_of_matches = MatchTime(0.15)
    assert [time_of_matches.add(cycle(match_s)) for match_s in (0.0, 20.0)] == [None, None], "10 % of both cycles"
    said = time_of_matches.add(cycle(50.0))
    assert said is not None
    assert said.startswith("matches took 23% of the time, more than --rating.share 0.15")
    assert time_of_matches.add(cycle(90.0)) is None
