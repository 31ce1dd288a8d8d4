"""Faults by a second person who had not read the doctor, with their causes and remedies, before the first run."""

from __future__ import annotations

import sys

from benchmarks.faults.injected.compiled import NO_LOCKS, library
from benchmarks.faults.injected.hosts import PORT, Host
from benchmarks.faults.injected.registry import fault

AUTHOR = "a second person who had not read the doctor"

NEVER_ANSWERS = """
import ctypes, os, time
device = os.open("/dev/fuse", os.O_RDWR)
options = f"fd={device},rootmode=40000,user_id=0,group_id=0".encode()
assert ctypes.CDLL(None).mount(b"server", b"runs", b"fuse", 0, options) == 0
time.sleep(200)
"""
ONLY_ONE_PORT = (
    f"11,40 0 0 12,21 0 8 2048,48 0 0 23,21 0 6 6,48 0 0 47,84 0 0 18,21 0 3 2,40 0 0 36,21 1 0 {PORT},6 0 0 2,6 0 0 0"
)
"""Classic BPF: drop an IPv4 TCP packet that opens a connection to another port than PORT."""
NO_LONG_PACKETS = "4,128 0 0 0,37 0 1 1314,6 0 0 2,6 0 0 0"
"""Classic BPF: drop frames longer than 1,314 bytes, that is packets longer than 1,300."""


@fault(
    "file server hangs",
    cause="no answer.*runs folder",
    remedy="--runs-dir|mount|file server|NFS|another disk",
    author=AUTHOR,
)
def file_server_hangs(host: Host) -> None:
    """The runs folder is mounted from a server that never answers, so every call on it blocks."""
    script = host.folder.parent / "server.py"
    script.write_text(NEVER_ANSWERS)
    host.before += ["mkdir -p runs", "[ -e /dev/fuse ] || mknod /dev/fuse c 10 229"]
    host.before += [f"{sys.executable} {script} &", "until grep -q ' fuse ' /proc/mounts; do sleep 0.1; done"]


@fault(
    "file system without locks",
    cause="lock.*(not implemented|ENOSYS|not supported|No locks)",
    remedy="flock|--runs-dir|another (disk|folder)|mount",
    author=AUTHOR,
)
def no_locks(host: Host) -> None:
    """As Lustre that is mounted without -o flock."""
    host.env["LD_PRELOAD"] = str(library(NO_LOCKS))


@fault("limit on the size of a file", cause="File too large|file size", remedy="ulimit -f|fsize", author=AUTHOR)
def file_size_limit(host: Host) -> None:
    """20 MiB, which a checkpoint exceeds."""
    host.before.append("ulimit -f 40960")


@fault(
    "memory taken by a neighbour",
    cause=r"memory.*(\b0\.\d+ GiB|\d+ MiB|\b0\.\d of .* GiB)",
    remedy=r"end |kill|stop|--memory",
    author=AUTHOR,
)
def memory_taken(host: Host) -> None:
    """The container may use 2 GiB, and another program in it holds 1.4 of them."""
    ready = host.folder.parent / "ready"
    hold = f"import time; held = b'x' * int(1.4 * 2**30); open('{ready}', 'w').close(); time.sleep(99)"
    host.cgroup("memory", limit_in_bytes=str(2 * 2**30))
    host.before += [f'{sys.executable} -c "{hold}" &', f"until [ -e {ready} ]; do sleep 0.1; done"]


def drop(host: Host, bytecode: str) -> None:
    """Drop what a filter of the host's own network selects on its way in."""
    host.inside("tc", "qdisc", "add", "dev", "eth0", "clsact")
    host.inside("tc", "filter", "add", "dev", "eth0", "ingress", "bpf", "da", "bytecode", bytecode)


@fault(
    "firewall between the nodes",
    cause="(link|node|port|gloo|network).*(connect|port|firewall|reach)",
    remedy="firewall|security group|ports",
    hosts=2,
    author=AUTHOR,
)
def firewall(first: Host, second: Host) -> None:
    """Only the port of the rendezvous is open, as in a cloud's security group."""
    drop(first, ONLY_ONE_PORT)
    drop(second, ONLY_ONE_PORT)


@fault(
    "long packets vanish",
    cause=r"(link|node|network).*(MTU|mtu|packets? .*(above|over|longer|larger|long|large|of)|long|large)",
    remedy="mtu|MTU",
    hosts=2,
    author=AUTHOR,
)
def long_packets(first: Host, second: Host) -> None:
    """A tunnel on the way carries 1,300 bytes, and nothing says so to the hosts, whose limit is 1,500."""
    drop(first, NO_LONG_PACKETS)
    drop(second, NO_LONG_PACKETS)
