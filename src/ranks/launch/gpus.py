"""The GPUs that CUDA would show to this process, found without importing torch."""

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
    """How many GPUs a rank can use, or the reason why there are none."""

    count: int
    why_none: str = ""
    visible: tuple[str, ...] | None = None
    """The entries of CUDA_VISIBLE_DEVICES that count, where it is set."""

    @property
    def restricted(self) -> bool:
        return self.visible is not None

    def physical(self, card: int) -> str:
        """The name of card `card` in CUDA_VISIBLE_DEVICES of a child process."""
        return self.visible[card] if self.visible is not None else str(card)


def find_gpus(environ: Mapping[str, str] = os.environ) -> Gpus:
    """Ask NVML how many cards there are, and CUDA_VISIBLE_DEVICES which of them count."""
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
    """The entries of CUDA_VISIBLE_DEVICES up to the first that CUDA would not understand.

    An entry is a number or (the start of) a UUID; a MIG slice is taken as it stands, and CUDA shows one of them only.
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
    """The UUID of each card, in the order of the PCI bus; empty without a driver."""
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
    """Whether the installed torch is a CUDA build, read from its version file (importing it takes a second)."""
    spec = importlib.util.find_spec("torch")
    if spec is None or spec.origin is None:
        return False
    text = (Path(spec.origin).parent / "version.py").read_text(encoding="utf-8")
    return re.search(r"^cuda\b[^=\n]*=\s*['\"]", text, re.MULTILINE) is not None
