"""`ranks doctor WORKLOAD`: whether it runs, fits and waits for its data."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ranks.cli.main import main
from ranks.hardware.doctor.finding import Severity
from ranks.hardware.doctor.workload import RunPlace, WorkloadFacts, judge_loading, judge_memory, judge_workload
from ranks.hardware.forecast.memory_need import MemoryNeed
from ranks.hardware.forecast.trace import IterationTrace, Trace
from tests.toys import images

GIB = 2**30


def trace(ranks: int = 1, peak_gib: float = 4, data_s: float = 0.1) -> Trace:
    phases = {"data": data_s, "compute": 1 - data_s}
    return Trace(ranks, (IterationTrace(1.0, ()),), phases, {"samples": 64.0}, 0, 0, False, 0, int(peak_gib * GIB))


@pytest.mark.parametrize(
    ("found", "device", "memory_gib", "expected"),
    [
        (trace(), "cuda:0", 80, [Severity.OK, Severity.OK, Severity.OK]),
        (trace(peak_gib=79), "cuda:0", 80, [Severity.OK, Severity.WARNING, Severity.OK]),
        (trace(peak_gib=81), "cuda:0", 80, [Severity.OK, Severity.FAILURE, Severity.OK]),
        (trace(8, peak_gib=11), "cuda:0", 80, [Severity.OK, Severity.OK, Severity.OK]),
        (trace(8, peak_gib=11), "cpu", 80, [Severity.OK, Severity.FAILURE, Severity.OK]),
        (trace(data_s=0.5), "cpu", 80, [Severity.OK, Severity.OK, Severity.WARNING]),
    ],
)
def test_memory_and_loading(found: Trace, device: str, memory_gib: int, expected: list[Severity]) -> None:
    *judged, room = judge_workload(dry_run(found, memory_gib=memory_gib), place(found.num_ranks, device))
    assert [finding.severity for finding in judged] == expected
    assert room.found == "their size is unknown: the dry run saved none"


def dry_run(found: Trace | None, need: MemoryNeed | None = None, memory_gib: float = 8, **more: Any) -> WorkloadFacts:
    return WorkloadFacts(found, need, int(memory_gib * GIB), **more)


def place(num_ranks: int = 1, device: str = "cuda:0", cores: int = 8) -> RunPlace:
    return RunPlace(num_ranks, device, cores, "runs", free_bytes=GIB, most_checkpoints=6)


NEED = MemoryNeed(pass_items=1000, fixed_bytes=2 * GIB, bytes_per_item=GIB / 100)


def test_a_workload_that_is_too_large_is_not_run_and_gets_a_micro_batch_that_fits() -> None:
    (found,) = judge_workload(dry_run(None, NEED), place())
    assert (found.severity, found.do) == (Severity.FAILURE, "--micro-batch 520")
    assert "12.00 of 8.00 GiB (2.00 held, 10.00 for a pass of 1,000 items)" in found.found
    (found,) = judge_workload(dry_run(None, NEED), place(8, "cpu"))
    assert (found.severity, found.do) == (Severity.FAILURE, "fewer ranks, a smaller model, or more memory")


def test_a_workload_that_nearly_fills_the_memory_of_a_cpu_machine_is_not_tried() -> None:
    """The doctor needs memory of its own, and the kernel would end its dry run. Nothing is said of speed then."""
    (found,) = judge_workload(dry_run(None, NEED, 12.5), place(1, "cpu"))
    assert found.severity == Severity.WARNING
    assert found.found.endswith("its speed was not measured, because the doctor needs memory too")


def test_the_micro_batch_that_fits_is_named_when_all_is_well_too() -> None:
    """0.9 of 40 GiB hold 2 GiB and 34 GiB of items."""
    fits = judge_memory(dry_run(trace(), NEED, 40), place(1, "cpu"))
    assert (fits.severity, fits.found.split("; ")[1]) == (Severity.OK, "--micro-batch 3400 fits")
    unknown = judge_memory(dry_run(trace(), None, 40), place(1, "cpu"))
    assert unknown.severity == Severity.OK
    assert "the micro-batch that fits is unknown" in unknown.found


def test_a_pass_that_was_split_does_not_fit() -> None:
    need = MemoryNeed(pass_items=1000, fixed_bytes=2 * GIB, bytes_per_item=GIB / 200)
    split = judge_memory(dry_run(trace(), need, ran_out=True), place())
    assert (split.severity, split.do) == (Severity.FAILURE, "--micro-batch 500")
    assert split.found.endswith("; a pass ran out of memory and was split")


@pytest.mark.parametrize(
    ("device", "phases", "said"),
    [
        # 64 samples: 0.1 s of loading, then 0.9 s of work
        ("cpu", {"data": 0.1}, "it delivers 640, and the device can consume 71.1 samples/s; 10% of an iteration"),
        # behind the work of a second: 0.2 s of it are exposed
        ("cpu", {"data_wait": 0.2}, "it delivers 64, and the device can consume 80 samples/s; 20% of an iteration"),
        ("cuda:0", {"data": 0.2}, "it delivers 64, and the device can consume 80 samples/s; 20% of an iteration"),
        ("cuda:0", {}, "it delivers at least 64, and the device can consume 64 samples/s; 0% of an iteration"),
    ],
)
def test_what_loading_delivers_and_what_the_device_consumes(device: str, phases: dict[str, float], said: str) -> None:
    assert judge_loading(replace(trace(), phases_s=phases), place(1, device)).found.startswith(said)


def test_waiting_for_workers_is_waiting_for_data() -> None:
    found = judge_loading(replace(trace(), phases_s={"data_wait": 0.5, "compute": 0.5}), place())
    assert found.severity == Severity.WARNING


def test_the_cores_of_the_host_must_suffice_for_all_ranks() -> None:
    """8 ranks of 1.5 CPU seconds in a second need 12 cores."""
    found = replace(trace(8), host_cpu_s=1.5)
    enough, few = (list(judge_workload(dry_run(found), place(8, cores=n)))[-2] for n in (16, 8))
    assert (enough.topic, enough.severity) == ("host", Severity.OK)
    assert enough.found == "8 ranks keep 12.0 of 16 CPU cores busy"
    assert few.severity == Severity.WARNING
    assert few.found.endswith("an iteration takes 1.5 times as long as that of a rank alone")


def test_the_disk_must_have_room_for_the_checkpoints_of_the_workload() -> None:
    """Six of them are there at a time, on a disk with 1 GiB free."""
    small, large = (
        list(judge_workload(dry_run(trace(), checkpoint_bytes=mib * 2**20), place()))[-1] for mib in (100, 200)
    )
    assert (small.topic, small.severity) == ("checkpoints", Severity.OK)
    assert small.found == "runs: 1.0 GiB free; a checkpoint takes 100 MiB, 6 of them 600 MiB"
    assert (large.severity, large.expected) == (Severity.FAILURE, "1.2 GiB, for 6 of them")


def test_a_workload_that_runs_and_one_that_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    flags = ["--only", "clock", "--ranks", "2", "--runs-dir", str(tmp_path / "runs"), "--json"]
    assert main(["doctor", str(Path(images.__file__)), *flags]) == 0
    found = {finding["topic"]: finding for finding in json.loads(capsys.readouterr().out)["findings"]}
    assert {"workload", "fits", "loading", "checkpoints"} < found.keys()
    assert "2 ranks: " in found["fits"]["found"]
    assert "fits" in found["fits"]["found"].split("; ")[1]
    assert "images/s" in found["loading"]["found"] or "samples/s" in found["loading"]["found"]
    assert not (tmp_path / "runs").exists()
    broken = tmp_path / "broken.py"
    broken.write_text(Path(images.__file__).read_text().replace("logits_BC = model(", "logits_BC = 1 / 0 * model("))
    assert main(["doctor", str(broken), *flags]) == 1
    found = {finding["topic"]: finding for finding in json.loads(capsys.readouterr().out)["findings"]}
    assert "division by zero" in found["workload"]["found"]
