"""The memory that a rank needs: the line of two short runs, an evaluation, and what a GPU has."""

from __future__ import annotations

import json
import weakref
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from ranks import RunConfig
from ranks.engine.runs.checkpoints.checkpoint_writer import CheckpointWriter
from ranks.engine.runs.folder import EVENTS_FILE
from ranks.engine.runs.metrics_rows import peak_memory_bytes
from ranks.engine.update.learner import SPLIT_WARNING
from ranks.hardware.forecast import memory
from ranks.hardware.forecast.memory_need import MemoryNeed
from ranks.hardware.forecast.record import ran_out_of_memory, run_once
from ranks.hardware.short_runs.capacity import capacity_bytes
from ranks.hardware.short_runs.job import Job
from tests.toys import images

CPU, GPU = torch.device("cpu"), torch.device("cuda:0")
UPDATE = {"train/grad_norm": 1.0}
"""A row with an update."""


def measured(
    monkeypatch: pytest.MonkeyPatch, peak: Callable[[int, bool], int], row: dict[str, Any], save: int = 0
) -> Any:
    """The need of a job with passes of 64 items. `peak`: of a run with so many items, which evaluates or not; `save`:
    of the save at its end."""
    held = [0]

    def run_once(
        job: Job, *_: Any, max_time: str | None = None, watch: Callable[[], None], **__: Any
    ) -> SimpleNamespace:
        held[0] = 0
        watch()
        held[0] = peak(job.config.global_batch, max_time is None)
        watch()
        held[0] = max(held[0], save)
        return SimpleNamespace(rows=[row])

    monkeypatch.setattr(memory, "run_once", run_once)
    monkeypatch.setattr(memory, "peak_memory_bytes", lambda _: held[0])
    job = Job("images", images.train, images.Config(global_batch=64), RunConfig())
    return memory.measure_need(job, CPU, 1, Path("runs"))


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="no peak of a process is reset here")
def test_the_line_comes_from_passes_and_an_evaluation_is_measured_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    need = measured(monkeypatch, lambda items, evaluates: 5000 if evaluates else 1000 + 10 * items, UPDATE)
    assert need == MemoryNeed(64, 1000.0, 10.0, 5000)
    assert need.peak_bytes == 5000  # the passes need 1,640
    assert [need.largest_pass(limit) for limit in (4999, 6000)] == [0, 500]
    need = measured(monkeypatch, lambda items, evaluates: 1000 + 10 * items + evaluates, UPDATE)
    assert need.peak_bytes == 1640


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="no peak of a process is reset here")
def test_a_save_does_not_hide_what_passes_need(monkeypatch: pytest.MonkeyPatch) -> None:
    """It needs more than an eighth and a quarter of a pass, and less than a whole one."""
    need = measured(monkeypatch, lambda items, _: 1000 + 100 * items, UPDATE, save=5000)
    assert need == MemoryNeed(64, 1000.0, 100.0, 5000)
    assert need.peak_bytes == 7400


def allocate(megabytes: int) -> None:
    torch.ones(megabytes * 2**18).sum()


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="no peak of a process is reset here")
def test_the_peak_of_the_passes_of_a_run_is_that_between_its_saves(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A real run, whose saves take 300 MB and whose passes take 100 MB."""
    write, loss = CheckpointWriter.write, images.image_loss

    def large_write(*args: Any) -> Any:
        allocate(300)
        return write(*args)

    def large_loss(*args: Any) -> Any:
        allocate(100)
        return loss(*args)

    monkeypatch.setattr(CheckpointWriter, "write", large_write)
    monkeypatch.setattr(images, "image_loss", large_loss)
    memory.reset_peak(CPU)
    before = peak_memory_bytes(CPU)
    of_passes = memory.PeakOfPasses(CPU)
    job = Job("images", images.train, images.Config(iterations=3, global_batch=8), RunConfig(runs_dir=tmp_path))
    run_once(job, CPU, 1, tmp_path, 3, evaluates=False, watch=of_passes.watch)
    assert 90e6 < of_passes.bytes - before < 220e6
    assert peak_memory_bytes(CPU) - before > 290e6


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="no peak of a process is reset here")
def test_half_a_pass_makes_the_line_more_exact_near_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Holes in the heap take 100 of an eighth and 200 of a quarter, and nothing more of half a pass."""

    def peak(items: int, _: bool) -> int:
        return 1000 + 10 * items + {8: 100, 16: 200, 32: 200}[items]

    asked = list[int]()
    for memory_bytes, expected in ((10_000, 2440.0), (2500, 1840.0), (1000, 2440.0)):
        monkeypatch.setattr(memory, "capacity_of_rank", lambda *_, limit=memory_bytes: limit)
        found = measured(monkeypatch, lambda items, evaluates: asked.append(items) or peak(items, evaluates), UPDATE)
        assert found.peak_bytes == expected
    assert asked == [8, 16, 8, 8, 16, 8, 32, 8, 16, 8], "half a pass only where it fits, and where it matters"


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="no peak of a process is reset here")
def test_runs_without_an_update_say_nothing_of_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    assert measured(monkeypatch, lambda items, _: items, {"rollout/games": 3.0}) is None


@pytest.mark.parametrize(
    ("free", "reserved", "fraction", "expected"),
    [(70, 5, 1.0, 75), (70, 5, 0.5, 40), (10, 5, 0.5, 15)],
    ids=["the context takes 5", "torch has a limit", "another process has 65"],
)
def test_a_gpu_has_what_torch_may_hold(
    monkeypatch: pytest.MonkeyPatch, free: int, reserved: int, fraction: float, expected: int
) -> None:
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda _: (free, 80))
    monkeypatch.setattr(torch.cuda, "memory_reserved", lambda _: reserved)
    monkeypatch.setattr(torch.cuda, "get_per_process_memory_fraction", lambda _: fraction)
    assert capacity_bytes(GPU, 1) == expected


def test_a_recorded_run_that_ran_out_of_memory(tmp_path: Path) -> None:
    run = tmp_path / "steady" / "0" / "short"
    run.mkdir(parents=True)
    rows = [{"event": "warning", "text": text} for text in ("another one", f"{SPLIT_WARNING} 32")]
    (run / EVENTS_FILE).write_text(json.dumps(rows[0]) + "\n")
    assert not ran_out_of_memory(tmp_path)
    (run / EVENTS_FILE).write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert ran_out_of_memory(tmp_path)


def test_a_short_run_begins_with_the_memory_of_the_one_before(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Cycles kept a learner and its batches alive: a doctor's runs took twice the memory, and one was killed."""

    class Held:
        def __init__(self) -> None:
            self.me = self

    kept = weakref.ref(Held())
    assert kept() is not None, "only a collection ends a cycle"

    def train(*_: Any) -> None:
        assert kept() is None
        raise StopIteration

    job = Job("images", train, images.Config(iterations=1), RunConfig(runs_dir=tmp_path))
    with pytest.raises(StopIteration):
        run_once(job, CPU, 1, tmp_path, 1, evaluates=False)
