"""The console view of recorded files, in a log and on terminals of several widths, also for resumed runs."""

from __future__ import annotations

import io
import json
import re
import threading
from pathlib import Path
from typing import Any

import pytest

from ranks.watch.console import ConsoleView
from ranks.watch.run_status import RunStatus
from ranks.watch.telemetry_rows import use_parts

PLAN = {"event": "plan", "ranks": 2, "devices": ["cpu", "cpu"], "shards": 8, "global_batch": 32, "iterations": 100}
ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
FINISHED = {"event": "finished", "metrics": {"val/loss": 0.5}, "seconds": 20.0}


class Stream(io.StringIO):
    """Knows when the plan has been written to it."""

    def __init__(self) -> None:
        super().__init__()
        self.plan_shown = threading.Event()

    def write(self, text: str) -> int:
        written = super().write(text)
        if "plan" in text:
            self.plan_shown.set()
        return written


class Full(io.StringIO):
    """Cannot be written to."""

    def write(self, text: str) -> int:
        raise RuntimeError("no space")


class Recorded:
    """A run folder that is written row by row, a view of it and a fake clock."""

    def __init__(self, folder: Path, *, width: int | None = None) -> None:
        """`width`: of a terminal; None for a log."""
        self.folder = folder
        self.now_s = 1000.0
        self.stream: io.StringIO = Stream()
        self.width = width

    def view(self) -> ConsoleView:
        terminal = self.width is not None
        return ConsoleView(
            self.folder, stream=self.stream, terminal=terminal, width=self.width, clock=lambda: self.now_s
        )

    def append(self, name: str, *rows: dict[str, Any]) -> None:
        self.folder.mkdir(exist_ok=True)
        with (self.folder / name).open("a") as file:
            file.writelines(json.dumps(row) + "\n" for row in rows)

    def cut(self, name: str, rows: int) -> None:
        lines = (self.folder / name).read_text().splitlines(keepends=True)
        (self.folder / name).write_text("".join(lines[:rows]))

    def taken(self) -> list[str]:
        """The lines since the last call, without control codes."""
        text = ANSI.sub("", self.stream.getvalue())
        self.stream.seek(0)
        self.stream.truncate()
        return [line for line in re.split(r"[\r\n]+", text) if line]


def row(iteration: int, **more: float) -> dict[str, float]:
    return {"iteration": iteration + 1, "time_s": iteration * 0.5, "train/loss": 1.0 / (1 + iteration), **more}


@pytest.fixture
def recorded(tmp_path: Path) -> Recorded:
    return Recorded(tmp_path / "x")


def test_a_run_in_a_log_from_plan_to_summary(recorded: Recorded) -> None:
    view = recorded.view()
    view.refresh()
    recorded.append("events.jsonl", PLAN)
    recorded.append("metrics.jsonl", row(0), row(1))
    view.refresh()
    assert recorded.taken() == [
        "plan",
        "  ranks          2, on cpu",
        "  global batch   32",
        "  iterations     100",
        "iteration 2/100, loss 0.5, 49 s left",
    ]
    recorded.now_s += 5
    recorded.append("metrics.jsonl", row(2), row(3, **{"val/loss": 0.75}))
    recorded.append("events.jsonl", {"event": "saved", "iteration": 4})
    view.refresh()
    assert recorded.taken() == ["iteration 4, val/loss 0.75", "saved iteration 4"]
    recorded.now_s += 5
    view.refresh()
    view.refresh()
    assert recorded.taken() == ["iteration 4/100, loss 0.25, 48 s left"]
    recorded.append("metrics.jsonl", row(99))
    recorded.append("events.jsonl", FINISHED)
    with view:
        pass
    lines = recorded.taken()
    assert lines[:3] == ["iteration 100/100, loss 0.01", "finished", "  val/loss    0.5"]
    assert lines[-1] == f"  tensorboard --logdir {recorded.folder}/tensorboard"


def test_a_long_iteration_shows_how_far_it_is(recorded: Recorded) -> None:
    view, file = recorded.view(), recorded.folder / "progress.json"
    recorded.append("events.jsonl", PLAN)
    for share in (0.25, 0.5):
        file.write_text(json.dumps({"iteration": 0, "part": "games", "share": share}))
        view.refresh()
        recorded.now_s += 10
    assert recorded.taken()[-2:] == ["iteration 1: games 25%", "iteration 1: games 50%"]
    view.refresh()
    assert recorded.taken() == [], "what does not change any more is over"
    file.write_text(json.dumps({"iteration": 0, "part": "matches", "share": 0.1}))
    recorded.append("metrics.jsonl", row(0))
    view.refresh()
    assert recorded.taken() == ["iteration 1/100, loss 1"], "a row says more"
    for odd in ("{", "[]", '{"iteration": 1}', '{"iteration": 1, "part": 3, "share": 0.5}'):
        file.write_text(odd)
        recorded.now_s += 10
        view.refresh()
    assert recorded.taken() == []


def test_a_long_iteration_on_a_terminal(tmp_path: Path) -> None:
    recorded = Recorded(tmp_path / "x", width=100)
    (recorded.folder).mkdir()
    file = recorded.folder / "progress.json"
    file.write_text(json.dumps({"iteration": 4, "part": "games", "share": 0.75}))
    view = recorded.view()
    recorded.append("events.jsonl", {**PLAN, "start_iteration": 4})
    view.refresh()
    assert not any("games" in line for line in recorded.taken()), "of a run that was killed"
    file.write_text(json.dumps({"iteration": 4, "part": "games", "share": 0.2}))
    view.refresh()
    assert re.search(" 4% iteration 5: games 20%$", recorded.taken()[-1].rstrip())
    recorded.append("metrics.jsonl", row(4))
    view.refresh()
    assert re.search(" 5% iteration 5: games 20%, iteration 5/100, loss 0.2", recorded.taken()[-1])


def test_a_restart_is_not_shown_twice(recorded: Recorded) -> None:
    recorded.append("events.jsonl", PLAN, {"event": "saved", "iteration": 2}, {"event": "saved", "iteration": 4})
    recorded.append("metrics.jsonl", *(row(i) for i in range(6)))
    view = recorded.view()
    view.refresh()
    assert recorded.taken() == [], "the rows of an earlier session are not shown"
    recorded.append("events.jsonl", {**PLAN, "start_iteration": 6})
    view.refresh()
    recorded.taken()
    recorded.cut("events.jsonl", 2)
    recorded.cut("metrics.jsonl", 3)
    recorded.append("events.jsonl", {"event": "resumed", "iteration": 2}, {**PLAN, "start_iteration": 2})
    view.refresh()
    assert recorded.taken() == ["resumed from iteration 2"]
    recorded.now_s += 10
    recorded.append("metrics.jsonl", row(3), row(4))
    view.refresh()
    assert recorded.taken() == ["iteration 5/100, loss 0.2, 48 s left"]


def test_a_complete_run_has_nothing_to_do(recorded: Recorded) -> None:
    view = recorded.view()
    recorded.append("events.jsonl", {"event": "note", "text": "complete at 310 of 310, nothing to do"})
    view.refresh()
    assert recorded.taken() == ["complete at 310 of 310, nothing to do"]


def test_a_terminal_gets_a_bar_and_lines_above_it(tmp_path: Path) -> None:
    recorded = Recorded(tmp_path / "x", width=80)
    view = recorded.view()
    recorded.append("events.jsonl", PLAN)
    recorded.append("metrics.jsonl", row(0), row(9, **{"val/loss": 0.125}))
    view.refresh()
    recorded.append("events.jsonl", {"event": "saved", "iteration": 10})
    view.refresh()
    with view:
        pass
    lines = recorded.taken()
    assert "iteration 10, val/loss 0.125" in lines
    assert lines.index("saved iteration 10") > lines.index("iteration 10, val/loss 0.125")
    assert re.fullmatch(r"[━╸╺]{16}  10% iteration 10/100, loss 0.1, 45 s left", lines[-1])


@pytest.mark.parametrize(
    ("width", "shown"),
    [
        (40, r"[━╸╺]{10}  40% iteration 400/1,000"),
        (60, r"[━╸╺]{10}  40% iteration 400/1,000, loss 0.0025"),
        (80, r"[━╸╺]{16}  40% iteration 400/1,000, loss 0.0025, episode reward 21.3"),
        (100, r"[━╸╺]{24}  40% iteration 400/1,000, loss 0.0025, episode reward 21.3, 5 min 00 s left"),
        (
            120,
            r"[━╸╺]{24}  40% iteration 400/1,000, loss 0.0025, episode reward 21.3, 5 min 00 s left, 9,000 env steps/s",
        ),
    ],
)
def test_bar_and_percentage_fit_every_terminal_also_after_a_validation(tmp_path: Path, width: int, shown: str) -> None:
    recorded = Recorded(tmp_path / "x", width=width)
    view = recorded.view()
    recorded.append("events.jsonl", {**PLAN, "iterations": 1000})
    rl = {"rollout/episode_reward": 21.3, "time/env_steps_per_second": 9000.0, "time/samples_per_second": 100.0}
    long_validation = {f"val/a_long_name_of_a_metric_{i}": 0.123 for i in range(4)}
    recorded.append("metrics.jsonl", row(298, **rl), row(299, **rl, **long_validation), row(399, **rl))
    with view:
        pass
    lines = recorded.taken()
    assert re.fullmatch(shown, lines[-1]), lines[-1]
    assert len(lines[-1]) <= width
    assert any(line.startswith("iteration 300, val/a_long_name") for line in lines)


def test_it_follows_in_a_thread_and_passes_output_on(recorded: Recorded, capsys: pytest.CaptureFixture[str]) -> None:
    with recorded.view() as view:
        recorded.append("events.jsonl", PLAN)
        assert isinstance(recorded.stream, Stream)
        assert recorded.stream.plan_shown.wait(60)
        view.say("note\x1b[2J")
        view.show(0, "out", "50%\r100%\nfrom rank 0\n")
        view.show(0, "err", "to err\n")
    assert recorded.taken()[-2:] == ["100%", "from rank 0"]
    assert capsys.readouterr().err == "note?[2J\nto err\n"


def test_no_line_end_is_added_to_output_without_a_bar(recorded: Recorded, capsys: pytest.CaptureFixture[str]) -> None:
    with recorded.view() as view:
        for text in ('{"a": ', "1}\n", ".", ".", "50%\r", "."):
            view.show(0, "out", text)
        view.show(0, "err", "asked ")
        view.say("note")
        assert recorded.stream.getvalue() == '{"a": 1}\n..50%\r.'
    assert capsys.readouterr().err == "asked \nnote\n", "a line of the view starts at the left"


class Terminal(Stream):
    def isatty(self) -> bool:
        return True


def test_an_unfinished_line_is_a_line_above_the_bar(recorded: Recorded) -> None:
    recorded.stream, recorded.width = Terminal(), 80
    recorded.append("events.jsonl", PLAN)
    view = recorded.view()
    recorded.append("metrics.jsonl", row(0))
    view.show(0, "out", "loading ...")
    view.refresh()
    assert recorded.taken()[0] == "loading ...", "the bar begins on a line of its own"
    view.show(0, "out", "thinking ...")
    assert "thinking ..." in [line.strip() for line in recorded.taken()]
    with view:
        pass


def test_a_view_that_fails_says_so_once_and_the_run_continues(
    recorded: Recorded, capsys: pytest.CaptureFixture[str]
) -> None:
    recorded.stream = Full()
    recorded.folder.mkdir()
    with recorded.view() as view:
        recorded.append("events.jsonl", PLAN)
        view.say("still here")
    assert sorted(capsys.readouterr().err.splitlines()) == [
        "still here",
        "the console view failed (RuntimeError: no space); the run continues",
    ]


def test_what_the_ranks_use_is_at_the_end_of_the_progress(recorded: Recorded) -> None:
    recorded.append("events.jsonl", PLAN)
    recorded.append("telemetry.jsonl", {"use/rank0/cpu_percent": 11.0}, {"use/rank0/cpu_percent": 12.0})
    view = recorded.view()
    recorded.append("metrics.jsonl", row(0))
    use = {"use/rank0/cpu_percent": 97.4, "use/rank1/cpu_percent": 48.0, "use/rank1/memory_bytes": 5.0}
    recorded.append("telemetry.jsonl", {"time": 1, **use})
    view.refresh()
    assert recorded.taken() == ["iteration 1, loss 1, CPU 97 48 %"]


def test_a_view_of_another_terminals_run_says_which_rank_is_slow(recorded: Recorded) -> None:
    old, new = ({"event": "straggler", "rank": 1, "text": f"rank 1 is \x1b{text}"} for text in ("old", "new"))
    recorded.append("events.jsonl", PLAN)
    recorded.append("sessions.jsonl", {"event": "opened"}, old)
    for status, expected in ((RunStatus(recorded.folder), ["rank 1 is ?new"]), (None, [])):
        view = ConsoleView(recorded.folder, stream=recorded.stream, clock=lambda: 0.0, status=status)
        recorded.taken()
        recorded.append("sessions.jsonl", new, {"event": "stopped"})
        view.refresh()
        assert recorded.taken() == expected, "the launcher's own view: the launcher says it"


def queue(rank: int, ready: int, ahead: int) -> dict[str, int]:
    return {f"use/rank{rank}/batches_ready": ready, f"use/rank{rank}/batches_ahead": ahead}


@pytest.mark.parametrize(
    ("row", "parts"),
    [
        ({"use/rank0/gpu_percent": 98.0, "use/rank1/gpu_percent": 7.6, "use/rank0/cpu_percent": 50.0}, ["GPU 98 8 %"]),
        ({f"use/rank{rank}/cpu_percent": 90.0 + rank for rank in range(9)}, ["CPU 90 to 98 %"]),
        ({"use/rank0/cpu_percent": None, "use/rank1/cpu_percent": "x"}, []),
        ({**queue(0, 8, 8), **queue(1, 1, 8), "use/rank2/batches_ready": 3}, ["batches ready 8/8 1/8"]),
        ({"use/rank0/cpu_percent": 9.0, **queue(0, 0, 4)}, ["CPU 9 %", "batches ready 0/4"]),
        ({k: v for rank in range(9) for k, v in queue(rank, rank, 8).items()}, ["batches ready 0% to 100%"]),
        ({**queue(0, 0, 0)}, []),
        ({}, []),
    ],
)
def test_one_number_for_each_rank(row: dict[str, Any], parts: list[str]) -> None:
    assert use_parts(row) == parts
