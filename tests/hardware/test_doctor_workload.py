"""`ranks doctor WORKLOAD`: whether it runs, fits and waits for its data."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ranks.cli.main import main
from ranks.hardware.doctor.finding import Finding, Severity
from ranks.hardware.doctor.workload import judge_workload
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
    assert [finding.severity for finding in judge(found, device, memory_gib)] == expected


def judge(found: Trace, device: str, memory_gib: float) -> list[Finding]:
    return list(judge_workload(found, None, found.num_ranks, device, int(memory_gib * GIB)))


def test_a_workload_that_is_too_large_is_not_run_and_gets_a_micro_batch_that_fits() -> None:
    need = MemoryNeed(pass_items=1000, fixed_bytes=2 * GIB, bytes_per_item=GIB / 100)
    (found,) = judge_workload(None, need, 1, "cuda:0", 8 * GIB)
    assert (found.severity, found.do) == (Severity.FAILURE, "--micro-batch 520")
    assert "12.00 of 8.00 GiB (2.00 held, 10.00 for a pass of 1,000 items)" in found.found
    (found,) = judge_workload(None, need, 8, "cpu", 8 * GIB)
    assert (found.severity, found.do) == (Severity.FAILURE, "fewer ranks, a smaller model, or more memory")
    fits, _ = list(judge_workload(trace(), need, 1, "cpu", 40 * GIB))[1:]
    assert fits.severity == Severity.OK


def test_a_pass_that_was_split_does_not_fit() -> None:
    need = MemoryNeed(pass_items=1000, fixed_bytes=2 * GIB, bytes_per_item=GIB / 200)
    split = list(judge_workload(trace(), need, 1, "cuda:0", 8 * GIB, ran_out=True))[1]
    assert (split.severity, split.do) == (Severity.FAILURE, "--micro-batch 500")
    assert split.found.endswith("; a pass ran out of memory and was split")


def test_a_workload_that_runs_and_one_that_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    flags = ["--only", "clock", "--ranks", "2", "--runs-dir", str(tmp_path / "runs"), "--json"]
    assert main(["doctor", str(Path(images.__file__)), *flags]) == 0
    found = {finding["topic"]: finding for finding in json.loads(capsys.readouterr().out)["findings"]}
    assert {"workload", "fits", "loading"} < found.keys()
    assert "2 ranks: " in found["fits"]["found"]
    assert not (tmp_path / "runs").exists()
    broken = tmp_path / "broken.py"
    broken.write_text(Path(images.__file__).read_text().replace("logits_BC = model(", "logits_BC = 1 / 0 * model("))
    assert main(["doctor", str(broken), *flags]) == 1
    found = {finding["topic"]: finding for finding in json.loads(capsys.readouterr().out)["findings"]}
    assert "division by zero" in found["workload"]["found"]
