"""What the doctor makes of facts that no test machine has, and its flags."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ranks.hardware.catalogue.gpus import catalogue, find
from ranks.hardware.doctor import probes
from ranks.hardware.doctor.checks import compute, driver, limits, memory, software
from ranks.hardware.doctor.doctor import PROBES
from ranks.hardware.doctor.finding import Asked, Severity
from ranks.hardware.doctor.pci_bus import NVIDIA
from tests.hardware.test_doctor import ASKED, doctor, severities

GIB = 2**30
H200: dict[str, Any] = {"name": "NVIDIA H200", "error": "", "is_right": True, "tflops": 700.0, "memory_tbs": 4.1}


def test_memory_and_limits_of_a_container() -> None:
    small = memory.MemoryFacts(64 * GIB, GIB // 2, GIB, 64 * 2**20, 64 * 2**20)
    first, shm = memory.judge(small, ASKED)
    assert (first.severity, shm.severity) == (Severity.FAILURE, Severity.OK)
    assert "the container's limit is 1.0 GiB" in first.found
    assert "docker run --memory" in first.do
    gpus = Asked(ranks=8, runs_dir="runs", gpus=8)
    roomy = memory.MemoryFacts(64 * GIB, 60 * GIB, None, 64 * 2**20, 64 * 2**20)
    assert severities(memory.judge(roomy, gpus)) == [Severity.OK, Severity.FAILURE]
    few = limits.LimitsFacts(1_048_576, 1_048_576, tasks_left=40, locked=64 * 1024, tasks_limit=100)
    _, tasks = limits.judge(few, gpus)
    assert tasks.found == "40 more processes and threads, of 100 that are allowed"
    _, _, locked = limits.judge(replace(few, has_rdma=True), gpus)
    assert locked.severity == Severity.WARNING
    assert "64 KiB may be locked" in locked.found
    assert severities(limits.judge(limits.LimitsFacts(-1, -1, None, -1), gpus)) == [Severity.OK]


def test_versions() -> None:
    def torch(version: str, **more: Any) -> list[Severity]:
        facts = software.SoftwareFacts("3.12.1", version, has_distributed=True, has_gloo=True, **more)
        return severities(software.judge(facts, ASKED))[1:]

    assert torch("2.13.0+cpu") == [Severity.OK]
    assert torch("2.10.1") == [Severity.FAILURE]
    assert torch("2.15.0a0") == [Severity.NOTE]
    assert torch("2.12.0+cu130", build="CUDA 13.0") == [Severity.OK, Severity.WARNING]
    assert torch("2.12.0+cu130", build="CUDA 13.0", nccl="2.28.3") == [Severity.OK, Severity.OK]


@pytest.mark.parametrize(
    ("card", "expected"),
    [
        ({}, Severity.OK),
        ({"tflops": 200.0}, Severity.WARNING),
        ({"memory_tbs": 1.0}, Severity.WARNING),
        ({"is_right": False}, Severity.FAILURE),
        ({"error": "CUDA error: out of memory"}, Severity.FAILURE),
        ({"name": "NVIDIA X9000"}, Severity.NOTE),
    ],
)
def test_what_a_gpu_computes_is_held_to_its_data_sheet(card: dict[str, Any], expected: Severity) -> None:
    assert severities(compute.judge(compute.ComputeFacts("CUDA", "", [H200 | card]), ASKED)) == [expected]


@pytest.mark.parametrize(
    ("facts", "asked", "expected"),
    [
        (compute.ComputeFacts(), {}, []),
        (compute.ComputeFacts(on_bus=8), {}, [Severity.WARNING]),
        (compute.ComputeFacts(on_bus=8), {"gpus": 8}, [Severity.FAILURE]),
        (compute.ComputeFacts(), {"expect": "B200"}, [Severity.FAILURE]),
        (compute.ComputeFacts("CUDA", "driver too old"), {}, [Severity.NOTE]),
        (compute.ComputeFacts("CUDA", "driver too old", on_bus=8), {}, [Severity.WARNING]),
        (compute.ComputeFacts("CUDA", "driver too old", on_bus=8), {"expect": "B200"}, [Severity.FAILURE]),
        (compute.ComputeFacts("CUDA", cards=[H200] * 4), {"gpus": 8}, [Severity.FAILURE, *[Severity.OK] * 4]),
        (compute.ComputeFacts("CUDA", cards=[H200] * 8), {"gpus": 8}, [Severity.OK] * 8),
    ],
)
def test_gpus_that_torch_does_not_see(
    facts: compute.ComputeFacts, asked: dict[str, Any], expected: list[Severity]
) -> None:
    """A run would train on the CPU, or on fewer of them."""
    assert severities(compute.judge(facts, Asked(1, "runs", **asked))) == expected


@pytest.mark.parametrize(("asked", "expected"), [({}, Severity.WARNING), ({"gpus": 2}, Severity.FAILURE)])
def test_a_check_of_gpus_that_waited_for_a_core_has_not_examined_them(
    asked: dict[str, Any], expected: Severity, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(probes, "_ask", lambda *_: probes.Answer("", "", None, 10.0, waited_s=8.0))
    ((found,),) = probes.examine((probes.Probe("driver", "gpus", 10.0),), Asked(1, "runs", **asked))
    assert found.severity == expected
    assert found.found.startswith("not examined: no answer after 10 s")


def test_gpus_that_are_on_the_bus_and_without_a_driver() -> None:
    (found,) = driver.judge(driver.DriverFacts({NVIDIA: 8}, error="Driver Not Loaded"), ASKED)
    assert found.severity == Severity.FAILURE
    assert "8 on the PCI bus" in found.found
    assert severities(driver.judge(driver.DriverFacts(), ASKED)) == [Severity.NOTE]
    assert severities(driver.judge(driver.DriverFacts(), Asked(1, "runs", gpus=1))) == [Severity.FAILURE]


def test_the_catalogue_knows_the_names_that_drivers_give() -> None:
    names = {
        "NVIDIA H200": "H200 SXM",
        "NVIDIA H100 80GB HBM3": "H100 SXM",
        "NVIDIA H100 PCIe": "H100 PCIe",
        "NVIDIA H100 NVL": "H100 NVL",
        "NVIDIA A100-SXM4-80GB": "A100 80GB SXM",
        "NVIDIA A100 80GB PCIe": "A100 80GB PCIe",
        "NVIDIA A100-SXM4-40GB": "A100 40GB SXM",
        "A100-SXM-80GB": "A100 80GB SXM",
        "A100-PCIE-40GB": "A100 40GB PCIe",
        "NVIDIA H200 NVL": "H200 NVL",
        "NVIDIA B200": "B200",
        "NVIDIA L4": "L4",
        "NVIDIA L40S": "L40S",
        "NVIDIA GeForce RTX 4090": "RTX 4090",
        "NVIDIA GeForce RTX 5090": "RTX 5090",
        "NVIDIA RTX 6000 Ada Generation": "RTX 6000 Ada",
        "Tesla V100-SXM2-32GB": "V100 32GB SXM2",
        "Tesla V100-SXM2-16GB": "V100 16GB SXM2",
        "Tesla V100-PCIE-32GB": "V100 32GB PCIe",
        "Tesla V100-PCIE-16GB": "V100 16GB PCIe",
        "Tesla V100S-PCIE-32GB": "V100S PCIe",
        "Tesla T4": "T4",
        "NVIDIA A10": "A10",
        "AMD Instinct MI300X": "MI300X",
        "AMD Instinct MI325X OAM": "MI325X",
    }
    assert {name: gpu.name if (gpu := find(name)) else None for name in names} == names
    assert {gpu.name for gpu in catalogue()} == {*names.values()}
    assert all(gpu.source and gpu.date for gpu in catalogue())


@pytest.mark.parametrize(
    "name",
    [
        "NVIDIA GeForce GTX 1080",
        "NVIDIA GeForce RTX 4090 Laptop GPU",
        "NVIDIA GeForce RTX 4090 D",
        "NVIDIA GeForce RTX 5090 Laptop GPU",
        "NVIDIA A100-SXM4-40GB MIG 1g.5gb",
        "NVIDIA A100-SXM-64GB",
        "Tesla V100-SXM3-32GB",
        "NVIDIA H100 80GB HBM2e",
        "NVIDIA GH200 480GB",
        "NVIDIA GB200",
        "NVIDIA A10G",
        "NVIDIA L40",
        "NVIDIA",
        "",
    ],
)
def test_a_card_like_one_of_the_catalogue_is_unknown(name: str) -> None:
    assert find(name) is None


def test_a_healthy_v100_of_16_gb_is_no_alarm() -> None:
    """It was once taken for the V100 of 32 GB."""
    card = {
        "name": "Tesla V100-SXM2-16GB",
        "memory": 16160 * 2**20,
        "used": 0,
        "users": [],
        "is_silent": False,
        "slowed": [],
        "ecc": 0,
    }
    facts = driver.DriverFacts({NVIDIA: 1}, "580.1", "13.0", "", [{**card, "width": 16, "max_width": 16}])
    assert severities(driver.judge(facts, ASKED)) == [Severity.OK]


@pytest.mark.parametrize(
    ("expect", "said"),
    [("B210:8", "did you mean B200?"), ("RTX 4091", "did you mean RTX 4090?"), ("B200:8", ""), ("rtx 6000", "")],
)
def test_a_gpu_name_that_the_catalogue_does_not_have(expect: str, said: str, tmp_path: Path) -> None:
    _, findings = doctor("--expect", expect, "--only", "driver", cwd=tmp_path)
    notes = [finding for finding in findings if finding["topic"] == "gpu name"]
    assert [said in finding["do"] for finding in notes] == ([True] if said else [])


def test_no_check_may_take_longer_than_the_doctor() -> None:
    assert max(probe.limit_s for probe in PROBES) + 2 <= 20


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["--only", "disc"], "did you mean disk?"),
        (["--gpus", "-1"], "a number from 0"),
        (["--checkpoint-gb", "0"], "a size above 0"),
    ],
)
def test_bad_flags(argv: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    from ranks.cli.main import main

    assert main(["doctor", *argv]) == 2
    assert said in capsys.readouterr().err
