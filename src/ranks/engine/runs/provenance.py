"""Where results come from: versions, hardware, commit. Kept in run.json."""

from __future__ import annotations

import os
import platform
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import torch

from ranks.engine.runs.code import package_version


def versions() -> dict[str, str]:
    return {
        "ranks": package_version().removeprefix("ranks "),
        "torch": torch.__version__,
        "numpy": np.__version__,
        "python": platform.python_version(),
    }


def hardware(device: torch.device) -> dict[str, Any]:
    found: dict[str, Any] = {"platform": platform.platform(), "cpu": cpu_name(), "cores": os.cpu_count()}
    if device.type == "cuda":
        found["gpu"] = torch.cuda.get_device_name(device)
        found["cuda"] = torch.version.cuda
    return found


def cpu_name() -> str:
    """The processor's model name, where the system gives it."""
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def git_commit() -> str | None:
    """The commit of the current folder, with `+changes` where it has uncommitted changes outside of
    folders named `results`; None outside git."""
    return _commit(Path.cwd())


def source_commit() -> str | None:
    """The commit of this package's own source, in the same form; None where the package is
    installed without git."""
    here = Path(__file__).resolve()
    return _commit(here.parent) if _git(here.parent, "ls-files", "--error-unmatch", here.name) is not None else None


def _commit(folder: Path) -> str | None:
    commit = _git(folder, "rev-parse", "HEAD")
    changes = _git(folder, "status", "--porcelain", "-uno", "--", ":(top)", ":(top,exclude,glob)**/results/**")
    return None if commit is None else commit + ("+changes" if changes else "")


def _git(folder: Path, *arguments: str) -> str | None:
    """The output of a git command; None where it fails or git is missing."""
    try:
        ended = subprocess.run(["git", *arguments], cwd=folder, capture_output=True, text=True, timeout=5)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return ended.stdout.strip() if ended.returncode == 0 else None
