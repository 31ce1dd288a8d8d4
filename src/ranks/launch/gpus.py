"""Find the GPUs that CUDA shows to this process, without importing torch."""

from __future__ import annotations

import importlib.util
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Gpus:
    """The number of usable GPUs, or why there are none."""

    count: int
    why_none: str = ""
    visible: tuple[str, ...] | None = None
    """The valid entries of CUDA_VISIBLE_DEVICES, None where it is not set."""

    @property
    def restricted(self) -> bool:
        return self.visible is not None

    def physical(self, gpu: int) -> str:
        """The entry for GPU `gpu` in the CUDA_VISIBLE_DEVICES of a child process."""
        return self.visible[gpu] if self.visible is not None else str(gpu)


def find_gpus(environ: Mapping[str, str] = os.environ) -> Gpus:
    """The GPUs that NVML lists and CUDA_VISIBLE_DEVICES allows."""
    names = _nvml_uuids()
    if not names:
        return Gpus(0, "no NVIDIA GPU found")
    if not _torch_has_cuda():
        return Gpus(0, "this machine has an NVIDIA GPU, but the installed torch is built for the CPU only")
    if "CUDA_VISIBLE_DEVICES" not in environ:
        return Gpus(len(names))
    visible = visible_devices(environ["CUDA_VISIBLE_DEVICES"], names)
    return Gpus(len(visible), "CUDA_VISIBLE_DEVICES hides every GPU", visible)


def visible_devices(text: str, uuids: tuple[str, ...]) -> tuple[str, ...]:
    """The entries of CUDA_VISIBLE_DEVICES up to the first invalid one, as CUDA reads them.

    An entry is a number or (the start of) a UUID. A MIG entry is not checked, and CUDA shows only one of them.
    """
    entries: list[str] = []
    for entry in (part.strip() for part in text.split(",")):
        if entry.startswith("MIG-"):
            return (entry,) if not entries else tuple(entries)
        number = entry.isdigit() and int(entry) < len(uuids)
        if not number and not (entry.startswith("GPU-") and any(uuid.startswith(entry) for uuid in uuids)):
            break
        entries.append(entry)
    return tuple(entries)


def _nvml_uuids() -> tuple[str, ...]:
    """The UUID of each GPU, in the order of the PCI bus; empty without a driver."""
    pynvml: Any = import_module("pynvml")

    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return ()
    try:
        handles = [pynvml.nvmlDeviceGetHandleByIndex(i) for i in range(pynvml.nvmlDeviceGetCount())]
        return tuple(str(pynvml.nvmlDeviceGetUUID(handle)) for handle in handles)
    except pynvml.NVMLError:
        return ()
    finally:
        pynvml.nvmlShutdown()


def _torch_has_cuda() -> bool:
    """Whether the installed torch is a CUDA build, read from its version file: importing torch takes a second."""
    spec = importlib.util.find_spec("torch")
    if spec is None or spec.origin is None:
        return False
    text = (Path(spec.origin).parent / "version.py").read_text(encoding="utf-8")
    return re.search(r"^cuda\b[^=\n]*=\s*['\"]", text, re.MULTILINE) is not None
