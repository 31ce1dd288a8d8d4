"""What stands beside every number that a run leaves behind: versions, hardware, commit."""

from __future__ import annotations

import os
import platform
import subprocess
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import torch


def versions() -> dict[str, str]:
    return {
        "ranks": metadata.version("ranks") if _installed("ranks") else "source",
        "torch": torch.__version__,
        "numpy": np.__version__,
        "python": platform.python_version(),
    }


def hardware(device: torch.device) -> dict[str, Any]:
    facts: dict[str, Any] = {"platform": platform.platform(), "cpu": cpu_name(), "cores": os.cpu_count()}
    if device.type == "cuda":
        facts["gpu"] = torch.cuda.get_device_name(device)
        facts["cuda"] = torch.version.cuda
    return facts


def cpu_name() -> str:
    """The processor's own name where the system tells it."""
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def git_commit() -> str | None:
    """The commit of the folder the command was started in, with `+changes` where it has uncommitted ones."""
    try:
        commit = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, timeout=5)
        changes = subprocess.run(["git", "status", "--porcelain", "-uno"], capture_output=True, text=True, timeout=5)
    except (OSError, subprocess.TimeoutExpired):
        return None
    if commit.returncode != 0:
        return None
    return commit.stdout.strip() + ("+changes" if changes.stdout.strip() else "")


def _installed(name: str) -> bool:
    try:
        metadata.version(name)
    except metadata.PackageNotFoundError:
        return False
    return True
