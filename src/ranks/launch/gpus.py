"""Find the GPUs that CUDA shows to this process, without importing torch."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import re
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar

T = TypeVar("T")


@dataclass(frozen=True)
class Card:
    """A GPU as NVML lists it. `slices`: the UUIDs of its MIG devices, where it is cut into such."""

    uuid: str
    slices: tuple[str, ...] = ()


@dataclass(frozen=True)
class Gpus:
    """The number of usable GPUs, or why there are none. A MIG slice counts as a GPU."""

    count: int
    why_none: str = ""
    visible: tuple[str, ...] | None = None
    """Their entries for CUDA_VISIBLE_DEVICES; None where that is not set and no GPU is sliced."""
    apart: bool = False
    """Some are MIG slices. CUDA shows a process one slice only, so each rank must see its own alone."""

    @property
    def restricted(self) -> bool:
        return self.visible is not None and not self.apart

    def physical(self, gpu: int) -> str:
        """The entry for GPU `gpu` in the CUDA_VISIBLE_DEVICES of a child process."""
        return self.visible[gpu] if self.visible is not None else str(gpu)


def find_gpus(environ: Mapping[str, str] = os.environ) -> Gpus:
    """The GPUs that NVML lists and CUDA_VISIBLE_DEVICES allows."""
    cards = each_card(_card_with_slices)
    if not cards:
        return Gpus(0, "no NVIDIA GPU found")
    if gpu_build() != "CUDA":
        return Gpus(0, "this machine has an NVIDIA GPU, but the installed torch is built for the CPU only")
    text = environ.get("CUDA_VISIBLE_DEVICES")
    visible = visible_devices(text, cards)
    apart = any(entry.startswith("MIG-") for entry in visible)
    if text is None and not apart:
        return Gpus(len(cards))
    return Gpus(len(visible), "CUDA_VISIBLE_DEVICES hides every GPU", visible, apart)


def visible_devices(text: str | None, cards: tuple[Card, ...]) -> tuple[str, ...]:
    """The entries of CUDA_VISIBLE_DEVICES up to the first invalid one, as CUDA and torch read them.

    All are numbers, or all are (the start of) UUIDs of GPUs, or all are MIG devices. An entry that is repeated makes
    the list empty. A sliced GPU is replaced by its slices. None means all GPUs.
    """
    entries = [part.strip() for part in text.split(",")] if text is not None else [str(i) for i in range(len(cards))]
    kind = next((prefix for prefix in ("GPU-", "MIG-") if entries[0].startswith(prefix)), "")
    found: list[str] = []
    for entry in entries:
        card = _card_of(entry, kind, cards)
        if card is None:
            break
        found.append(entry)
    if len(set(found)) < len(found):
        return ()
    shown = [(_card_of(entry, kind, cards) or Card("")).slices or (entry,) for entry in found]
    return tuple(entry for slices in shown for entry in slices)


def _card_of(entry: str, kind: str, cards: tuple[Card, ...]) -> Card | None:
    """The GPU of an entry, None for an invalid one. A MIG device is not looked up."""
    if kind == "MIG-":
        return Card(entry) if entry.startswith(kind) else None
    if kind == "GPU-":
        return next((card for card in cards if entry.startswith(kind) and card.uuid.startswith(entry)), None)
    return cards[int(entry)] if entry.isdigit() and int(entry) < len(cards) else None


def each_card(read: Callable[[Any, Any], T]) -> tuple[T, ...]:
    """`read(pynvml, handle)` of each NVIDIA GPU of the machine, used or not, in the order of the PCI bus; empty without
    a driver."""
    pynvml: Any = import_module("pynvml")
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return ()
    try:
        return tuple(read(pynvml, pynvml.nvmlDeviceGetHandleByIndex(i)) for i in range(pynvml.nvmlDeviceGetCount()))
    except pynvml.NVMLError:
        return ()
    finally:
        pynvml.nvmlShutdown()


def gpu_build() -> str:
    """CUDA or ROCm, for which the installed torch is built; empty for the CPU. Read from its version file: importing
    torch takes a second."""
    spec = importlib.util.find_spec("torch")
    file = Path(spec.origin).parent / "version.py" if spec and spec.origin else None
    if file is None or not file.is_file():
        return ""
    found = re.search(r"^(cuda|hip)\b[^=\n]*=\s*['\"]", file.read_text(encoding="utf-8"), re.MULTILINE)
    return "" if found is None else "CUDA" if found[1] == "cuda" else "ROCm"


def _card_with_slices(pynvml: Any, handle: Any) -> Card:
    return Card(str(pynvml.nvmlDeviceGetUUID(handle)), tuple(_slices(pynvml, handle)))


def _slices(pynvml: Any, handle: Any) -> Generator[str]:
    """The UUIDs of a GPU's MIG devices."""
    with contextlib.suppress(pynvml.NVMLError):  # the GPU or its driver knows no MIG
        if pynvml.nvmlDeviceGetMigMode(handle)[0]:
            for i in range(pynvml.nvmlDeviceGetMaxMigDeviceCount(handle)):
                with contextlib.suppress(pynvml.NVMLError):  # no slice has this number
                    yield str(pynvml.nvmlDeviceGetUUID(pynvml.nvmlDeviceGetMigDeviceHandleByIndex(handle, i)))
