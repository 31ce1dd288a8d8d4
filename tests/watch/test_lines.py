"""Golden text: the lines for each event and row of a run."""

from __future__ import annotations

from pathlib import Path

import pytest

from ranks.progress import duration
from ranks.watch.lines import (
    episode_reward,
    event_line,
    plan_lines,
    progress_line,
    resume_line,
    size,
    speeds,
    summary_lines,
    validation_line,
)

PLAN = {
    **{"event": "plan", "ranks": 2, "devices": ["cuda:0", "cuda:1"], "threads": 4, "shards": 64, "global_batch": 4096},
    **{
        "items_per_shard": 64.0,
        "parameters": 2_512_345,
        "lr": 0.0003,
        "lr_rule": "sqrt",
        "base_batch": 256,
        "precision": "bf16",
    },
    **{"schedule": "cosine", "schedule_updates": 4000, "warmup_updates": 50, "items_per_rank": [2048, 2048]},
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
        "  global batch   4,096, 2,048 on each of 2 ranks",
        "  parameters     2,512,345",
        "  learning rate  0.0003, scaled by the sqrt rule from a base batch of 256, cosine to update 4,000, warm-up 50",
        "  precision      bf16",
        "  mode           fast",
        "  iterations     1,000, from 120",
        "  expected time  3 min 07 s, evaluations not counted",
    ]
    constant = plan_lines({"lr": 0.001, "lr_rule": "none", "schedule": "constant", "schedule_updates": None})
    assert constant[-1] == "  learning rate  0.001, constant"
    assert plan_lines({"ranks": 1}) == ["plan", "  ranks          1"]
    assert plan_lines({}) == ["plan"]


@pytest.mark.parametrize(
    ("plan", "text"),
    [
        ({"global_batch": 32, "shards": 64, "items_per_rank": [32]}, "32"),
        ({"global_batch": 32, "shards": 64, "items_per_rank": [16, 16]}, "32, 16 on each of 2 ranks"),
        ({"global_batch": 33, "shards": 64, "items_per_rank": [16, 17]}, "33, 16 or 17 on each of 2 ranks"),
        ({"global_batch": 32, "shards": 8, "items_per_rank": [20, 12]}, "32, 20 + 12 on 2 ranks"),
        ({"global_batch": 32, "shards": 8, "mode": "exact"}, "32 = 8 shards x 4 items"),
        ({"global_batch": 100, "shards": 64, "mode": "exact"}, "100 = 64 shards x 1 or 2 items"),
        ({"global_batch": 32}, "32"),
    ],
)
def test_the_division_of_a_global_batch(plan: dict[str, object], text: str) -> None:
    assert f"  global batch   {text}" in plan_lines(plan)


def test_the_expected_time_of_short_updates_is_left_out() -> None:
    """Of an update of 2 ms, most of an iteration's time is not in the two timed passes."""
    assert any("expected time" in line for line in plan_lines(PLAN | {"iteration_s": 0.2}))
    assert not any("expected time" in line for line in plan_lines(PLAN | {"iteration_s": 0.002}))


def test_a_small_network_on_several_threads_gets_a_hint() -> None:
    plan = {"ranks": 1, "devices": ["cpu"], "threads": 2, "parameters": 4_000}
    assert plan_lines(plan)[2] == "  hint           so small a network trains best with --threads 1"
    for other in ({"threads": 1}, {"parameters": 4_000_000}, {"devices": ["cuda:0"]}):
        assert not any("hint" in line for line in plan_lines(plan | other))


def test_the_plan_of_ppo_has_the_names_of_stable_baselines3() -> None:
    rollouts = {"n_envs": 32, "envs_per_rank": [16, 16], "n_steps": 64, "epochs": 10, "minibatches": 4}
    lines = plan_lines({"global_batch": 32, "items_per_rank": [16, 16]} | rollouts)
    assert lines[1:] == [
        "  environments   32, 16 on each of 2 ranks",
        "  rollout        2,048 steps = 64 steps (n_steps) x 32 environments (n_envs)",
        "  updates        40 a rollout = 10 epochs (n_epochs) x 4 minibatches of 512 steps (batch_size)",
    ]


def test_from_where_the_same_command_resumes() -> None:
    assert resume_line(Path("runs/x"), 120) == (
        "the same command resumes from iteration 120 (runs/x/checkpoints/00000120)"
    )
    for iteration in (0, -1):
        line = resume_line(Path("runs/x"), iteration)
        assert line == "no iteration was saved: the same command starts from the beginning"


def test_the_summary_says_of_which_iteration_an_older_value_is() -> None:
    metrics = {"train/loss": 0.1, "val/loss": 0.2}
    found = {"event": "finished", "metrics": metrics, "metric_iterations": {"train/loss": 1200, "val/loss": 1000}}
    assert summary_lines(found, Path("runs/x"))[1:3] == ["  train/loss  0.1", "  val/loss    0.2 (iteration 1,000)"]


def test_the_summary() -> None:
    assert summary_lines(FINISHED, Path("runs/x")) == [
        "finished",
        "  val/loss    0.1235",
        "  val/solved  0.98",
        "  time        3 min 03 s, data 10%, compute 80%, communication 10%",
        "  goodput     97.3% of the time of all sessions went into kept iterations",
        "  peak memory 1.5 GiB",
        "  run folder  runs/x",
        "  checkpoints runs/x/checkpoints",
        "  export      runs/x/export",
        "next",
        "  ranks evaluate x",
        "  tensorboard --logdir runs/x/tensorboard",
    ]
    assert summary_lines({}, Path("runs/x"))[0] == "finished"
    assert "  ranks export x" in summary_lines({}, Path("runs/x"))
    assert summary_lines({"complete": False}, Path("runs/x"))[0].startswith("ended at its limit of time or cost")


@pytest.mark.parametrize(
    ("event", "line"),
    [
        (
            {"event": "saved", "iteration": 1200, "checkpoint": "checkpoints/00001200"},
            "saved checkpoints/00001200",
        ),
        ({"event": "saved"}, "saved"),
        ({"event": "saved", "iteration": 1200}, "saved iteration 1,200"),
        ({"event": "resumed", "iteration": 0}, "started again from the beginning: no iteration was saved"),
        ({"event": "resumed", "iteration": 30}, "resumed from iteration 30"),
        ({"event": "resumed"}, "resumed from the newest checkpoint"),
        (
            {"event": "skipped_update", "rank": 1, "tensor": "fc.weight", "problem": "the loss is NaN", "update": 17},
            "update 17 skipped: the loss is NaN on rank 1",
        ),
        ({"event": "skipped_update"}, "update skipped: a loss or a gradient is not finite"),
        ({"event": "warning", "text": "low disk\x1b[2J"}, "warning: low disk?[2J"),
        (
            {"event": "stopped", "iteration": 3},
            "stopped after a save, iteration 3, the same command resumes from there",
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
    assert progress_line(row, 5000, 65.0) == "iteration 1,200/5,000, loss 0.5, 1 min 05 s left, 12,346 samples/s"
    assert progress_line({"iteration": 4}, None, None) == "iteration 4"
    assert progress_line({"iteration": 4, "train/loss": None}, None, None) == "iteration 4"
    assert validation_line(row) == "iteration 1,200, val/loss 0.25"
    assert validation_line({"iteration": 3}) is None


def test_progress_of_reinforcement_learning() -> None:
    row = {"iteration": 1, "train/loss": 0.5, "rollout/episode_reward": 21.25, "rollout/step_reward": 1.0}
    row |= {"time/env_steps_per_second": 9000.4, "time/samples_per_second": 3.0}
    assert progress_line(row, 10, None) == "iteration 1/10, loss 0.5, episode reward 21.25, 9,000 env steps/s"
    assert progress_line({"iteration": 1, "rollout/mean_return": 3.0}, 10, None) == "iteration 1/10, episode reward 3"
    assert progress_line({"iteration": 1, "rollout/episodes": 3.0}, 10, None) == "iteration 1/10"


def test_a_speed_says_what_it_counts() -> None:
    assert speeds({"time/tokens_per_second": 1234.5, "time/data_s": 1.0}) == ["1,234 tokens/s"]
    assert speeds(
        {"time/sequences_per_second": 5.0, "time/env_steps_per_second": 40.0, "time/samples_per_second": 5.0}
    ) == [
        "5 sequences/s",
        "40 env steps/s",
    ]
    assert speeds({"time/samples_per_second": 5.0}) == ["5 samples/s"]
    assert speeds({}) == []


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
    assert (size(3 << 10), size(3 << 20), size(3 << 30), size(None)) == ("3 KiB", "3 MiB", "3.0 GiB", "")


def test_a_step_reward_is_not_shown_as_the_reward_of_an_episode() -> None:
    assert episode_reward({"rollout/step_reward": -1.0, "rollout/episodes": 0.0}) is None
    assert episode_reward({"rollout/step_reward": -1.0, "rollout/episode_reward": -200.0}) == -200.0
