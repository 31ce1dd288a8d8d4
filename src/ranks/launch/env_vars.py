"""The environment variables of a rank process."""

from __future__ import annotations

import os
from collections.abc import Mapping, MutableMapping

from ranks.engine.distributed.meeting import LOOPBACK

LAUNCHER_VARIABLES = frozenset(
    [
        *("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"),
        *("GROUP_RANK", "GROUP_WORLD_SIZE", "ROLE_RANK", "ROLE_NAME", "ROLE_WORLD_SIZE"),
        *("RANKS_STORE", "RANKS_ATTEMPT", "RANKS_STARTED_NS", "RANKS_LOCK_FD", "RANKS_ERROR_FILE"),
        *("RANKS_DEVICE", "RANKS_PARENT"),
    ]
)
"""Variables that a launcher sets for its ranks. Those of an outer launcher are removed."""


def rank_env_vars(threads: int, *, deterministic: bool, environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The environment variables that all ranks of this machine share.

    Variables of an outer launcher are removed, gloo and NCCL use the loopback interface, `threads` becomes
    OMP_NUM_THREADS.
    """
    variables = {
        name: value
        for name, value in environ.items()
        if name not in LAUNCHER_VARIABLES and not name.startswith("TORCHELASTIC_")
    }
    variables |= {
        "GLOO_SOCKET_IFNAME": LOOPBACK,
        "NCCL_SOCKET_IFNAME": LOOPBACK,
        "OMP_NUM_THREADS": str(threads),
        "PYTHONUNBUFFERED": "1",
    }
    variables.setdefault("PYTHONFAULTHANDLER", "1")
    set_cuda_defaults(variables, deterministic=deterministic)
    return variables


def set_cuda_defaults(variables: MutableMapping[str, str], *, deterministic: bool) -> None:
    """What must be set before CUDA starts in a process. Values of the user stay.

    GPUs have the order of the PCI bus, as in `--gpus` and nvidia-smi. `deterministic` fixes the workspace of cuBLAS.
    """
    variables.setdefault("CUDA_DEVICE_ORDER", "PCI_BUS_ID")
    if deterministic:
        variables.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")


def set_allocator_defaults(variables: MutableMapping[str, str]) -> None:
    """Let torch's CUDA memory grow in place, so that batches of changing sizes do not fragment it. Not for scripts of
    others. Values of the user stay.
    """
    if "PYTORCH_CUDA_ALLOC_CONF" not in variables:  # the old name of the same variable, which torch reads first
        variables.setdefault("PYTORCH_ALLOC_CONF", "expandable_segments:True")
