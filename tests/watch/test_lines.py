"""Golden text: what each fact of a run reads like."""

from __future__ import annotations

from pathlib import Path

import pytest

from ranks.watch.lines import duration, event_line, plan_lines, progress_line, size, summary_lines, validation_line

PLAN = {
    **{"event": "plan", "ranks": 2, "devices": ["cuda:0", "cuda:1"], "threads": 4, "shards": 64, "global_batch": 4096},
    **{"items_per_shard": 64.0, "parameters": 2_512_345, "lr": 0.0003, "lr_rule": "sqrt", "precision": "bf16"},
    **{"mode": "fast", "iterations": 1000, "start_iteration": 120, "expected_s": 187.0},
}
FINISHED = {
    **{"event": "finished", "metrics": {"val/loss": 0.12345, "val/solved": 0.98}, "seconds": 183.4, "goodput": 0.973},
    **{"time_split": {"data": 10.0, "compute": 80.0, "communication": 9.9, "save": 0.1}, "peak_memory_bytes": 3 << 29},
    **{"export": "runs/x/export"},
}


def test_the_plan() -> None:
    assert plan_lines(PLAN) == [
        "plan",
        "  ranks          2, on cuda:0, cuda:1, 4 threads each",
        "  shards         64",
        "  global batch   4,096 = 64 shards x 64 items",
        "  parameters     2,512,345",
        "  learning rate  0.0003, rule sqrt",
        "  precision      bf16",
        "  mode           fast",
        "  iterations     1,000, from 120",
        "  expected time  3 min 07 s",
    ]
    uneven = plan_lines({"global_batch": 100, "shards": 64, "items_per_shard": 100 / 64})
    assert uneven[-1] == "  global batch   100 = 64 shards x 1 or 2 items"
    assert plan_lines({"ranks": 1}) == ["plan", "  ranks          1"]
    assert plan_lines({}) == ["plan"]


def test_the_summary() -> None:
    assert summary_lines(FINISHED, Path("runs/x")) == [
        "finished",
        "  val/loss    0.1235",
        "  val/solved  0.98",
        "  time        3 min 03 s, data 10%, compute 80%, communication 10%",
        "  goodput     97.3% of the wall time of all sessions was useful work",
        "  peak memory 1.5 GiB",
        "  run folder  runs/x",
        "  checkpoints runs/x/checkpoints",
        "  export      runs/x/export",
        "next",
        "  ranks evaluate x",
        "  ranks export x",
        "  tensorboard --logdir runs/x/tensorboard",
    ]
    assert summary_lines({}, Path("runs/x"))[0] == "finished"
    assert summary_lines({"complete": False}, Path("runs/x"))[0].startswith("ended at the time limit")


@pytest.mark.parametrize(
    ("event", "line"),
    [
        (
            {"event": "saved", "iteration": 1200, "checkpoint": "checkpoints/00001200"},
            "saved checkpoints/00001200",
        ),
        ({"event": "saved"}, "saved"),
        ({"event": "saved", "iteration": 1200}, "saved iteration 1,200"),
        ({"event": "resumed", "iteration": 0}, "resumed from iteration 0"),
        ({"event": "resumed"}, "resumed from the newest checkpoint"),
        (
            {"event": "skipped_update", "rank": 1, "tensor": "layers.0.weight", "iteration": 7},
            "update skipped: rank 1 had non-finite values in layers.0.weight, iteration 7",
        ),
        ({"event": "skipped_update"}, "update skipped: a rank had non-finite values"),
        ({"event": "warning", "text": "low disk\x1b[2J"}, "warning: low disk?[2J"),
        (
            {"event": "stopped", "iteration": 3},
            "stopped after a save, iteration 3, the same command goes on from there",
        ),
        ({"event": "plan"}, None),
        ({"event": "of a later version"}, None),
        ({}, None),
    ],
)
def test_events(event: dict[str, object], line: str | None) -> None:
    assert event_line(event) == line


def test_progress_and_evaluation() -> None:
    row = {"iteration": 1200, "train/loss": 0.5, "time/samples_per_second": 12345.6, "val/loss": 0.25}
    assert progress_line(row, 5000, 65.0) == "iteration 1,200/5,000, loss 0.5, 12,346 samples/s, 1 min 05 s left"
    assert progress_line({"iteration": 4}, None, None) == "iteration 4"
    assert progress_line({"iteration": 4, "train/loss": None}, None, None) == "iteration 4"
    assert validation_line(row) == "iteration 1,200, val/loss 0.25"
    assert validation_line({"iteration": 3}) is None


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0.0 s"),
        (9.9, "9.9 s"),
        (9.99, "10 s"),
        (59.6, "1 min 00 s"),
        (3599, "59 min 59 s"),
        (7265, "2 h 01 min"),
        (None, ""),
    ],
)
def test_durations(seconds: float | None, text: str) -> None:
    assert duration(seconds) == text


def test_sizes() -> None:
    assert (size(3 << 20), size(3 << 30), size(None)) == ("3 MiB", "3.0 GiB", "")
