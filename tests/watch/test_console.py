"""The console view over recorded files: what stands in a log, also when the run is cut back and goes on."""

from __future__ import annotations

import io
import json
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from ranks.watch.console import View

PLAN = {"event": "plan", "ranks": 2, "devices": ["cpu", "cpu"], "shards": 8, "global_batch": 32, "iterations": 100}
FINISHED = {"event": "finished", "metrics": {"val/loss": 0.5}, "seconds": 20.0}


class Recorded:
    """A run folder that is written row by row, a view of it and a clock."""

    def __init__(self, folder: Path, *, terminal: bool = False) -> None:
        self.folder = folder
        self.now_s = 1000.0
        self.stream = io.StringIO()
        self.terminal = terminal

    def view(self) -> View:
        return View(self.folder, stream=self.stream, terminal=self.terminal, clock=lambda: self.now_s)

    def append(self, name: str, *rows: dict[str, Any]) -> None:
        self.folder.mkdir(exist_ok=True)
        with (self.folder / name).open("a") as file:
            file.writelines(json.dumps(row) + "\n" for row in rows)

    def cut(self, name: str, rows: int) -> None:
        lines = (self.folder / name).read_text().splitlines(keepends=True)
        (self.folder / name).write_text("".join(lines[:rows]))

    def taken(self) -> list[str]:
        """The lines since the last call."""
        text = self.stream.getvalue()
        self.stream.seek(0)
        self.stream.truncate()
        return text.splitlines()


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
        "  shards         8",
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


def test_a_restart_is_not_told_twice(recorded: Recorded) -> None:
    recorded.append("events.jsonl", PLAN, {"event": "saved", "iteration": 2}, {"event": "saved", "iteration": 4})
    recorded.append("metrics.jsonl", *(row(i) for i in range(6)))
    view = recorded.view()
    view.refresh()
    assert recorded.taken() == [], "what an earlier session left is taken in, not shown"
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


def test_a_terminal_gets_a_bar_and_lines_above_it(tmp_path: Path) -> None:
    recorded = Recorded(tmp_path / "x", terminal=True)
    view = recorded.view()
    recorded.append("events.jsonl", PLAN)
    recorded.append("metrics.jsonl", row(0), row(9, **{"val/loss": 0.125}))
    view.refresh()
    recorded.append("events.jsonl", {"event": "saved", "iteration": 10})
    view.refresh()
    with view:
        pass
    text = recorded.stream.getvalue()
    assert "10%" in text
    assert "iteration 10/100, loss 0.1" in text
    assert "val/loss 0.125" in text
    assert "saved iteration 10" in text


def test_it_follows_in_a_thread_and_passes_output_on(recorded: Recorded, capsys: pytest.CaptureFixture[str]) -> None:
    with recorded.view() as view:
        recorded.append("events.jsonl", PLAN)
        deadline = time.monotonic() + 30
        while "plan" not in recorded.stream.getvalue():
            assert time.monotonic() < deadline
            time.sleep(0.01)
        view.say("note\x1b[2J")
        view.show(0, "out", "50%\r100%\nfrom rank 0\n")
        view.show(0, "err", "to err\n")
    assert recorded.taken()[-2:] == ["100%", "from rank 0"]
    assert capsys.readouterr().err == "note?[2J\nto err\n"


def test_a_view_that_fails_says_so_once_and_the_run_goes_on(
    recorded: Recorded, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(event: object) -> list[str]:
        raise RuntimeError("no ink")

    monkeypatch.setattr(sys.modules["ranks.watch.console"], "plan_lines", fail)
    recorded.folder.mkdir()
    with recorded.view() as view:
        recorded.append("events.jsonl", PLAN)
        view.say("still here")
    assert sorted(capsys.readouterr().err.splitlines()) == [
        "still here",
        "the console view ended (RuntimeError: no ink); the run goes on",
    ]
