"""Faults of one machine."""

from __future__ import annotations

import sys

from benchmarks.faults.injected.compiled import SLOW_FSYNC, library, nvml
from benchmarks.faults.injected.hosts import PORT, Host
from benchmarks.faults.injected.registry import fault


@fault(
    "port taken", cause=rf"port {PORT}: Address already in use, taken by \S+ \(\d+\)", remedy="another port|end that"
)
def port_taken(host: Host) -> None:
    serve = f"import socket, time; s = socket.create_server(('', {PORT})); time.sleep(99)"
    host.before += [f'{sys.executable} -c "{serve}" &', "sleep 0.5"]
    host.env |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(PORT)}


@fault("small /dev/shm", cause="/dev/shm: 2 MiB free", remedy="shm-size|remount")
def small_shm(host: Host) -> None:
    host.before.append("mount -t tmpfs -o size=2m tmpfs /dev/shm")


def disk(host: Host, *commands: str, mount: str = "") -> None:
    """A file system of 400 MB of its own for the runs folder."""
    image = host.folder.parent / "disk"
    host.before += ["mkdir -p runs", f"truncate -s 400M {image}", f"mkfs.ext4 -q {image}"]
    host.before += [f"mount -o loop{mount} {image} runs", *commands]


@fault("full disk", cause="runs folder: .*runs.*: 0 KiB free", remedy="free space|another disk")
def full_disk(host: Host) -> None:
    disk(host, "(dd if=/dev/zero of=runs/old bs=1M status=none || true)")


@fault("slow disk", cause="runs folder: .*(MB/s|s to sync)", remedy="--runs-dir")
def slow_disk(host: Host) -> None:
    host.env["LD_PRELOAD"] = str(library(SLOW_FSYNC))


@fault("read-only disk", cause="runs folder: .*Read-only file system", remedy="remount,rw|--runs-dir")
def read_only_disk(host: Host) -> None:
    disk(host, mount=",ro")


@fault("memory cap", cause="memory: .*the container's limit is 1.0 GiB", remedy="docker run --memory")
def memory_cap(host: Host) -> None:
    host.cgroup("memory", limit_in_bytes=str(2**30))


@fault("low open-file limit", cause="open files: a limit of 96", remedy="ulimit -n|limits.conf")
def open_files(host: Host) -> None:
    host.before.append("ulimit -n 96")


@fault("half a core", cause="cpu: .*0.5 of", remedy="--cpus|fewer ranks")
def half_a_core(host: Host) -> None:
    host.cgroup("cpu", cfs_period_us="100000", cfs_quota_us="50000")


@fault("GPU library hangs", cause=r"gpus: no answer after .*pynvml.py:\d+, nvmlInit", remedy="nvidia-smi|restart")
def gpu_library_hangs(host: Host) -> None:
    host.env["LD_LIBRARY_PATH"] = nvml(init="for (;;) sleep(9)")


@fault("GPU library lies", cause="gpu 0: NVIDIA H200 with 26 GB", remedy="ask the provider")
def gpu_library_lies(host: Host) -> None:
    host.env["LD_LIBRARY_PATH"] = nvml(name="NVIDIA H200")


@fault("foreign process on the card", cause=r"gpu 0: 9.0 of 24 GiB are used by sleep \(\d+\)", remedy=r"kill \d+")
def foreign_process(host: Host) -> None:
    pid_file = host.folder.parent / "pid"
    host.before += ["sleep 99 &", f"echo $! > {pid_file}"]
    host.env["LD_LIBRARY_PATH"] = nvml(used_gib=9, pid_file=str(pid_file))
