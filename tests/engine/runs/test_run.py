"""A run: what it writes, how it resumes, and how it ends."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import torch

from ranks import Run, RunConfig, Stopped, UserError, World
from ranks.engine.files.jsonl import read_rows
from ranks.engine.runs.checkpoints import checkpoint
from ranks.engine.runs.checkpoints.manifest import read_manifest
from tests.engine.group import run_ranks
from tests.engine.image_run import CONFIG, Crash, rows, small_runs, train
from tests.toys import images


@pytest.fixture
def runs(tmp_path: Path) -> RunConfig:
    return small_runs(tmp_path)


@dataclass(frozen=True)
class NoSettings:
    """A workload without settings."""


class Weights:
    """What a run keeps."""

    value = 0

    def state_dict(self) -> dict[str, Any]:
        return {"value": self.value}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.value = state["value"]


def test_a_run_leaves_what_it_promises(runs: RunConfig) -> None:
    summary = train(runs)
    folder = runs.runs_dir / "r"
    assert {p.name for p in folder.iterdir()} == {
        *("run.json", "run_config.json", "metrics.jsonl", "events.jsonl", "sessions.jsonl", "checkpoints", "export"),
    }
    assert summary.complete
    assert [r["iteration"] for r in rows(runs)] == list(range(1, 13))
    assert "val/loss" in rows(runs)[3]
    assert "val/loss" not in rows(runs)[4]
    for row in rows(runs):
        parts = sum(row[f"time/{p}_s"] for p in ("data", "compute", "communication", "evaluation", "save", "other"))
        assert parts == pytest.approx(row["time/iteration_s"], abs=2e-3)
    identity = json.loads((folder / "run.json").read_text())["identity"]
    assert identity["engine"]["seed"] == 0
    assert "eval_every" not in identity["config"]


def test_a_crash_and_a_resume_give_the_straight_run_and_each_iteration_once(runs: RunConfig) -> None:
    straight = train(replace(runs, runs_dir=runs.runs_dir / "straight"))
    with pytest.raises(Crash):
        train(runs, crash_at=7)
    assert [r["iteration"] for r in rows(runs)][-1] >= 5
    resumed = train(runs)
    assert resumed.fingerprint == straight.fingerprint
    assert [r["iteration"] for r in rows(runs)] == list(range(1, 13))
    sessions = read_rows(runs.runs_dir / "r" / "sessions.jsonl")
    assert [s["event"] for s in sessions] == ["opened", "failed", "resumed", "finished"]


def test_events_have_the_time_of_the_day_also_after_a_pause(runs: RunConfig) -> None:
    with pytest.raises(Crash):
        train(runs, crash_at=7)
    sessions = runs.runs_dir / "r" / "sessions.jsonl"
    resumed_at = time.time()
    train(runs)
    (ended_at,) = (session["time"] for session in read_rows(sessions) if session["event"] == "finished")
    events = read_rows(runs.runs_dir / "r" / "events.jsonl")
    (again,) = (n for n, event in enumerate(events) if event["event"] == "resumed")
    assert all(event["time"] < resumed_at for event in events[:again])
    assert all(resumed_at < event["time"] for event in events[again:])
    assert all(event["time"] <= ended_at for event in events[:-1])


def test_more_iterations_continue_a_finished_run(runs: RunConfig) -> None:
    cfg = replace(CONFIG, optim=replace(CONFIG.optim, schedule_updates=20))
    assert train(runs, cfg).iteration == 12
    longer = train(runs, replace(cfg, iterations=20))
    straight = train(replace(runs, runs_dir=runs.runs_dir / "straight"), replace(cfg, iterations=20))
    assert (longer.iteration, longer.fingerprint) == (20, straight.fingerprint)


def test_another_identity_is_refused_and_the_differences_are_listed(runs: RunConfig) -> None:
    train(runs)
    before = (runs.runs_dir / "r" / "metrics.jsonl").read_bytes()
    with pytest.raises(UserError) as error:
        train(replace(runs, seed=1), replace(CONFIG, width=8))
    lines = [line.strip() for line in error.value.found.splitlines()]
    assert lines[0] == "it is another run"
    assert lines[1].startswith('data was "')
    assert re.fullmatch(r'data was "[0-9a-f]{12}", now "[0-9a-f]{12}"', lines[1])
    assert lines[2] == "config.width was 16, now 8"
    assert lines[3].startswith("learner.parameters was ")
    assert lines[4:] == ["engine.seed was 0, now 1"]
    assert error.value.do.endswith("the settings that the run was started with (--width 16 --seed 0)")
    with pytest.raises(UserError, match=r"schedule_updates was 12, now 20(.|\n)*add --optim.schedule-updates 12: "):
        train(runs, replace(CONFIG, iterations=20))
    assert (runs.runs_dir / "r" / "metrics.jsonl").read_bytes() == before


def test_a_complete_run_started_again_stays_as_it_is(runs: RunConfig) -> None:
    first = train(runs)
    folder = runs.runs_dir / "r"
    before = {name: (folder / name).read_bytes() for name in ("sessions.jsonl", "metrics.jsonl", "run.json")}
    assert train(runs) == first
    assert {name: (folder / name).read_bytes() for name in before} == before
    events = read_rows(folder / "events.jsonl")
    assert [e["text"] for e in events if e["event"] == "note"] == ["complete at 12 of 12, nothing to do"]
    finished = [e for e in events if e["event"] == "finished"]
    assert finished[-1]["fingerprint"] == first.fingerprint


def test_a_run_that_was_killed_when_it_was_complete_is_still_recorded_as_finished(runs: RunConfig) -> None:
    train(runs)
    sessions = runs.runs_dir / "r" / "sessions.jsonl"
    sessions.write_text(sessions.read_text().splitlines()[0] + "\n")
    train(runs)
    assert [s["event"] for s in read_rows(sessions)] == ["opened", "resumed", "finished"]


def test_a_session_has_the_price_that_it_was_started_with(runs: RunConfig) -> None:
    train(runs, replace(CONFIG, iterations=3))
    world = World.join(replace(runs, name="paid"), workload="images")
    world.price = 2.5
    images.train(replace(CONFIG, iterations=3), world)
    world.leave()
    starts = [read_rows(runs.runs_dir / name / "sessions.jsonl")[0] for name in ("r", "paid")]
    assert [start.get("price") for start in starts] == [None, 2.5]


def test_the_plan_comes_before_the_first_update_with_the_time_of_one(runs: RunConfig) -> None:
    train(runs)
    events = read_rows(runs.runs_dir / "r" / "events.jsonl")
    (plan,) = (e for e in events if e["event"] == "plan")
    assert [e["event"] for e in events[:2]] == ["opened", "plan"]
    assert (plan["iteration"], plan["start_iteration"], plan["iterations"]) == (0, 0, 12)
    assert plan["expected_s"] == pytest.approx(12 * plan["iteration_s"])
    assert plan["iteration_s"] > 0
    assert (plan["global_batch"], plan["items_per_rank"]) == (32, [32])
    assert (plan["schedule"], plan["schedule_updates"], plan["warmup_updates"]) == ("cosine", 12, 5)


def test_a_schedule_that_ends_before_the_run_is_warned_of(runs: RunConfig) -> None:
    train(runs, replace(CONFIG, optim=replace(CONFIG.optim, schedule_updates=9)))
    train(replace(runs, name="whole"))
    warnings = {
        name: [e["text"] for e in read_rows(runs.runs_dir / name / "events.jsonl") if e["event"] == "warning"]
        for name in ("r", "whole")
    }
    assert warnings["r"] == ["the learning rate is 0 from update 9 on, where its schedule ends; the run has 12 updates"]
    assert warnings["whole"] == []


def test_rows_events_and_checkpoints_count_finished_iterations(runs: RunConfig) -> None:
    train(runs)
    events = read_rows(runs.runs_dir / "r" / "events.jsonl")
    saved = [(e["iteration"], Path(e["checkpoint"]).name) for e in events if e["event"] == "saved"]
    assert saved == [(n, f"{n:08d}") for n in (3, 4, 6, 8, 9, 12)]
    assert [r["iteration"] for r in rows(runs) if "val/loss" in r] == [4, 8, 12]


def test_an_interval_of_no_iterations_is_refused(runs: RunConfig) -> None:
    with pytest.raises(UserError, match="something every 0 iterations"):
        train(runs, replace(CONFIG, eval_every=0))


def test_shares_cadences_and_name_may_change(runs: RunConfig) -> None:
    with pytest.raises(Crash):
        train(runs, crash_at=5)
    summary = train(replace(runs, save_every="2m", max_time="1h"), replace(CONFIG, eval_every=6))
    assert summary.complete


def test_max_time_ends_the_run_saved_and_incomplete(runs: RunConfig) -> None:
    summary = train(replace(runs, max_time="0.000001s"), replace(CONFIG, iterations=100_000))
    assert not summary.complete
    assert (runs.runs_dir / "r" / "checkpoints" / f"{summary.iteration:08d}" / "manifest.json").exists()


def test_max_time_counts_from_the_first_attempt_of_a_supervised_command(runs: RunConfig) -> None:
    world = World.join(replace(runs, max_time="1h"), workload="images")
    world.process_env = replace(world.process_env, attempt=1, started_ns=time.monotonic_ns() - 3600 * 10**9)
    try:
        assert images.train(CONFIG, world).iteration == 0
    finally:
        world.leave()


def summary_of(world: World) -> images.Summary:
    return images.train(CONFIG, world)


def test_every_rank_gets_the_same_summary(runs: RunConfig, tmp_path: Path) -> None:
    first, second = run_ranks(2, summary_of, config=runs, tmp_path=tmp_path)
    assert first == second
    assert first.fingerprint == checkpoint.read(runs.runs_dir / "r" / "checkpoints" / "00000012").fingerprint
    assert first.metrics["val/loss"] == rows(runs)[-1]["val/loss"]


def test_a_signal_in_the_loop_saves_the_boundary_and_ends(runs: RunConfig) -> None:
    world = World.join(runs, workload="images")
    seen: list[int] = []
    original = Run.log

    def log(self: Run, *args: Any, **kwargs: Any) -> None:
        seen.append(self.iteration)
        if self.iteration == 4:
            os.kill(os.getpid(), 15)
        original(self, *args, **kwargs)

    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Run, "log", log)
            with pytest.raises(Stopped) as stopped:
                images.train(
                    replace(CONFIG, iterations=1000, optim=replace(CONFIG.optim, schedule_updates=1000)), world
                )
    finally:
        world.leave()
    assert stopped.value.exit_code == 143
    saved = [int(p.name) for p in (runs.runs_dir / "r" / "checkpoints").iterdir()]
    assert max(saved) == seen[-1] + 1
    assert [r["iteration"] for r in rows(runs)] == list(range(1, max(saved) + 1))
    assert [s["event"] for s in read_rows(runs.runs_dir / "r" / "sessions.jsonl")] == ["opened", "stopped"]


def test_a_score_from_inside_an_iteration_is_not_that_of_its_start(runs: RunConfig) -> None:
    """A stop saves the state at the start of the iteration, and the score was of the state after it."""
    world = World.join(runs, workload="score")
    weights = Weights()

    def train_until_stopped() -> None:
        with Run.open(NoSettings(), world, keep=dict(weights=weights)) as run:
            for iteration in run.iterations(3, long=True):
                weights.value += 1
                run.save(score=-float(iteration))
                if iteration == 1:
                    world.stop.received = 15
                    world.check_stop()

    try:
        with pytest.raises(Stopped):
            train_until_stopped()
    finally:
        world.leave()
    manifest = read_manifest(runs.runs_dir / "r" / "checkpoints" / "00000001")
    assert manifest.iteration == 1
    assert manifest.score in (None, -0.0)


def test_the_state_of_a_run_is_finite_and_its_fingerprint_is_the_manifests(runs: RunConfig) -> None:
    summary = train(runs)
    manifest = json.loads((runs.runs_dir / "r" / "checkpoints" / "00000012" / "manifest.json").read_text())
    assert manifest["finite"] is True
    assert manifest["fingerprint"] == summary.fingerprint
    assert torch.isfinite(torch.tensor(manifest["time_s"]))


def test_a_score_that_is_not_finite_counts_as_none(runs: RunConfig) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(images, "evaluate", lambda model, cfg, world: {"loss": float("nan")})
        assert train(runs).complete
    manifest = json.loads((runs.runs_dir / "r" / "checkpoints" / "00000012" / "manifest.json").read_text())
    assert manifest["score"] is None
    assert rows(runs)[-1]["val/loss"] is None


def test_a_model_that_cannot_be_exported_trains_with_a_warning(runs: RunConfig) -> None:
    class Local(images.Net):
        def __init__(self, width: int, dropout: float, extra: int = 3) -> None:
            super().__init__(width, dropout)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(images, "build", lambda cfg: Local(cfg.width, cfg.dropout))
        assert train(runs).complete
    texts = [e["text"] for e in read_rows(runs.runs_dir / "r" / "events.jsonl") if e["event"] == "warning"]
    assert any(t.startswith("cannot be exported") and "extra" in t for t in texts)


def test_a_run_that_could_not_be_opened_leaves_the_world_detached(runs: RunConfig) -> None:
    train(runs)
    world = World.join(replace(runs, seed=1), workload="images")
    try:
        with pytest.raises(UserError, match="it is another run"):
            images.train(CONFIG, world)
        assert not world.session.attached
    finally:
        world.leave()


def iterations_by_rank(world: World) -> str:
    with Run.open(CONFIG, world, keep={}) as run:
        try:
            list(run.iterations(3 + world.rank))
        except UserError as error:
            return error.found
    return "no error"


def test_ranks_that_would_make_other_iterations_are_refused(runs: RunConfig, tmp_path: Path) -> None:
    found = run_ranks(2, iterations_by_rank, config=runs, tmp_path=tmp_path)
    assert found == ["0 to 3 on rank 0, 0 to 4 on rank 1"] * 2
