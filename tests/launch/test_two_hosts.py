"""Two ranks on two hosts, emulated by network namespaces: the bits of one process, kills, restarts, ports."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path

import pytest

from ranks import RunConfig, World
from tests.toys import images

REPOSITORY = Path(__file__).parents[2]
ADDRESSES = ("10.77.0.1", "10.77.0.2")
ITERATIONS = 16
WORKLOAD = """
import os, signal
from pathlib import Path
import psutil
from tests.toys import images
from tests.toys.images import Config, build, evaluate

honest, calls = images.image_loss, []

def loss(model, batch):
    calls.append(1)
    if os.environ["TEST_HOST"] == "1" and len(calls) == 50 and not Path("killed").exists():
        Path("killed").touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return honest(model, batch)

def train(cfg, world):
    found = psutil.Process().net_connections("inet")
    listening = {c.laddr.ip for c in found if c.status == psutil.CONN_LISTEN}
    Path("listening" + os.environ["TEST_HOST"]).write_text(" ".join(listening))
    images.image_loss = loss
    return images.train(cfg, world)
"""
"""The toy, in which the rank on the second host dies once, half-way, and each rank notes where it listens."""


class Hosts:
    """Two network namespaces and a cable."""

    def __init__(self, closing: ExitStack) -> None:
        self.names = tuple(f"ranks-{os.getpid()}-{i}" for i in (0, 1))
        for name in self.names:
            self.ip("netns", "add", name)
            closing.callback(self.ip, "netns", "delete", name)
        first, second = self.names
        self.ip("link", "add", "cable0", "netns", first, "type", "veth", "peer", "name", "cable1", "netns", second)
        for i, name in enumerate(self.names):
            self.ip("-n", name, "address", "add", f"{ADDRESSES[i]}/24", "dev", f"cable{i}")
            self.ip("-n", name, "link", "set", "lo", "up")
            self.ip("-n", name, "link", "set", f"cable{i}", "up")

    @staticmethod
    def ip(*args: str) -> None:
        subprocess.run(["ip", *args], check=True, capture_output=True)

    def run(self, folder: Path, *commands: tuple[list[str], Mapping[str, str]]) -> list[tuple[int, str]]:
        """One command on each host at the same time: exit codes and output."""
        keep = {k: v for k, v in os.environ.items() if not k.endswith("_SOCKET_IFNAME")}
        keep |= {"PYTHONPATH": f"{REPOSITORY / 'src'}:{REPOSITORY}", "OMP_NUM_THREADS": "1"}
        started = [
            subprocess.Popen(
                ["nsenter", f"--net=/run/netns/{self.names[i]}", *argv],
                env={**keep, "TEST_HOST": str(i), **env},
                cwd=folder,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
            for i, (argv, env) in enumerate(commands)
        ]
        try:
            return [(process.wait(), out) for process in started for out in [process.communicate(timeout=300)[0]]]
        finally:
            for process in started:
                process.kill()


@pytest.fixture(scope="module")
def hosts() -> Iterator[Hosts]:
    with ExitStack() as closing:
        try:
            made = Hosts(closing)
        except (OSError, subprocess.CalledProcessError) as problem:
            pytest.skip(f"no network namespaces here: {problem}")
        yield made


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "workload.py").write_text(WORKLOAD)
    return tmp_path


def one_process(runs_dir: Path, name: str, workload: Path) -> str:
    """Train, or finish a run, in this process; the fingerprint."""
    config = RunConfig(exact=True, threads=1, runs_dir=runs_dir, name=name)
    world = World.join(config, device="cpu", workload=str(workload))
    try:
        return images.train(images.Config(iterations=ITERATIONS, eval_every=5), world).fingerprint
    finally:
        world.leave()


@pytest.fixture(scope="module")
def fingerprint(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Of one process that nobody kills."""
    return one_process(tmp_path_factory.mktemp("runs"), "whole", Path(images.__file__))


TRAIN = ["ranks", "train", "./workload.py", "--exact", "--gpus", "none"]
TRAIN += ["--iterations", str(ITERATIONS), "--eval-every", "5", "--save-every", "5"]


def test_torchrun_on_two_hosts_restarts_and_gives_the_bits_of_one_process(
    hosts: Hosts, folder: Path, fingerprint: str
) -> None:
    def agent(host: int) -> list[str]:
        point = ["--rdzv-backend", "c10d", "--rdzv-endpoint", f"{ADDRESSES[0]}:29501", "--rdzv-id", "test"]
        place = ["--rdzv-conf", f"is_host={int(host == 0)}", "--local-addr", ADDRESSES[host]]
        shape = ["--nnodes", "2", "--nproc-per-node", "1", "--max-restarts", "2", "--monitor-interval", "0.1"]
        return [sys.executable, "-m", "torch.distributed.run", *shape, *point, *place, "-m", *TRAIN]

    ends = hosts.run(folder, (agent(0), {}), (agent(1), {}))
    assert [code for code, _ in ends] == [0, 0], ends
    assert (folder / "killed").exists()
    assert "resumed from iteration 5" in ends[0][1]
    assert fingerprint in ends[0][1]


def test_a_slurm_step_on_two_hosts_ends_together_and_resumes(hosts: Hosts, folder: Path, fingerprint: str) -> None:
    step = {"SLURM_JOB_ID": "7", "SLURM_STEP_ID": "0", "SLURM_STEP_NUM_TASKS": "2", "SLURM_STEP_NUM_NODES": "2"}
    step |= {"SLURM_STEP_NODELIST": "10.77.0.[1-2]", "SLURM_LOCALID": "0"}
    command = [sys.executable, "-m", *TRAIN]
    (first_code, first), (second_code, _) = hosts.run(folder, *((command, {**step, "SLURM_PROCID": i}) for i in "01"))
    assert (first_code, second_code) == (1, -9)
    assert "rank 0 lost the other ranks" in first
    assert "Traceback" not in first
    assert "the same command resumes from iteration 5" in first
    addresses = [(folder / f"listening{host}").read_text() for host in (0, 1)]
    assert addresses == list(ADDRESSES)
    assert one_process(folder / "runs", "workload", folder / "workload.py") == fingerprint
