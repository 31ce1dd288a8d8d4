"""The doctor: all checks, in the order in which a person reads them."""

from __future__ import annotations

from collections.abc import Iterator

from ranks.errors import UserError, nearest
from ranks.hardware.doctor.finding import Asked, Finding
from ranks.hardware.doctor.probes import Probe, examine

PROBES = (
    Probe("software", "torch", 15.0),
    Probe("driver", "gpus", 10.0),
    Probe("compute", "gpus", 18.0),
    Probe("processor", "cpu", 10.0),
    Probe("memory", "memory", 10.0),
    Probe("limits", "limits", 10.0),
    Probe("disk", "disk", 12.0),
    Probe("network", "network", 10.0),
    Probe("collective", "all-reduce", 17.0),
    Probe("clock", "clock", 10.0),
)
"""The longest limit keeps the whole below 20 s."""


def diagnose(asked: Asked, only: tuple[str, ...] = ()) -> Iterator[list[Finding]]:
    """The findings of each check. Raises UserError for an unknown name in `only`."""
    names = [probe.name for probe in PROBES]
    for name in only:
        if name not in names:
            raise UserError(f"--only {name}", "there is no such check", nearest(name, names, ", ".join(names)))
    return examine(tuple(probe for probe in PROBES if not only or probe.name in only), asked)
