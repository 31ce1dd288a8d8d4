"""The environment variables of a rank process."""

from __future__ import annotations

import fcntl
import os
import socket
import struct
import sys
from collections.abc import Mapping, MutableMapping, Sequence

from ranks.engine.distributed.rendezvous.meeting import LOOPBACK
from ranks.engine.liveness.heartbeat import BEATS_VARIABLE
from ranks.engine.liveness.stacks import STACKS_VARIABLE
from ranks.errors import UserError

LAUNCHER_VARIABLES = frozenset(
    [
        *("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"),
        *("GROUP_RANK", "GROUP_WORLD_SIZE", "ROLE_RANK", "ROLE_NAME", "ROLE_WORLD_SIZE"),
        *("RANKS_STORE", "RANKS_ATTEMPT", "RANKS_STARTED_NS", "RANKS_LOCK_FD", "RANKS_ERROR_FILE"),
        *("RANKS_DEVICE", "RANKS_OWNS_GPU", "RANKS_PARENT", BEATS_VARIABLE, STACKS_VARIABLE),
    ]
)
"""Variables that a launcher sets for its ranks. Those of an outer launcher are removed."""
SIOCGIFFLAGS, IFF_UP = 0x8913, 1
"""The request for a network interface's flags, and their bit for an interface that is up (linux/sockios.h, if.h)."""


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


def check_loopback(num_ranks: int) -> None:
    """Raises UserError where several ranks would meet over a loopback interface that is down."""
    if num_ranks > 1 and not _is_up(LOOPBACK):
        asked = f"{num_ranks} ranks on this machine"
        raise UserError(asked, f"its loopback interface {LOOPBACK} is down", f"run: ip link set {LOOPBACK} up")


def _is_up(interface: str) -> bool:
    """Whether a network interface is up; also where the system does not tell (not Linux)."""
    if sys.platform != "linux":
        return True
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as query:
        try:
            answer = fcntl.ioctl(query, SIOCGIFFLAGS, struct.pack("16sH14x", interface.encode(), 0))
        except OSError:
            return True
    return bool(struct.unpack("16sH14x", answer)[1] & IFF_UP)


def place_of_rank(rank: int, devices: Sequence[str]) -> dict[str, str]:
    """The variables that tell a rank its number, how many ranks there are, and its device."""
    size = str(len(devices))
    return {
        "RANK": str(rank),
        "LOCAL_RANK": str(rank),
        "WORLD_SIZE": size,
        "LOCAL_WORLD_SIZE": size,
        "RANKS_DEVICE": devices[rank],
        "RANKS_OWNS_GPU": "1" if devices.count(devices[rank]) == 1 else "0",
    }
