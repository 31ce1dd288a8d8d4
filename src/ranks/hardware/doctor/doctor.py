"""The doctor: all checks, in the order in which a person reads them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import psutil

from ranks.engine.distributed.rendezvous.cgroup import memory_left
from ranks.errors import UserError, nearest
from ranks.hardware.doctor.finding import Asked, Finding
from ranks.hardware.doctor.probes import Probe, examine

DRIVER = "nvidia-smi; if that hangs too, restart the machine or rent another (dmesg | grep -i xid)"
DISK = "the disk is very slow or does not answer: dmesg | tail; name another with --runs-dir, TMPDIR"
PROBES = (
    Probe("software", "torch", 15.0),
    Probe("driver", "gpus", 10.0, DRIVER),
    Probe("compute", "gpus", 18.0, DRIVER),
    Probe("processor", "cpu", 10.0),
    Probe("memory", "memory", 10.0),
    Probe("limits", "limits", 10.0),
    Probe("disk", "disk", 12.0, DISK),
    Probe("network", "network", 10.0),
    Probe("collective", "all-reduce", 17.0),
    Probe("clock", "clock", 10.0),
)
"""The longest limit keeps the whole below 20 s."""
NODES, NODES_S = "nodes", 30.0
"""The check between machines. It begins after the others, and takes so long at most when all nodes have come."""


def diagnose(asked: Asked, only: tuple[str, ...] = ()) -> Iterator[list[Finding]]:
    """The findings of each check. Raises UserError for an unknown name in `only`."""
    names = [*(probe.name for probe in PROBES), NODES]
    for name in only:
        if name not in names:
            raise UserError(f"--only {name}", "there is no such check", nearest(name, names, ", ".join(names)))
    asked = replace(asked, memory_left=memory_left(psutil.virtual_memory().available))
    return examine(tuple(probe for probe in PROBES if not only or probe.name in only), asked)


def diagnose_nodes(asked: Asked) -> Iterator[list[Finding]]:
    """What several machines say of each other. All of them call it."""
    return examine((Probe("nodes", "nodes", NODES_S + asked.wait_s),), asked)
