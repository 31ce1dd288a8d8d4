"""What ranks use: GPUs that a fake NVML or files in the place of a driver's answer for, real processes, rows, hints."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from contextlib import nullcontext
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ranks.engine.files.jsonl import read_rows
from ranks.engine.liveness.beats import BeatsFile, Field
from ranks.launch.supervision.config import LaunchConfig
from ranks.launch.telemetry.amd import AmdCards, amd_devices
from ranks.launch.telemetry.nvml import NvmlCards
from ranks.launch.telemetry.processes import ProcessUse, tree_of
from ranks.launch.telemetry.sampler import Telemetry, queues_of, times_of
from ranks.launch.telemetry.telemetry_file import TelemetryFile
from ranks.launch.telemetry.usage import RankUse, hint, row_of


class FakeNvml:
    """A driver with these GPUs: UUID -> what it answers by function. What is missing it does not support."""

    NVML_CLOCK_SM, NVML_TEMPERATURE_GPU = 1, 0

    class NVMLError(Exception):
        pass

    def __init__(self, cards: dict[str, dict[str, Any]]) -> None:
        self.cards, self.open = cards, 0

    def nvmlInit(self) -> None:
        if not self.cards:
            raise self.NVMLError("no driver")
        self.open += 1

    def nvmlShutdown(self) -> None:
        self.open -= 1

    def nvmlDeviceGetCount(self) -> int:
        return len(self.cards)

    def nvmlDeviceGetHandleByIndex(self, index: int) -> str:
        if index >= len(self.cards):
            raise self.NVMLError("invalid argument")
        return list(self.cards)[index]

    def nvmlDeviceGetHandleByUUID(self, uuid: str) -> str:
        if uuid not in self.cards:
            raise self.NVMLError("not found")
        return uuid

    def nvmlDeviceGetUUID(self, handle: str) -> str:
        return handle

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("nvmlDeviceGet"):
            raise AttributeError(name)

        def ask(handle: str, *arguments: Any) -> Any:
            if name not in self.cards[handle]:
                raise self.NVMLError("not supported")
            return self.cards[handle][name]

        return ask


BUSY = {
    "nvmlDeviceGetUtilizationRates": SimpleNamespace(gpu=98, memory=40),
    "nvmlDeviceGetMemoryInfo": SimpleNamespace(used=70 * 2**30, total=80 * 2**30),
    "nvmlDeviceGetPowerUsage": 651_500,
    "nvmlDeviceGetClockInfo": 1755,
    "nvmlDeviceGetTemperature": 61,
    "nvmlDeviceGetCurrPcieLinkGeneration": 4,
    "nvmlDeviceGetCurrPcieLinkWidth": 16,
    "nvmlDeviceGetMaxPcieLinkGeneration": 5,
    "nvmlDeviceGetMaxPcieLinkWidth": 16,
    "nvmlDeviceGetCurrentClocksEventReasons": 0x04,
}
HOT = {**BUSY, "nvmlDeviceGetClockInfo": 900, "nvmlDeviceGetCurrentClocksEventReasons": 0x04 | 0x40}


def test_what_nvml_says_of_each_rank() -> None:
    slice_of_one = {"nvmlDeviceGetMemoryInfo": SimpleNamespace(used=5)}
    nvml = FakeNvml({"GPU-aa11": BUSY, "GPU-bb22": HOT, "MIG-cc33": slice_of_one})
    cards = NvmlCards(nvml, {0: "0", 1: "GPU-bb", 2: "MIG-cc33", 3: "7", 4: "GPU-zz"})
    found = cards.read()
    assert found[0] == RankUse(98.0, 70.0 * 2**30, 651.5, 1755, 61, 50.0, ())
    assert found[1] == replace(found[0], clock_mhz=900, throttled=("too hot (hardware)",))
    assert found[2] == RankUse(gpu_memory_bytes=5.0)
    assert found.keys() == {0, 1, 2}, "GPUs that are not there are left out"
    cards.close()
    assert nvml.open == 0


def test_a_gpu_that_is_lost_or_a_driver_that_is_old() -> None:
    old = {name: value for name, value in HOT.items() if name != "nvmlDeviceGetCurrentClocksEventReasons"}
    nvml = FakeNvml({"GPU-a": {**old, "nvmlDeviceGetCurrentClocksThrottleReasons": 0x08}})
    cards = NvmlCards(nvml, {0: "0"})
    assert cards.read()[0].throttled == ("hardware slowdown",)
    nvml.cards["GPU-a"] = {}
    assert cards.read() == {0: RankUse()}
    with pytest.raises(FakeNvml.NVMLError):
        NvmlCards(FakeNvml({}), {0: "0"})


def test_what_the_files_of_amds_driver_say(tmp_path: Path) -> None:
    for card, vendor, busy in (("card1", "0x1002", "97"), ("card0", "0x10de", "1"), ("card1-DP-1", "0x1002", "5")):
        sensors = tmp_path / card / "device" / "hwmon" / "hwmon3"
        sensors.mkdir(parents=True)
        device = tmp_path / card / "device"
        (device / "vendor").write_text(vendor + "\n")
        (device / "gpu_busy_percent").write_text(busy + "\n")
        (device / "mem_info_vram_used").write_text("1024\n")
        (sensors / "power1_average").write_text("250000000\n")
        (sensors / "freq1_input").write_text("2100000000\n")
        (sensors / "temp1_input").write_text("not a number\n")
    assert len(amd_devices(tmp_path)) == 1
    assert AmdCards({0: "0", 1: "1"}, tmp_path).read() == {0: RankUse(97.0, 1024.0, 250.0, 2100.0)}
    assert amd_devices(tmp_path / "missing") == []


def test_the_metrics_of_a_row() -> None:
    uses = {1: RankUse(gpu_percent=98.0, throttled=("power brake",)), 0: RankUse(cpu_percent=12.34567, throttled=())}
    assert row_of(uses) == {
        "use/rank0/throttled": 0.0,
        "use/rank0/cpu_percent": 12.346,
        "use/rank1/gpu_percent": 98.0,
        "use/rank1/throttled": 1.0,
    }


def test_what_is_said_of_a_rank_that_is_unlike_the_others() -> None:
    healthy = RankUse(clock_mhz=1755, link_percent=100.0, cpu_percent=99.0, throttled=())
    slow = RankUse(clock_mhz=900, link_percent=25.0, cpu_percent=31.0, throttled=("too hot (hardware)",))
    assert hint(1, {0: healthy, 1: slow, 2: replace(healthy, cpu_percent=97.0)}) == (
        "its GPU is slowed down: too hot (hardware), its GPU runs at 900 MHz, the others at 1755 or more, "
        "its PCIe link has 25 % of its speed, the others 100 % or more, it uses 31 % of a core, the others 97 to 99 %"
    )
    assert hint(0, {0: healthy, 1: RankUse()}) == hint(0, {0: healthy}) == hint(3, {}) == ""


def test_the_processes_of_a_rank_are_added_up() -> None:
    child = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'while True: pass'])"
    with subprocess.Popen([sys.executable, "-c", child], process_group=0) as process:
        try:
            deadline = time.monotonic() + 30
            while len(tree_of(process.pid)) < 2 and time.monotonic() < deadline:
                time.sleep(0.05)
            now_s = iter(range(0, 10_000, 5))
            use = ProcessUse(clock=lambda: float(next(now_s)))
            first = use.read({3: process.pid})[3]
            assert first.cpu_percent is None
            assert (first.memory_bytes or 0) > 2**20
            while not (use.read({3: process.pid})[3].cpu_percent or 0) and time.monotonic() < deadline:
                time.sleep(0.05)
            assert len(tree_of(process.pid)) == 2
            for one in tree_of(process.pid)[::-1]:
                one.kill()
        finally:
            process.kill()
    assert use.read({3: process.pid}) == {}


def test_the_file_is_bounded_and_keeps_the_newest_rows(tmp_path: Path) -> None:
    file = TelemetryFile(tmp_path, most_bytes=4000)
    file.append({"time": 0})
    assert not (tmp_path / "telemetry.jsonl").exists(), "before the run folder exists nothing is written"
    (tmp_path / "run.json").touch()
    for number in range(2000):
        file.append({"time": number, "use/rank0/cpu_percent": 50.0})
        assert file.path.stat().st_size <= 4000
    times = [row["time"] for row in read_rows(file.path)]
    assert times == sorted(set(times))
    gaps = {later - earlier for earlier, later in pairwise(times)}
    assert len(times) > 30
    assert max(gaps) <= 2 * min(gaps), "old and new rows are equally far apart"
    assert times[-1] > 1999 - max(gaps)
    assert list(tmp_path.glob(".telemetry*")) == []
    file.close()


def test_where_the_time_of_the_ranks_went_since_the_last_sample(tmp_path: Path) -> None:
    beats = BeatsFile(tmp_path / "beats", 2, create=True)
    for rank in range(2):
        beats.row(rank)[Field.PID], beats.row(rank)[Field.ITERATION] = 5 + rank, 10
    before = beats.read()
    beats.row(0)[Field.ITERATION], beats.row(0)[Field.COMPUTE_NS] = 14, 80_000_000
    assert times_of(before, beats.read()) == {
        "use/rank0/compute_s": 0.02,
        "use/rank0/data_s": 0.0,
        "use/rank0/send_s": 0.0,
        "use/rank0/wait_s": 0.0,
    }
    assert times_of((), beats.read()) == {}


def test_how_many_batches_were_ready_when_each_rank_asked_for_one(tmp_path: Path) -> None:
    beats = BeatsFile(tmp_path / "beats", 2, create=True)
    beats.row(1)[Field.BATCHES_READY], beats.row(1)[Field.BATCHES_AHEAD] = 3, 8
    assert queues_of(beats.read()) == {"use/rank1/batches_ready": 3, "use/rank1/batches_ahead": 8}


def test_a_file_that_cannot_be_written_ends_the_telemetry_and_not_the_run(tmp_path: Path) -> None:
    (tmp_path / "run.json").touch()
    (tmp_path / "telemetry.jsonl").mkdir()
    said: list[str] = []
    with Telemetry(tmp_path, {}, said.append, interval_s=0.01) as telemetry:
        telemetry.follow({0: os.getpid()}, BeatsFile(tmp_path / "beats", 1, create=True))
        deadline = time.monotonic() + 30
        while telemetry.samples < 3 and time.monotonic() < deadline:
            time.sleep(0.01)
    assert len(said) == 1
    assert said[0].startswith("no more telemetry is written (")
    assert telemetry.latest[0].memory_bytes


def config(devices: tuple[str, ...], **more: Any) -> LaunchConfig:
    return LaunchConfig(("python",), devices, more.pop("env", {}), lambda number, private: nullcontext({}), **more)


def test_which_gpu_a_rank_has() -> None:
    assert config(("cpu", "cpu")).gpus == {}
    assert config(("cuda:0", "cuda:2")).gpus == {0: "0", 1: "2"}
    visible = {"CUDA_VISIBLE_DEVICES": "GPU-b, 3"}
    assert config(("cuda:1", "cuda:0"), env=visible).gpus == {0: "3", 1: "GPU-b"}
    slices = tuple({"CUDA_VISIBLE_DEVICES": name} for name in ("MIG-a", "MIG-b"))
    assert config(("cuda:0", "cuda:0"), own_env=slices).gpus == {0: "MIG-a", 1: "MIG-b"}
