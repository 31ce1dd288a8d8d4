"""What the driver says of the GPUs: number, names, memory, who uses them, faults, what joins them. Uses NVML and
nvidia-smi, no torch."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

import psutil

from ranks.hardware.catalogue.gpus import find, squash
from ranks.hardware.doctor.finding import Asked, Finding, failure, note, ok, warning
from ranks.hardware.doctor.pci_bus import NVIDIA, cards_on_bus
from ranks.hardware.doctor.topology import ask_topology, judge_topology

UNSEEN = "a process outside of this container"
FOREIGN_BYTES = 300 * 2**20
OWN_BYTES = 6 * 2**30
"""More than the doctor's own check of the card takes meanwhile. In a container the driver may name no process."""
LEAST_OF_MEMORY, MOST_OF_MEMORY = 0.85, 1.1
"""Shares of the data sheet's memory: error correction and the driver take a part, and GiB are not GB."""
SLOWED = {
    "hardware slowdown": "nvmlClocksThrottleReasonHwSlowdown",
    "too hot": "nvmlClocksThrottleReasonHwThermalSlowdown",
    "power brake": "nvmlClocksThrottleReasonHwPowerBrakeSlowdown",
}


@dataclass(frozen=True)
class DriverFacts:
    """The PCI bus and NVML."""

    on_bus: dict[str, int] = field(default_factory=dict[str, int])
    """Devices that look like GPUs, by vendor."""
    driver: str = ""
    cuda: str = ""
    """The newest CUDA that the driver knows."""
    error: str = ""
    """Why NVML does not answer."""
    cards: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    """name, memory and used (bytes), users [(pid, name, bytes)], is_silent (the driver names no process), slowed
    [reason], ecc (uncorrected errors), width, max_width (PCI lanes)."""
    topology: str = ""
    """What `nvidia-smi topo -m` prints of several cards; empty where it does not answer."""


def measure(asked: Asked) -> DriverFacts:
    """Count devices on the bus and ask NVML about each card."""
    on_bus = cards_on_bus()
    pynvml: Any = import_module("pynvml")
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        return DriverFacts(on_bus, error=str(error))
    try:
        driver, version = str(pynvml.nvmlSystemGetDriverVersion()), pynvml.nvmlSystemGetCudaDriverVersion()
        handles = [pynvml.nvmlDeviceGetHandleByIndex(i) for i in range(pynvml.nvmlDeviceGetCount())]
        ours = _ours(asked.doctor_pid)
        cards = [_card(pynvml, handle, ours) for handle in handles]
        topology = ask_topology() if len(cards) > 1 else ""
        return DriverFacts(on_bus, driver, f"{version // 1000}.{version % 1000 // 10}", "", cards, topology)
    except pynvml.NVMLError as error:
        return DriverFacts(on_bus, error=str(error))
    finally:
        pynvml.nvmlShutdown()


def _ours(doctor: int) -> set[int]:
    """The doctor and the processes of its checks, one of which uses the cards."""
    found = {doctor}
    with contextlib.suppress(psutil.Error):
        found |= {child.pid for child in psutil.Process(doctor).children(recursive=True)}
    return found


def _card(pynvml: Any, handle: Any, ours: set[int]) -> dict[str, Any]:
    """What NVML says of one card; what a card does not know is left at its default."""

    def ask(default: Any, function: str, *arguments: Any) -> Any:
        try:
            return getattr(pynvml, function)(handle, *arguments)
        except (pynvml.NVMLError, AttributeError):
            return default

    memory = pynvml.nvmlDeviceGetMemoryInfo(handle)
    reasons = ask(0, "nvmlDeviceGetCurrentClocksThrottleReasons")
    running = ask([], "nvmlDeviceGetComputeRunningProcesses")
    users = [
        (process.pid, _process_name(process.pid), int(process.usedGpuMemory or 0))
        for process in running
        if process.pid not in ours
    ]
    return {
        "name": str(pynvml.nvmlDeviceGetName(handle)),
        "memory": int(memory.total),
        "used": int(memory.used),
        "users": users,
        "is_silent": not running,
        "slowed": [word for word, constant in SLOWED.items() if reasons & getattr(pynvml, constant, 0)],
        "ecc": int(ask(0, "nvmlDeviceGetTotalEccErrors", 1, 0)),  # uncorrected, since the driver was loaded
        "width": int(ask(0, "nvmlDeviceGetCurrPcieLinkWidth")),
        "max_width": int(ask(0, "nvmlDeviceGetMaxPcieLinkWidth")),
    }


def _process_name(pid: int) -> str:
    try:
        return psutil.Process(pid).name()
    except psutil.Error:
        return UNSEEN


def judge(facts: DriverFacts, asked: Asked) -> Iterator[Finding]:
    """The expected number and kind of cards, and nobody else on them."""
    if not facts.cards:
        yield from _no_cards(facts, asked)
        return
    names = ", ".join(sorted({card["name"] for card in facts.cards}))
    found = f"{len(facts.cards)} x {names}; driver {facts.driver}, CUDA up to {facts.cuda}"
    if asked.gpus is not None and len(facts.cards) != asked.gpus:
        yield failure("gpus", found, f"{asked.gpus} GPUs", "end this machine and rent another, or ask the provider")
    elif asked.expect and any(squash(asked.expect) not in squash(card["name"]) for card in facts.cards):
        yield failure("gpus", found, asked.expect, "end this machine and rent another, or ask the provider")
    else:
        yield ok("gpus", found)
    on_bus = facts.on_bus.get(NVIDIA, 0)
    if on_bus > len(facts.cards):
        expected = f"{on_bus}, as on the PCI bus"
        yield warning(
            "gpus", f"the driver knows {len(facts.cards)}", expected, "dmesg | grep -i xid; docker run --gpus all"
        )
    for index, card in enumerate(facts.cards):
        yield from _judge_card(f"gpu {index}", card)
    yield from judge_topology(facts.topology, [card["name"] for card in facts.cards])


def _no_cards(facts: DriverFacts, asked: Asked) -> Iterator[Finding]:
    on_bus = sum(facts.on_bus.values())
    if on_bus and (facts.on_bus.get(NVIDIA) or asked.gpus):
        found = f"{on_bus} on the PCI bus, but the driver does not answer ({facts.error or 'it lists none'})"
        do = "docker run --gpus all, or install the driver; then run nvidia-smi"
        yield failure("gpus", found, "a driver that answers", do)
    elif asked.gpus or asked.expect:
        wanted = " ".join([str(asked.gpus or "some"), asked.expect or "GPUs"])
        yield failure("gpus", "none", wanted, "end this machine and rent another, or ask the provider")
    else:
        yield note("gpus", "none; a run trains on the CPU")


def _judge_card(topic: str, card: dict[str, Any]) -> Iterator[Finding]:
    known = find(card["name"])
    if known is not None and not LEAST_OF_MEMORY <= card["memory"] / 1e9 / known.memory_gb <= MOST_OF_MEMORY:
        found = f"{card['name']} with {card['memory'] / 1e9:.0f} GB"
        do = "nvidia-smi -q -d MEMORY; it is a part of a card, or another card, or a wrong driver: ask the provider"
        yield warning(topic, found, f"{known.memory_gb:g} GB ({known.source})", do)
    users = [user for user in card["users"] if user[2] >= FOREIGN_BYTES]
    if users or (card["used"] >= 0.05 * card["memory"] and card["used"] >= FOREIGN_BYTES and card["users"]):
        names = ", ".join(f"{name} ({pid})" for pid, name, _ in card["users"])
        found = f"{card['used'] / 2**30:.1f} of {card['memory'] / 2**30:.0f} GiB are used by {names}"
        pids = " ".join(str(pid) for pid, name, _ in card["users"] if name != UNSEEN)
        end = f"nvidia-smi; if it is yours: kill {pids}" if pids else "ask the provider who uses the card"
        yield warning(topic, found, "a free card", f"{end}; or leave the card out: --gpus")
    elif card["is_silent"] and card["used"] >= OWN_BYTES + 0.05 * card["memory"]:
        used = f"{card['used'] / 2**30:.1f} of {card['memory'] / 2**30:.0f} GiB"
        do = "nvidia-smi; end your other programs and containers, or ask the provider who uses the card"
        found = f"{used} are used, and the driver names no process"
        yield warning(topic, found, "a free card", f"{do}; or leave the card out: --gpus")
    if card["ecc"]:
        found = f"{card['ecc']} uncorrected memory errors since the driver was loaded"
        yield warning(topic, found, "none", "end this machine and rent another; nvidia-smi -r clears them")
    if card["slowed"]:
        yield warning(topic, f"slowed: {', '.join(card['slowed'])}", "full clocks", "nvidia-smi -q -d PERFORMANCE")
    if 0 < card["width"] < card["max_width"]:
        found = f"{card['width']} of {card['max_width']} PCI lanes"
        yield warning(topic, found, f"{card['max_width']} lanes", "ask the provider: data loads at half speed or less")
