"""Measure what a forecast needs, each in a child process: the traces of a workload, and the link of two ranks."""

from __future__ import annotations

import json
import platform
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from ranks import sigterm
from ranks.cli.flags.settings import Settings
from ranks.cli.forecasting.child import MARK, TraceRequest
from ranks.cli.units import last_line
from ranks.engine.config_file import read_object
from ranks.engine.distributed.rendezvous.process_env import available_cores
from ranks.errors import UserError
from ranks.hardware.forecast.ledger import settings_of
from ranks.hardware.forecast.memory_need import MemoryNeed
from ranks.hardware.forecast.profile import Profile
from ranks.hardware.forecast.shared_cores import EQUAL_CORES, SharedCores
from ranks.hardware.forecast.trace import Trace
from ranks.hardware.links import cores_probe, probe
from ranks.hardware.links.curve import AllReduceCurve, Link
from ranks.launch.gpus import find_gpus
from ranks.progress import ProgressBar

PROBE_UNCERTAINTY = 0.1
CHILD_LIMIT_S, PROBE_LIMIT_S = 3600.0, 300.0


def measure_profile(
    settings: Settings, argv: Sequence[str], ranks: Sequence[int], device: str, budget_s: float
) -> Profile:
    """Record rank 0 of each number of ranks, one after the other, on one device. `argv`: flags of `ranks train`;
    `budget_s`: of recorded iterations, for each number of ranks. Raises UserError."""
    config = settings.config
    if not hasattr(config, "iterations"):
        found = "its Config has no field `iterations`"
        raise UserError(f"to forecast {settings.workload}", found, "give the number of iterations this name")
    traces: dict[int, Trace] = {}
    threads: dict[int, int] = {}
    name, kept = "", dict[str, Any]()
    on_cores = min(2, max(ranks), available_cores()) if device == "cpu" else 0
    with (
        ProgressBar(len(ranks), title="profile", unit="numbers of ranks", stream=sys.stderr) as bar,
        ProbedCores(on_cores) as cores,
    ):
        for num_ranks in ranks:
            threads[num_ranks] = settings.engine.resolved().threads or max(1, available_cores() // num_ranks)
            flags = [*argv, "--threads", str(threads[num_ranks])]
            recorded = record_trace(settings.workload, flags, TraceRequest(num_ranks, device, budget_s, time.time()))
            traces[num_ranks], name = recorded.trace, recorded.device
            kept = settings_of(recorded.identity["config"], recorded.identity["engine"])
            bar.advance()
    return Profile(
        settings.workload,
        kept,
        config.iterations,
        getattr(config, "eval_every", None),
        settings.engine.save_every,
        name,
        device != "cpu",
        threads,
        time.strftime("%Y-%m-%d %H:%M", time.gmtime()),
        available_cores(),
        find_gpus().count,
        traces,
        cores.found,
    )


class ProbedCores:
    """The cores of this machine, measured at the beginning and at the end of a `with` block. `num_ranks`: 0 for none of
    it, 1 or 2."""

    def __init__(self, num_ranks: int) -> None:
        self._num_ranks = num_ranks
        self._files = list[Path]()
        self.found = EQUAL_CORES

    def __enter__(self) -> ProbedCores:
        with ExitStack() as closing:
            self._folder = Path(closing.enter_context(tempfile.TemporaryDirectory(prefix="ranks-cores-")))
            self._measure()
            self._closing = closing.pop_all()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        with self._closing:
            if kind is None:
                self._measure()
                self.found = SharedCores.of(self._files) if self._files else EQUAL_CORES

    def _measure(self) -> None:
        if self._num_ranks:
            self._files.append(self._folder / f"{len(self._files)}.json")
            probe_ranks(cores_probe, self._num_ranks, "none", self._files[-1], "to measure the cores of this machine")


@dataclass(frozen=True)
class Recorded:
    """The answer of a child."""

    whole_trace: Trace | None
    """None: it was not recorded, because the memory does not suffice, or because only that was asked for."""
    device: str
    """Its name."""
    memory_bytes: int
    """Of the GPU, or what the ranks of a CPU machine may hold together."""
    need: MemoryNeed | None
    """What one rank needs; None where that was not asked, or passes cannot be smaller."""
    ran_out: bool
    """Of memory: the recorded run went on with smaller passes."""
    identity: dict[str, Any]
    """Of the recorded run; empty where nothing was recorded."""
    checkpoint_bytes: int
    """Of the largest checkpoint that the short runs have saved; 0 without one."""
    code: dict[str, Any]
    """The package and the sha256 of each file of the user, as in run.json."""

    @property
    def trace(self) -> Trace:
        assert self.whole_trace is not None, "it is recorded where the request does not ask for the memory first"
        return self.whole_trace


def record_trace(workload: str, flags: Sequence[str], asked: TraceRequest, limit_s: float = CHILD_LIMIT_S) -> Recorded:
    """The trace of one rank. Raises UserError where the workload fails or takes longer than the limit."""
    do = f"run it: ranks train {workload} {' '.join(flags)}"
    try:
        with tempfile.TemporaryDirectory(prefix="ranks-profile-") as folder:
            request = json.dumps(asdict(asked) | {"folder": folder})
            child = run([sys.executable, "-m", "ranks.cli.forecasting.child", request, workload, *flags], limit_s)
    except subprocess.TimeoutExpired:
        raise UserError(f"to profile {workload}", f"its dry run took more than {limit_s:.0f} s", do) from None
    line = next((line for line in reversed(child.stdout.splitlines()) if line.startswith(MARK)), None)
    if child.returncode != 0 or line is None:
        last = last_line(child.stderr)
        found = f"its dry run as rank 0 of {asked.num_ranks} {how_it_ended(child.returncode)}: {last}"
        raise UserError(f"to profile {workload}", found, do)
    answer = json.loads(line.removeprefix(MARK))
    trace = Trace.of_json(answer["trace"]) if answer["trace"] else None
    need = MemoryNeed(**answer["need"]) if answer["need"] else None
    memory_bytes = int(answer["memory_bytes"])
    return Recorded(
        trace,
        str(answer["device"]),
        memory_bytes,
        need,
        bool(answer["ran_out"]),
        answer["identity"],
        int(answer["checkpoint_bytes"]),
        answer["code"],
    )


def how_it_ended(code: int) -> str:
    """The exit code of a process in words."""
    if code == -signal.SIGKILL:
        return "was killed (SIGKILL), which the kernel does where memory runs out"
    return f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"


def run(command: Sequence[str], limit_s: float) -> subprocess.CompletedProcess[str]:
    """Run a command. Ctrl-C, SIGTERM and the limit end it too. Raises TimeoutExpired."""
    with sigterm.raises_system_exit():
        return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=limit_s)


def probe_link(gpus: str) -> Link:
    """Two ranks of this machine. Raises UserError where they do not meet."""
    with tempfile.TemporaryDirectory(prefix="ranks-link-") as folder:
        out = Path(folder) / "link.json"
        probe_ranks(probe, 2, gpus, out, "to measure the link of two ranks", ", or give --link FILE")
        return read_link(out, f"measured with two ranks on {platform.node()}")


def probe_ranks(script: ModuleType, num_ranks: int, gpus: str, out: Path, asked: str, instead: str = "") -> None:
    """Run a script that measures with some ranks of this machine and writes `out`. `instead`: of the measurement, for
    the error. Raises UserError where they do not meet."""
    ranks, do = ["--ranks", str(num_ranks), "--gpus", gpus], f"ranks doctor{instead}"
    try:
        child = run([sys.executable, "-m", "ranks", "launch", *ranks, str(script.__file__), str(out)], PROBE_LIMIT_S)
    except subprocess.TimeoutExpired:
        raise UserError(asked, f"no answer after {PROBE_LIMIT_S:.0f} s", do) from None
    if child.returncode != 0 or not out.exists():
        raise UserError(asked, last_line(child.stderr), do)


def read_link(path: Path, source: str | None = None) -> Link:
    """A file of `hardware/links/probe.py`. Raises UserError."""
    content = read_object(path, f"--link {path}")
    try:
        device, host = (
            AllReduceCurve(int(curve["num_ranks"]), tuple(curve["num_bytes"]), tuple(map(float, curve["seconds"])))
            for curve in (content["device"], content["host"])
        )
    except (KeyError, TypeError, ValueError) as error:
        do = "write one with torchrun --nproc-per-node 2 -m ranks.hardware.links.probe FILE"
        raise UserError(f"--link {path}", f"the file is no measured link: {error}", do) from error
    return Link(str(content.get("on")), (device,), host, source or f"measured: {path}", PROBE_UNCERTAINTY)
