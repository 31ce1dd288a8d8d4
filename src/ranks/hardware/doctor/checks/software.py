"""Python, torch and what it was built for."""

from __future__ import annotations

import platform
import sys
from collections.abc import Iterator
from dataclasses import dataclass

from ranks.hardware.doctor.finding import Asked, Finding, failure, note, ok, warning

OLDEST_PYTHON, OLDEST_TORCH, NEWEST_TORCH = (3, 11), (2, 11), (2, 13)
"""Of torch the versions that were tested."""


@dataclass(frozen=True)
class SoftwareFacts:
    """What is installed."""

    python: str
    torch: str = ""
    error: str = ""
    """Why torch cannot be imported."""
    build: str = ""
    """CUDA or ROCm and its version; empty: for the CPU."""
    nccl: str = ""
    has_distributed: bool = False
    has_gloo: bool = False


def measure(asked: Asked) -> SoftwareFacts:
    """Import torch and ask it."""
    python = platform.python_version()
    try:
        import torch
    except (ImportError, OSError) as error:
        return SoftwareFacts(python, error=f"{type(error).__name__}: {error}")
    import torch.distributed as dist

    hip = getattr(torch.version, "hip", None)
    build = f"CUDA {torch.version.cuda}" if torch.version.cuda else f"ROCm {hip}" if hip else ""
    nccl = ""
    if build and dist.is_available() and dist.is_nccl_available():
        from torch.cuda import nccl as nccl_module

        nccl = ".".join(map(str, nccl_module.version()))
    has_gloo = dist.is_available() and dist.is_gloo_available()
    return SoftwareFacts(python, str(torch.__version__), "", build, nccl, dist.is_available(), has_gloo)


def judge(facts: SoftwareFacts, asked: Asked) -> Iterator[Finding]:
    """Compare with what `ranks` needs and was tested with."""
    if _numbers(facts.python) < OLDEST_PYTHON:
        yield failure("python", facts.python, "3.11 or newer", "install Python 3.11 or newer")
    else:
        yield ok("python", f"{facts.python}, {sys.executable}")
    if facts.error:
        yield failure("torch", f"it cannot be imported: {facts.error}", "torch 2.11 or newer", "pip install torch")
        return
    version = _numbers(facts.torch)
    built = facts.build or "for the CPU"
    if version < OLDEST_TORCH:
        yield failure("torch", facts.torch, "2.11 or newer", "pip install --upgrade torch")
    elif version > NEWEST_TORCH:
        yield note("torch", f"{facts.torch} ({built}); ranks was tested with 2.11 to 2.13")
    else:
        yield ok("torch", f"{facts.torch} ({built})")
    if not facts.has_distributed or not facts.has_gloo:
        yield failure("torch", "it was built without torch.distributed and gloo", "both", "pip install torch")
    if facts.build and not facts.nccl:
        found = f"built for {facts.build}, without NCCL"
        yield warning("torch", found, "NCCL, for several GPUs", "pip install torch from pytorch.org")
    elif facts.nccl:
        yield ok("nccl", facts.nccl)


def _numbers(version: str) -> tuple[int, int]:
    """'2.13.0+cpu' -> (2, 13)."""
    parts = version.split("+")[0].split(".")
    return int(parts[0]), int("".join(c for c in parts[1] if c.isdigit()) or 0) if len(parts) > 1 else 0
