"""What the GPUs do: each allocates, multiplies and copies, and they copy to each other. Uses torch.

The limits are shares of the data sheet's peak figures. One H100 SXM reached 0.89 of both (LOG.md, 2026-11-26).
They were tried on no card with a fault.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from ranks.hardware.catalogue.gpus import find
from ranks.hardware.doctor.finding import Asked, Finding, failure, note, ok, warning
from ranks.hardware.doctor.pci_bus import NVIDIA, cards_on_bus
from ranks.launch.gpus import gpu_build

SIZE, TIMES = 8192, 10
COPY_BYTES = 2**30
LEAST_OF_MATRIX_RATE, LEAST_OF_BANDWIDTH = 0.35, 0.5


@dataclass(frozen=True)
class ComputeFacts:
    """One entry for each GPU that torch sees."""

    build: str = ""
    """CUDA or ROCm; empty: torch is built for the CPU."""
    error: str = ""
    """Why torch sees no GPU."""
    cards: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    """name, error, is_right, tflops, memory_tbs"""
    peers: list[list[bool]] = field(default_factory=list[list[bool]])
    """Whether a card reads the memory of another one directly."""
    on_bus: int = 0
    """NVIDIA's GPUs on the PCI bus."""


def measure(asked: Asked) -> ComputeFacts:
    """Let each GPU work for a moment."""
    build, on_bus = gpu_build(), cards_on_bus().get(NVIDIA, 0)
    if not build:
        return ComputeFacts(on_bus=on_bus)
    import torch

    try:
        torch.cuda.init()
        count = torch.cuda.device_count()
    except (RuntimeError, AssertionError) as error:
        return ComputeFacts(build, str(error).splitlines()[0], on_bus=on_bus)
    cards = [_card(torch, index) for index in range(count)]
    peers = [[a == b or torch.cuda.can_device_access_peer(a, b) for b in range(count)] for a in range(count)]
    return ComputeFacts(build, "", cards, peers, on_bus)


def _card(torch: Any, index: int) -> dict[str, Any]:
    """Rates of one GPU, by CUDA events."""
    found: dict[str, Any] = {"name": torch.cuda.get_device_name(index), "error": "", "is_right": True}
    try:
        with torch.cuda.device(index):
            found["tflops"], is_product_right = _matrix_rate(torch)
            found["memory_tbs"], is_copy_right = _bandwidth(torch)
            found["is_right"] = is_product_right and is_copy_right
    except RuntimeError as error:
        found["error"] = str(error).splitlines()[0]
    return found


def _matrix_rate(torch: Any) -> tuple[float, bool]:
    """10^12 floating-point operations a second in a bf16 product, and whether it is right."""
    ones = torch.ones(SIZE, SIZE, device="cuda", dtype=torch.bfloat16)
    product = ones @ ones
    is_right = bool((product == SIZE).all())
    seconds = min(_seconds(torch, lambda: torch.mm(ones, ones, out=product)) for _ in range(TIMES))
    return 2 * SIZE**3 / seconds / 1e12, is_right


def _bandwidth(torch: Any) -> tuple[float, bool]:
    """Terabytes a second that a copy reads and writes, and whether it is right."""
    source = torch.ones(COPY_BYTES // 4, device="cuda")
    target = torch.empty_like(source)
    seconds = min(_seconds(torch, lambda: target.copy_(source)) for _ in range(TIMES))
    return 2 * COPY_BYTES / seconds / 1e12, bool((target == 1).all())


def _seconds(torch: Any, work: Any) -> float:
    began, ended = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    began.record()
    work()
    ended.record()
    ended.synchronize()
    return began.elapsed_time(ended) / 1e3


def judge(facts: ComputeFacts, asked: Asked) -> Iterator[Finding]:
    """Each card computes rightly, and about as fast as its kind."""
    if not facts.cards:
        yield from _judge_none(facts, asked)
        return
    if asked.gpus and len(facts.cards) < asked.gpus:
        hidden = "echo $CUDA_VISIBLE_DEVICES, which may hide the others; nvidia-smi; docker run --gpus all"
        yield failure("torch", f"it sees {len(facts.cards)} GPUs", f"{asked.gpus} GPUs", hidden)
    for index, card in enumerate(facts.cards):
        yield from _judge_card(f"gpu {index}", card)
    apart = [(a, b) for a, row in enumerate(facts.peers) for b, reads in enumerate(row) if not reads and a < b]
    if apart:
        pairs = ", ".join(f"{a}-{b}" for a, b in apart[:8])
        yield note("links", f"these cards reach each other through the host only: {pairs}; all-reduces are slower")


def _judge_none(facts: ComputeFacts, asked: Asked) -> Iterator[Finding]:
    """torch sees no GPU: a run trains on the CPU, whatever the machine has."""
    there = f", and there are {facts.on_bus} on the PCI bus" if facts.on_bus else ""
    if facts.build:
        why = facts.error or "CUDA_VISIBLE_DEVICES hides them"
        found = f"torch, built for {facts.build}, sees no GPU: {why}{there}"
        do = "update the driver, or install torch for its CUDA version"
    else:
        found = f"it is built for the CPU{there}"
        do = "pip install --force-reinstall torch, for the CUDA version of the driver (nvidia-smi)"
    if asked.gpus or asked.expect:
        yield failure("torch", found, f"{asked.gpus or 'some'} GPUs", do)
    elif facts.on_bus:
        yield warning("torch", f"{found}: a run trains on the CPU", "a torch that uses them", do)
    elif facts.build:
        yield note("torch", found)


def _judge_card(topic: str, card: dict[str, Any]) -> Iterator[Finding]:
    if card["error"]:
        yield failure(topic, card["error"], "a card that computes", "leave it out: --gpus; nvidia-smi -r; rent another")
        return
    if not card["is_right"]:
        do = "do not train on it; end this machine and rent another"
        yield failure(topic, "a product or a copy is wrong", "right results", do)
        return
    found = f"{card['tflops']:,.0f} bf16 TFLOP/s, {card['memory_tbs']:.2f} TB/s"
    known = find(card["name"])
    if known is None:
        yield note(topic, f"{card['name']}: {found}; the catalogue does not know this card")
        return
    least_tflops, least_tbs = LEAST_OF_MATRIX_RATE * known.bf16_tflops, LEAST_OF_BANDWIDTH * known.memory_tbs
    if card["tflops"] < least_tflops or card["memory_tbs"] < least_tbs:
        expected = f"at least {least_tflops:,.0f} and {least_tbs:.2f} ({known.name}: {known.source})"
        yield warning(topic, found, expected, "nvidia-smi -q -d PERFORMANCE,CLOCK; end other programs")
    else:
        yield ok(topic, found)
