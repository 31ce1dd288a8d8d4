"""Faults by someone who had not seen the doctor's checks, with their causes and remedies, before the first run."""

from __future__ import annotations

from benchmarks.faults.injected.compiled import CLOCK_STEPS, FSYNC_FAILS, library
from benchmarks.faults.injected.hosts import PORT, Host
from benchmarks.faults.injected.registry import fault
from benchmarks.faults.injected.two_hosts import with_workload

AUTHOR = "someone who had not seen the doctor"


@fault(
    "fsync fails",
    cause=r"(runs folder|disk).*(Input/output error|EIO)",
    remedy="--runs-dir|another disk|dmesg|smartctl|provider",
    author=AUTHOR,
)
def fsync_fails(host: Host) -> None:
    host.env["LD_PRELOAD"] = str(library(FSYNC_FAILS))


@fault(
    "no inodes left",
    cause="inode|number of files",
    remedy="rm |delete|remove|--runs-dir|another disk",
    author=AUTHOR,
)
def no_inodes(host: Host) -> None:
    """The disk has 300 MB free and can hold no further file."""
    image = host.folder.parent / "disk"
    host.before += ["mkdir -p runs", f"truncate -s 400M {image}", f"mkfs.ext4 -q -N 32 {image}"]
    host.before += [f"mount -o loop {image} runs", "mkdir runs/old"]
    host.before.append("(i=0; while touch runs/old/$i 2> /dev/null; do i=$((i + 1)); done)")


@fault(
    "few processes allowed",
    cause=r"(processes|threads|pids).*\b48\b",
    remedy="pids|ulimit -u|nproc",
    author=AUTHOR,
)
def few_processes(host: Host) -> None:
    """As `docker run --pids-limit 48`."""
    host.cgroup("pids", max="48")


@fault("clock jumps", cause="clock.*(jump|back|step|set)", remedy="chrony|ntp|timedatectl|provider", author=AUTHOR)
def clock_jumps(host: Host) -> None:
    """Two time services disagree by a minute and set the clock in turn, each every four seconds."""
    host.env["LD_PRELOAD"] = str(library(CLOCK_STEPS))


@fault(
    "name server does not answer",
    cause=r"trainer-0\.internal|name server|DNS|resolv",
    remedy="resolv|/etc/hosts|DNS|name server",
    author=AUTHOR,
)
def name_server(host: Host) -> None:
    """Queries for the master's name vanish, so a look-up takes ten seconds or more."""
    host.inside("ip", "link", "add", "eth0", "type", "veth", "peer", "name", "far0")
    host.inside("ip", "address", "add", "10.99.0.2/24", "dev", "eth0")
    host.inside("ip", "link", "set", "eth0", "up")
    host.inside("ip", "link", "set", "far0", "up")
    host.inside("ip", "neighbour", "add", "10.99.0.53", "lladdr", "02:00:00:00:00:01", "dev", "eth0")
    host.own_file("/etc/resolv.conf", "nameserver 10.99.0.53\n")
    host.env |= {"MASTER_ADDR": "trainer-0.internal", "MASTER_PORT": str(PORT)}


@fault(
    "little locked memory for InfiniBand",
    cause=r"locked memory.*\b64\b",
    remedy="memlock|ulimit -l",
    author=AUTHOR,
)
def locked_memory(host: Host) -> None:
    """A container with an InfiniBand card, and the 64 KiB of locked memory that Docker allows."""
    devices = host.folder.parent / "class"
    port = devices / "infiniband" / "mlx5_0" / "ports" / "1"
    host.before += [f"mkdir -p {port}", f"cp -a /sys/class/net {devices}"]
    for name, value in {"state": "4: ACTIVE", "link_layer": "InfiniBand", "rate": "400 Gb/sec (4X NDR)"}.items():
        host.before.append(f"echo '{value}' > {port / name}")
    host.before += [f"mount --bind {devices} /sys/class", "ulimit -l 64"]


@fault(
    "a node never starts",
    cause=r"(node ?1|1 of 2|10\.79\.0\.2).*(join|answer|missing|came|come|start|meet|met)",
    remedy="start|node 1|node1|--node-rank",
    hosts=2,
    author=AUTHOR,
)
def missing_node(first: Host, second: Host) -> None:
    second.before.append("exit 3")


@fault(
    "code drift",
    cause="(code|source|my_task).*(node 1|differ)",
    remedy="copy|git|same",
    hosts=2,
    author=AUTHOR,
)
def code_drift(first: Host, second: Host) -> None:
    """Someone edited the file on one machine only."""
    with_workload(first, second)
    file = second.folder / "my_task.py"
    second.own_file(
        file, file.read_text().replace("nn.Linear(1, 32)", "nn.Linear(1, 48)").replace("(32, 1)", "(48, 1)")
    )
