"""Faults between two machines."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path

from benchmarks.faults.injected.compiled import CLOCK_AHEAD, library
from benchmarks.faults.injected.hosts import PORT, RATE_MBIT, Host, shape
from benchmarks.faults.injected.registry import fault

WORKLOAD = Path(__file__).with_name("workload.py")
DROP_TWO_PERCENT = "4,32 0 0 4294963256,53 0 1 4209067950,6 0 0 2,6 0 0 0"
"""Classic BPF: load a random word; above the limit, drop the packet, else let it pass."""


def with_workload(*both: Host) -> None:
    """Examine a workload that trains on a file."""
    for host in both:
        (host.folder / "my_task.py").write_text(WORKLOAD.read_text())
        (host.folder / "numbers.csv").write_text("\n".join(str(i % 7) for i in range(4000)) + "\n")
        host.flags = ["./my_task.py", *host.flags]


@fault("wrong interface", cause="172.30.0.1|docker0", remedy="GLOO_SOCKET_IFNAME", hosts=2)
def wrong_interface(first: Host, second: Host) -> None:
    second.inside("ip", "link", "add", "docker0", "type", "veth", "peer", "name", "inner0")
    second.inside("ip", "address", "add", "172.30.0.1/16", "dev", "docker0")
    second.inside("ip", "link", "set", "docker0", "up")
    second.inside("ip", "link", "set", "inner0", "up")
    second.env["GLOO_SOCKET_IFNAME"] = "docker0"


@fault("halved link", cause=r"link: .*[45]\d\d Mbit/s", remedy="ethtool|provider", hosts=2)
def halved_link(first: Host, second: Host) -> None:
    shape(first, RATE_MBIT // 2)
    shape(second, RATE_MBIT // 2)


@fault("lossy link", cause="link: .*of the packets are lost", remedy="cables|switches|provider", hosts=2)
def lossy_link(first: Host, second: Host) -> None:
    second.inside("tc", "qdisc", "add", "dev", "eth0", "clsact")
    second.inside("tc", "filter", "add", "dev", "eth0", "ingress", "bpf", "da", "bytecode", DROP_TWO_PERCENT)


@fault("version drift", cause="torch version: .*2.12.1", remedy="pip install torch", hosts=2)
def version_drift(first: Host, second: Host) -> None:
    spec = find_spec("torch")
    assert spec is not None
    assert spec.origin is not None
    file = Path(spec.origin).with_name("version.py")
    import torch

    second.own_file(file, file.read_text().replace(torch.__version__, "2.12.1+cpu"))


@fault("data drift", cause="data: node 1 .*differs from node 0", remedy="copy the data", hosts=2)
def data_drift(first: Host, second: Host) -> None:
    with_workload(first, second)
    file = second.folder / "numbers.csv"
    second.own_file(file, file.read_text().replace("3\n", "4\n", 1))


@fault("clock skew", cause=r"clocks: .*37\.\d s", remedy="chronyc|timedatectl", hosts=2)
def clock_skew(first: Host, second: Host) -> None:
    second.env["LD_PRELOAD"] = str(library(CLOCK_AHEAD))


@fault("stale rendezvous", cause="taken by .*the store of another run|store of another run", remedy="end|kill", hosts=2)
def stale_rendezvous(first: Host, second: Host) -> None:
    ready = first.folder.parent / "ready"
    store = (
        "import time; from torch.distributed import TCPStore; "
        f"s = TCPStore('0.0.0.0', {PORT}, is_master=True, wait_for_workers=False); "
        f"s.set('torch.rendezvous.old', 'x'); open('{ready}', 'w'); time.sleep(99)"
    )
    first.before += [f'{sys.executable} -c "{store}" &', f"while [ ! -e {ready} ]; do sleep 0.1; done"]
