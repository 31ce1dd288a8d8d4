"""A Slurm cluster of two nodes on this machine, for experiments and tests: a real slurmctld, and two slurmd, each in a
network and a host-name namespace of its own. Needs root and Debian's packages slurm-wlm and munge.

    with LocalSlurm(folder) as cluster:
        cluster.run("sbatch", "job.sbatch", cwd=folder)
"""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

PROGRAMS = ("slurmctld", "slurmd", "munged", "sbatch", "srun", "ip", "nsenter", "unshare")
NETWORK = "10.78.0"
UP_S = 60.0
POLL_S = 0.2
CONF = """
ClusterName=local
SlurmctldHost={host}0({network}.1)
AuthType=auth/munge
AuthInfo=socket={folder}/munge.sock,cred_expire=5
CredType=cred/munge
CryptoType=crypto/munge
SlurmUser=root
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
ReturnToService=2
SchedulerParameters=sched_min_interval=100000
GresTypes=gpu
NodeName={host}0 NodeAddr={network}.1 CPUs=64 Gres=gpu:b200:8
NodeName={host}1 NodeAddr={network}.2 CPUs=64 Gres=gpu:b200:8
PartitionName=main Nodes={host}[0-1] Default=YES MaxTime=60 State=UP OverSubscribe=NO
"""
ON_NODE = 'hostname "$0"; mount --bind "$1" /etc/hosts; shift; exec "$@"'
"""A shell script that enters a node: its name, a file of the names of both, a command."""
GRES = "Name=gpu Type=b200 File={folder}/gpu[0-7]\n"
"""Eight files that play GPUs on each node: Slurm counts them."""


def missing_program() -> str | None:
    """A program that the cluster needs and this machine lacks; None where all are there."""
    return next((name for name in PROGRAMS if shutil.which(name) is None), None)


class LocalSlurm:
    """While entered, the cluster runs. `folder`: of its files; its path must be short, for the sockets."""

    def __init__(self, folder: Path, env: Mapping[str, str] | None = None) -> None:
        self.folder = folder
        self.host = f"n{os.getpid()}x"
        self.nodes = tuple(f"ranks-slurm-{os.getpid()}-{i}" for i in (0, 1))
        self.env = {**(env if env is not None else os.environ), "SLURM_CONF": str(folder / "slurm.conf")}

    def __enter__(self) -> LocalSlurm:
        self._closing = ExitStack()
        with ExitStack() as on_error:
            on_error.push(self._closing)
            self._network()
            (self.folder / "state").mkdir(parents=True)
            fields = {"host": self.host, "network": NETWORK, "folder": self.folder}
            (self.folder / "slurm.conf").write_text(CONF.format(**fields))
            (self.folder / "gres.conf").write_text(GRES.format(folder=self.folder))
            for i in range(8):
                (self.folder / f"gpu{i}").touch()
            hosts = [f"{NETWORK}.{i + 1} {self.host}{i}\n" for i in (0, 1)]
            (self.folder / "hosts").write_text("127.0.0.1 localhost\n" + "".join(hosts))
            key = self.folder / "munge.key"
            key.write_bytes(os.urandom(128))
            key.chmod(0o600)
            files = [f"--{kind}={self.folder}/munge.{end}" for kind, end in MUNGE_FILES]
            self._start(["munged", "--foreground", "--force", *files])
            self._wait(lambda: (self.folder / "munge.sock").exists(), "munged")
            self._start(self._on(0, "slurmctld", "-D"))
            for i in (0, 1):
                self._start(self._on(i, "slurmd", "-D", "-N", f"{self.host}{i}"))
            self._wait(lambda: self.run("sinfo", "-h", "-o", "%D %t", check=False).strip() == "2 idle", "the nodes")
            on_error.pop_all()
        return self

    def __exit__(self, *error: object) -> None:
        self.run("scancel", "--full", "--user=root", check=False)
        time.sleep(1.0)  # the steps end
        self._closing.close()

    def run(self, *argv: str, cwd: Path | None = None, check: bool = True) -> str:
        """The output of a client command on the first node. Raises CalledProcessError."""
        done = subprocess.run(
            self._on(0, *argv), env=self.env, cwd=cwd or self.folder, capture_output=True, text=True, check=False
        )
        if check and done.returncode:
            raise subprocess.CalledProcessError(done.returncode, argv, done.stdout, done.stderr)
        return done.stdout

    def job(self, number: int) -> dict[str, str]:
        """What `scontrol show job` says."""
        words = self.run("scontrol", "-o", "show", "job", str(number)).split()
        return dict(word.split("=", 1) for word in words if "=" in word)

    def _on(self, node: int, *argv: str) -> list[str]:
        """A command on a node: in its network, and with its host name."""
        named = ["unshare", "--uts", "--mount", "sh", "-c", ON_NODE, f"{self.host}{node}", str(self.folder / "hosts")]
        return ["nsenter", f"--net=/run/netns/{self.nodes[node]}", *named, *argv]

    def _start(self, argv: Sequence[str]) -> None:
        process = subprocess.Popen(argv, env=self.env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self._closing.callback(process.wait)
        self._closing.callback(process.terminate)

    def _network(self) -> None:
        def ip(*args: str) -> None:
            subprocess.run(["ip", *args], check=True, capture_output=True)

        for name in self.nodes:
            ip("netns", "add", name)
            self._closing.callback(ip, "netns", "delete", name)
        first, second = self.nodes
        ip("link", "add", "cable0", "netns", first, "type", "veth", "peer", "name", "cable1", "netns", second)
        for i, name in enumerate(self.nodes):
            ip("-n", name, "address", "add", f"{NETWORK}.{i + 1}/24", "dev", f"cable{i}")
            ip("-n", name, "link", "set", "lo", "up")
            ip("-n", name, "link", "set", f"cable{i}", "up")

    def _wait(self, ready: Callable[[], bool], what: str) -> None:
        deadline_s = time.monotonic() + UP_S
        while not ready():
            if time.monotonic() > deadline_s:
                raise RuntimeError(f"{what} did not start; see {self.folder}/*.log")
            time.sleep(POLL_S)


MUNGE_FILES = (
    ("socket", "sock"),
    ("key-file", "key"),
    ("pid-file", "pid"),
    ("log-file", "log"),
    ("seed-file", "seed"),
)
