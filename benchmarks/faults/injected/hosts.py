"""Emulated hosts for the doctor: each has namespaces of its own for network, processes, mounts and its name.

Nothing that another program of the machine does is seen there, except through the shared cores and disk. Needs root.
"""

from __future__ import annotations

import itertools
import json
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.measure import ROOT, SOURCE, environment

LIMIT_S = 150.0
"""After which a doctor is killed."""
PORT = 29577
RATE_MBIT = 1000
"""Of the cable between two hosts, which the doctor knows by --link."""
NUMBERS = itertools.count()


@dataclass
class Host:
    """One machine as a fault sees it. A fault changes these fields before the doctor starts."""

    name: str
    network: str
    """The name of its network namespace; its interface is eth0."""
    address: str
    folder: Path
    """Of the doctor, where it is started; shared by all hosts."""
    closing: ExitStack
    """What a fault makes outside of the namespaces is removed here."""
    before: list[str] = field(default_factory=list[str])
    """Shell commands that run inside, as root, before the doctor: mounts, limits, other programs (with `&`)."""
    env: dict[str, str] = field(default_factory=dict[str, str])
    flags: list[str] = field(default_factory=list[str])

    def inside(self, *argv: str) -> None:
        """Run a command now in the host's network."""
        subprocess.run(["nsenter", f"--net=/run/netns/{self.network}", *argv], check=True, capture_output=True)

    def own_file(self, path: Path | str, text: str) -> None:
        """Show other content at a path on this host alone."""
        ours = self.folder.parent / f"{self.name}-{next(NUMBERS)}"
        ours.write_text(text, encoding="utf-8")
        self.before.append(f"mount --bind {shlex.quote(str(ours))} {shlex.quote(str(path))}")

    def cgroup(self, controller: str, **values: str) -> None:
        """Put the doctor into a cgroup of its own (version 1) with these values; `__` means a dot."""
        base = Path("/sys/fs/cgroup") / controller
        with open("/proc/self/cgroup", encoding="ascii") as file:
            own = next(line.split(":", 2)[2].strip() for line in file if f":{controller}:" in line)
        group = base / own.lstrip("/") / f"faults-{os.getpid()}-{next(NUMBERS)}"
        group.mkdir()
        self.closing.callback(_remove_cgroup, group)
        for name, value in values.items():
            (group / f"{controller}.{name.replace('__', '.')}").write_text(value)
        self.before.append(f"echo 0 > {group}/cgroup.procs")

    def command(self) -> list[str]:
        """The doctor, inside."""
        doctor = [sys.executable, "-m", "ranks", "doctor", "--json", "--ranks", "2", "--checkpoint-gb", "0.2"]
        inside = ["nsenter", f"--net=/run/netns/{self.network}"]
        inside += ["unshare", "--pid", "--mount", "--uts", "--fork", "--mount-proc", "--kill-child"]
        # No exec: the programs that a fault starts are then no children of the doctor.
        before = [f"{{ {line} }}" if line.endswith("&") else line for line in self.before]  # not the whole list behind
        script = " && ".join([f"hostname {self.name}", "ip link set lo up", *before, '"$@"'])
        return [*inside, "sh", "-c", f"{script}; exit $?", "sh", *doctor, *self.flags]


def _remove_cgroup(group: Path) -> None:
    """The kernel needs a moment to forget processes that have ended."""
    for _ in range(100):
        try:
            group.rmdir()
            return
        except OSError:
            time.sleep(0.05)


@dataclass(frozen=True)
class Answer:
    """What the doctor said on one host."""

    code: int | None
    """None: it was killed after LIMIT_S."""
    seconds: float
    findings: list[dict[str, Any]]
    errors: str

    @property
    def alarms(self) -> list[dict[str, Any]]:
        return [one for one in self.findings if one["severity"] in ("warning", "failure")]


@contextmanager
def hosts(count: int, folder: Path):
    """One or two fresh hosts; two are joined by a cable of RATE_MBIT."""
    with ExitStack() as closing:
        made = [_host(number, count, folder, closing) for number in range(count)]
        if count == 2:
            _join(made)
        yield made


def _host(number: int, count: int, folder: Path, closing: ExitStack) -> Host:
    network = f"faults-{os.getpid()}-{next(NUMBERS)}"
    _ip("netns", "add", network)
    closing.callback(_ip, "netns", "delete", network)
    (folder / "work").mkdir(exist_ok=True)
    host = Host(f"node{number}", network, f"10.79.0.{number + 1}", folder / "work", closing)
    known = [f"10.79.0.{other + 1} node{other}" for other in range(count)] if count > 1 else [f"127.0.1.1 {host.name}"]
    host.own_file("/etc/hosts", "\n".join(["127.0.0.1 localhost", *known]) + "\n")
    if count > 1:
        host.flags += ["--nodes", str(count), "--node-rank", str(number), "--rdzv-endpoint", f"node0:{PORT}"]
        host.flags += ["--wait", "8", "--link", str(RATE_MBIT / 1000)]
    return host


def _join(both: Sequence[Host]) -> None:
    first, second = both
    _ip("link", "add", "eth0", "netns", first.network, "type", "veth", "peer", "name", "eth0", "netns", second.network)
    for host in both:
        _ip("-n", host.network, "address", "add", f"{host.address}/24", "dev", "eth0")
        _ip("-n", host.network, "link", "set", "eth0", "up")
        shape(host, RATE_MBIT)


def shape(host: Host, mbit: int) -> None:
    """Limit what a host sends."""
    limits = f"rate {mbit}mbit burst {mbit * 1000}b latency 100ms"
    host.inside("tc", "qdisc", "replace", "dev", "eth0", "root", "tbf", *limits.split())


def _ip(*args: str) -> None:
    subprocess.run(["ip", *args], check=True, capture_output=True)


def run_doctors(made: Sequence[Host]) -> list[Answer]:
    """The doctor on all hosts at once."""
    kept = {k: v for k, v in environment().items() if not k.endswith("_SOCKET_IFNAME")}
    kept |= {"PYTHONPATH": f"{SOURCE}:{ROOT}", "OMP_NUM_THREADS": "1"}
    began, started = time.monotonic(), list[subprocess.Popen[str]]()
    outputs = [(host.folder.parent / f"{host.name}.out", host.folder.parent / f"{host.name}.err") for host in made]
    for host, (out, err) in zip(made, outputs, strict=True):
        with out.open("w") as output, err.open("w") as errors:
            env = {**kept, **host.env}
            started.append(subprocess.Popen(host.command(), env=env, cwd=host.folder, stdout=output, stderr=errors))
    ends: dict[int, float] = {}
    while len(ends) < len(started) and time.monotonic() - began < LIMIT_S:
        for index, process in enumerate(started):
            if index not in ends and process.poll() is not None:
                ends[index] = time.monotonic() - began
        time.sleep(0.05)
    for process in started:
        process.kill()
    return [
        _answer(process.wait() if index in ends else None, ends.get(index, LIMIT_S), *outputs[index])
        for index, process in enumerate(started)
    ]


def _answer(code: int | None, seconds: float, output: Path, errors: Path) -> Answer:
    try:
        findings = json.loads(output.read_text())["findings"]
    except (ValueError, KeyError):
        findings = []
    return Answer(code, round(seconds, 2), findings, errors.read_text()[-2000:])
