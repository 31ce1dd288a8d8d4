"""What a node says of itself to the others."""

from __future__ import annotations

import array
import fcntl
import hashlib
import platform
import re
import socket
import struct
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import psutil

import ranks
from ranks.hardware.doctor.finding import Asked

ETHTOOL, DRIVER_INFO = 0x8946, 3
"""SIOCETHTOOL and ETHTOOL_GDRVINFO of Linux."""
VIRTUAL = ("veth", "tun", "bridge", "dummy", "vxlan", "ipvlan", "macvlan", "virtio_net", "")
"""Drivers whose interfaces state a rate that nothing keeps."""
NVIDIA = Path("/proc/driver/nvidia")


@dataclass(frozen=True)
class NodeReport:
    """Of one node."""

    node: int
    host: str
    nonce: str
    """Of this start."""
    versions: Mapping[str, str]
    """python, torch, ranks, NCCL, driver; those that there are."""
    source: str
    """The sha256 of the files of this package."""
    gpus: tuple[str, ...]
    interface: str
    address: str
    mtu: int
    rate_mbit: int
    """What the interface says, or 0."""
    link_port: int
    """Where this node measures links."""
    workload: Mapping[str, Any] | None = None
    """code, config, data; None: no workload was named, or its dry run failed."""

    @classmethod
    def of_json(cls, content: Mapping[str, Any]) -> NodeReport:
        """From what `asdict` and JSON made of it."""
        return replace(cls(**content), gpus=tuple(content["gpus"]))


def report_of(asked: Asked, nonce: str, interface: str, address: str, link_port: int) -> NodeReport:
    """What this machine has. Imports torch."""
    stats = psutil.net_if_stats().get(interface)
    rate = stats.speed if stats and driver_of(interface) not in VIRTUAL else 0
    models = [re.search(r"Model:\s*(.*)", text) for text in _texts(NVIDIA / "gpus", "*/information")]
    return NodeReport(
        asked.node,
        socket.gethostname(),
        nonce,
        _versions(),
        _sha256_of_package(),
        tuple(sorted(model[1] for model in models if model)),
        interface,
        address,
        stats.mtu if stats else 0,
        rate,
        link_port,
        asked.workload,
    )


def _versions() -> dict[str, str]:
    """NVML is not asked: it may hang, and has a check of its own."""
    import torch

    found = {"python": platform.python_version(), "torch": str(torch.__version__), "ranks": ranks.__version__}
    if torch.version.cuda:
        from torch.cuda import nccl

        found["NCCL"] = ".".join(map(str, nccl.version()))
    if match := re.search(r"Module\s+([0-9.]+)", "".join(_texts(NVIDIA, "version"))):
        found["driver"] = match[1]
    return found


def _texts(folder: Path, pattern: str) -> list[str]:
    try:
        return [path.read_text(encoding="utf-8", errors="replace") for path in folder.glob(pattern)]
    except OSError:
        return []


def _sha256_of_package() -> str:
    folder, found = Path(ranks.__file__).parent, hashlib.sha256()
    for path in sorted(folder.rglob("*.py")):
        found.update(str(path.relative_to(folder)).encode() + b"\0" + path.read_bytes() + b"\0")
    return found.hexdigest()


def driver_of(interface: str) -> str:
    """The kernel driver of a network interface; empty where it does not say."""
    info = array.array("B", struct.pack("I", DRIVER_INFO).ljust(196, b"\0"))  # struct ethtool_drvinfo
    request = struct.pack("16sP", interface.encode()[:15], info.buffer_info()[0]).ljust(40, b"\0")
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            fcntl.ioctl(probe, ETHTOOL, request)
    except OSError:
        return ""
    return info.tobytes()[4:36].split(b"\0")[0].decode("ascii", "replace")
