"""Hosts in network namespaces, joined by a switch; what each host sends is shaped to one rate (needs root)."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path

from benchmarks.measure import ROOT, environment

BURST_BYTES = 16 * 1024
"""What a host may send at once. More would be free for a job that pauses, and not for a probe that does not."""


class Network:
    """`num_hosts` hosts with the addresses 10.78.0.1, 10.78.0.2, ..."""

    def __init__(self, num_hosts: int, closing: ExitStack) -> None:
        self.names = [f"job{os.getpid()}-{i}" for i in range(num_hosts)]
        self.bridge = f"br{os.getpid()}"
        self._ip("link", "add", self.bridge, "type", "bridge")
        closing.callback(self._ip, "link", "delete", self.bridge)
        self._ip("link", "set", self.bridge, "up")
        for i, name in enumerate(self.names):
            self._ip("netns", "add", name)
            closing.callback(self._ip, "netns", "delete", name)
            port = f"p{os.getpid()}-{i}"
            self._ip("link", "add", port, "type", "veth", "peer", "name", "eth0", "netns", name)
            self._ip("link", "set", port, "master", self.bridge, "up")
            self._ip("-n", name, "address", "add", f"{self.address(i)}/24", "dev", "eth0")
            self._ip("-n", name, "link", "set", "lo", "up")
            self._ip("-n", name, "link", "set", "eth0", "up")

    @staticmethod
    def _ip(*args: str) -> None:
        subprocess.run(["ip", *args], check=True, capture_output=True)

    @staticmethod
    def address(host: int) -> str:
        return f"10.78.0.{host + 1}"

    def shape(self, mbit: float) -> None:
        """Limit what each host sends."""
        burst = max(BURST_BYTES, int(mbit * 1e6 / 8 / 700))  # what 1.4 ms send
        for i, name in enumerate(self.names):
            shaped = f"tc qdisc replace dev eth0 root tbf rate {mbit}mbit burst {burst} latency 200ms"
            with suppress(subprocess.CalledProcessError):
                subprocess.run(["nsenter", f"--net=/run/netns/{name}", *["tc", "qdisc", "del", "dev", "eth0", "root"]],
                               check=True, capture_output=True)  # fmt: skip
            subprocess.run(["nsenter", f"--net=/run/netns/{name}", *shaped.split()], check=True, capture_output=True)
            assert i < 250

    def start(self, num_ranks: int, argv: Sequence[str], port: int, logs: Path) -> list[subprocess.Popen[bytes]]:
        """One rank on each of the first hosts."""
        place = {"WORLD_SIZE": str(num_ranks), "MASTER_ADDR": self.address(0), "MASTER_PORT": str(port)}
        return [
            subprocess.Popen(
                ["nsenter", f"--net=/run/netns/{self.names[rank]}", *argv],
                env=self._environment({**place, "RANK": str(rank), "LOCAL_RANK": "0"}),
                stdout=(logs / f"rank{rank}.log").open("wb"),
                stderr=subprocess.STDOUT,
                cwd=logs,
            )
            for rank in range(num_ranks)
        ]

    @staticmethod
    def _environment(place: Mapping[str, str]) -> dict[str, str]:
        kept = {k: v for k, v in environment().items() if not k.endswith("_SOCKET_IFNAME")}
        return {**kept, **place, "OMP_NUM_THREADS": "1", "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"}
