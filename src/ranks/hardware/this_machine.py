"""What is known of this machine without torch: the names of its GPUs, and whose machine it is."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from ranks.hardware.doctor.limited import within
from ranks.launch.gpus import each_card

DRIVER_S = 5.0
"""A driver may hang."""
BUSY_LOAD = 0.25
"""The load of each core from which on measured times are not those of a quiet machine."""
VARIABLES = {
    "RUNPOD_POD_ID": "RunPod",
    "VAST_CONTAINERLABEL": "Vast.ai",
    "MODAL_TASK_ID": "Modal",
    "LAMBDA_INSTANCE_ID": "Lambda",
}
"""Process variables by which a rented machine is known, and whose it is."""
FIRMWARE = Path("/sys/class/dmi/id")
FIRMWARE_WORDS = {
    "Amazon EC2": "AWS",
    "Google Compute Engine": "Google Cloud",
    "7783-7084-3265-9085-8269-3286-77": "Azure",
    "OracleCloud.com": "Oracle Cloud",
    "DigitalOcean": "DigitalOcean",
    "Hetzner": "Hetzner",
    "Scaleway": "Scaleway",
    "Vultr": "Vultr",
}
"""What the firmware of a virtual machine says of itself, as cloud-init's ds-identify reads it."""


@dataclass(frozen=True)
class ThisMachine:
    """Its provider, empty where none is known, and the driver's names of all its GPUs."""

    provider: str
    gpus: tuple[str, ...]

    @classmethod
    def look(cls, environ: Mapping[str, str], firmware: Path = FIRMWARE) -> ThisMachine:
        """Ask the process variables, the firmware and the driver."""
        return cls(provider_of(environ, firmware), within(DRIVER_S, gpu_names) or ())


def provider_of(environ: Mapping[str, str], firmware: Path) -> str:
    """The provider that rents this machine out; empty where neither its variables nor its firmware name one."""
    named = [name for variable, name in VARIABLES.items() if environ.get(variable)]
    for file in ("sys_vendor", "product_name", "chassis_asset_tag"):
        with suppress(OSError):
            text = (firmware / file).read_text(encoding="utf-8", errors="replace")
            named += [name for word, name in FIRMWARE_WORDS.items() if word in text]
    return named[0] if named else ""


def load_warning(load: float, cores: int, means: str) -> str | None:
    """Where other programs use this machine: what that `means` for times measured now. `load`: its load average in the
    minute before."""
    if load < BUSY_LOAD * cores:
        return None
    return f"the load was {load:.1f} on {cores} cores before: with other programs {means}"


def gpu_names() -> tuple[str, ...]:
    """The name of each NVIDIA GPU of the machine, used or not; empty without a driver."""
    return each_card(lambda pynvml, handle: str(pynvml.nvmlDeviceGetName(handle)))
