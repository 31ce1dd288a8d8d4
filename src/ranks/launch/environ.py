"""The environment variables of a rank."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping

PLACE = frozenset(
    [
        *("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"),
        *("GROUP_RANK", "GROUP_WORLD_SIZE", "ROLE_RANK", "ROLE_NAME", "ROLE_WORLD_SIZE"),
        *("RANKS_STORE", "RANKS_ATTEMPT", "RANKS_STARTED_NS", "RANKS_LOCK_FD", "RANKS_ERROR_FILE"),
        *("RANKS_DEVICE", "RANKS_PARENT"),
    ]
)
"""Variables by which a launcher tells a process its place."""
LOOPBACK = "lo0" if sys.platform == "darwin" else "lo"


def rank_environ(threads: int, *, deterministic: bool, environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """What the ranks of one machine have in common: no trace of another launcher, loopback only, stated threads.

    `deterministic` fixes the workspace of cuBLAS, which must be done before CUDA starts.
    """
    kept = {
        name: value for name, value in environ.items() if name not in PLACE and not name.startswith("TORCHELASTIC_")
    }
    kept |= {
        "GLOO_SOCKET_IFNAME": LOOPBACK,
        "NCCL_SOCKET_IFNAME": LOOPBACK,
        "OMP_NUM_THREADS": str(threads),
        "PYTHONUNBUFFERED": "1",
    }
    kept.setdefault("PYTHONFAULTHANDLER", "1")
    kept.setdefault("CUDA_DEVICE_ORDER", "PCI_BUS_ID")
    if deterministic:
        kept["CUBLAS_WORKSPACE_CONFIG"] = ":4096:8"
    return kept
