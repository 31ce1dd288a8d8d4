"""The progress bar: a bar on a terminal, lines in a log, and the estimate of the time left, by a fake clock."""

from __future__ import annotations

import io
import re

from ranks.progress import LOG_S, ProgressBar, TimeLeft, bar_width, fit

ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class Clock:
    """A clock that keeps its time until it is set."""

    now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def test_a_log_gets_a_line_every_ten_seconds() -> None:
    clock, stream = Clock(), io.StringIO()
    with ProgressBar(40, title="labels", unit="graphs", stream=stream, clock=clock) as bar:
        bar.advance(10)
        assert stream.getvalue() == ""
        clock.now_s += LOG_S
        bar.advance(10)
        bar.advance(1)
        bar.line("a line")
    assert stream.getvalue() == "labels 20 of 40 graphs, 10 s left\na line\n"


def test_a_log_gets_no_progress_where_none_is_wanted() -> None:
    clock, stream = Clock(), io.StringIO()
    with ProgressBar(2, stream=stream, clock=clock, log_every_s=None) as bar:
        clock.now_s += 1000
        bar.advance()
        bar.line("game 1")
    assert stream.getvalue() == "game 1\n"


def test_a_terminal_gets_a_bar() -> None:
    clock, stream = Clock(), io.StringIO()
    with ProgressBar(4, unit="games", stream=stream, terminal=True, width=80, clock=clock) as bar:
        clock.now_s += 5
        bar.advance()
        bar.line("game 1")
    lines = [line for line in re.split(r"[\r\n]+", ANSI.sub("", stream.getvalue())) if line]
    assert "game 1" in lines
    assert re.fullmatch(r"[━╸╺]{16}  25% 1 of 4 games, 15 s left", lines[-1])


def test_the_first_parts_are_kept() -> None:
    parts = ["iteration 3/5", "loss 0.25", "1 s left"]
    assert fit(parts, 40) == "iteration 3/5, loss 0.25, 1 s left"
    assert fit(parts, 33) == "iteration 3/5, loss 0.25"
    assert fit(parts, 13) == "iteration 3/5"
    assert fit(parts, 5) == "itera"
    assert fit([], 5) == ""
    assert [bar_width(width) for width in (40, 69, 80, 100, 500)] == [10, 10, 16, 24, 24]


def test_the_time_left_follows_the_speed() -> None:
    left = TimeLeft()
    assert left.seconds(10) is None
    left.add(0, 0.0)
    left.add(4, 2.0)
    assert left.seconds(10) == 3.0
    assert left.seconds(None) is None
    left.clear()
    left.add(4, 1.0)
    left.add(4, 2.0)
    assert left.seconds(10) is None
