"""Triton kernels, where they run. Elsewhere plain torch computes the same.

Triton comes with torch for CUDA. It compiles a launcher with the machine's C compiler and Python's headers, which a
rented machine may lack.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any

import torch


def load_kernels(module: str, device: torch.device, attempt: Callable[[Any], object]) -> ModuleType | None:
    """The module with the kernels, or None: no CUDA, no Triton, or `attempt(module)`, which runs one, fails. Then the
    first rank of a machine says so on stderr."""
    if device.type != "cuda" or find_spec("triton") is None:
        return None
    try:
        kernels = import_module(module)
        attempt(kernels)
        torch.cuda.synchronize(device)
    except Exception as error:  # a compiler's errors have many types
        if os.environ.get("LOCAL_RANK", "0") == "0":
            cause = (str(error).strip() or type(error).__name__).splitlines()[-1]  # a compiler's begin with its source
            print(f"warning: Triton cannot run here, plain torch is slower: {cause}", file=sys.stderr, flush=True)
        return None
    return kernels
