"""What `ranks watch` shows of a run next to its progress: curves, goodput, cost, use of each rank, events."""

from __future__ import annotations

import io
import re
from pathlib import Path

import pytest

from ranks.watch.console import ConsoleView
from ranks.watch.run_status import RunStatus, main_metrics
from tests.watch.test_console import ANSI
from tests.watch.test_serve import make_run, metrics, write_rows

START = 1e9


class Watched:
    """A run that stopped after an hour at 2.49 an hour, and a view of it with a clock that the test moves."""

    def __init__(self, folder: Path, *, width: int | None = None) -> None:
        self.folder, self.now_s, self.stream = folder, 0.0, io.StringIO()
        rows = metrics(1, 4, **{"val/loss": 0.5, "time/iteration_s": 450.0})
        make_run(folder, rows)
        begin = {"event": "opened", "time": START, "price": 2.49, "ranks": 2}
        write_rows(folder / "sessions.jsonl", [begin, {"event": "stopped", "time": START + 3600}])
        use = {"use/rank0/gpu_percent": 98.0, "use/rank1/gpu_percent": 10.0}
        write_rows(folder / "telemetry.jsonl", [{"time": START, "iteration": 1, **use}])
        status = RunStatus(folder, clock=lambda: self.now_s)
        self.view = ConsoleView(
            folder,
            stream=self.stream,
            terminal=width is not None,
            width=width,
            clock=lambda: self.now_s,
            status=status,
        )

    def taken(self) -> list[str]:
        """The lines since the last call, without control codes."""
        text = ANSI.sub("", self.stream.getvalue())
        self.stream.seek(0)
        self.stream.truncate()
        return [line.rstrip() for line in re.split(r"[\r\n]+", text) if line.strip()]


def test_a_terminal_has_curves_use_goodput_and_cost_below_the_bar(tmp_path: Path) -> None:
    watched = Watched(tmp_path / "mine", width=120)
    assert watched.taken()[-2:] == ["2001-09-09 01:46:40 opened price 2.49, ranks 2", "2001-09-09 02:46:40 stopped"]
    with watched.view:
        pass
    lines = watched.taken()
    assert lines[-5].endswith("iteration 4/40, loss 0.25, 18 s left, 64 samples/s")
    assert lines[-4:] == [
        f"{'train/loss':<24} █▃▂▁ 0.25 (0.25 to 1)",
        f"{'val/loss':<24} ▅▅▅▅ 0.5 (0.5 to 0.5)",
        "GPU 98 10 %",
        "goodput 50.0%, 1 h 00 min in all sessions, cost 2.49 at 2.49 an hour, for all sessions",
    ]


def test_lines_below_the_bar_are_cut_to_the_width_of_the_terminal(tmp_path: Path) -> None:
    watched = Watched(tmp_path / "mine", width=40)
    watched.taken()
    with watched.view:
        pass
    assert [len(line) for line in watched.taken()[-4:]] == [40, 40, 11, 40]


def test_a_log_has_goodput_and_cost_in_each_line_and_the_curves_now_and_then(tmp_path: Path) -> None:
    watched = Watched(tmp_path / "mine")
    watched.taken()
    watched.view.refresh()
    line, *curves = watched.taken()
    assert line == "iteration 4/40, loss 0.25, 18 s left, 64 samples/s, GPU 98 10 %, goodput 50.0%, cost 2.49"
    assert [curve.split()[0] for curve in curves] == ["train/loss", "val/loss"]
    for _ in range(3):
        watched.now_s += 10
        with (watched.folder / "metrics.jsonl").open("a") as file:
            file.write('{"iteration": 5, "train/loss": 0.125}\n')
        watched.view.refresh()
        (line,) = watched.taken()
        assert line.startswith("iteration 5/40, loss 0.125")
    with watched.view:
        pass
    assert [line.split()[0] for line in watched.taken()] == ["train/loss", "val/loss"], "the end"


@pytest.mark.parametrize(
    ("names", "shown"),
    [
        (
            ["train/grad_norm", "train/loss", "val/loss", "val/accuracy"],
            "train/loss val/loss val/accuracy train/grad_norm",
        ),
        (["rollout/episode_reward", "train/policy_loss"], "rollout/episode_reward train/policy_loss"),
        (["val/a", "val/b", "val/c", "match/rating", "train/loss"], "train/loss match/rating val/a val/b"),
        (["use/rank0/cpu_percent", "time/samples_per_second"], ""),
    ],
)
def test_the_main_metrics_come_first(names: list[str], shown: str) -> None:
    assert main_metrics(names) == shown.split()
