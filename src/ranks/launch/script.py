"""`ranks launch SCRIPT`: run a script written for torchrun under this launcher. The one file here that imports torch.

The ranks meet in a TCPStore of the launcher, bound to 127.0.0.1, a new one for each attempt. torchrun's own store
listens on all interfaces and is kept for all attempts, so that gloo then finds the addresses of ranks that have ended.
"""

from __future__ import annotations

import contextlib
import socket
import sys
import uuid
from collections.abc import Generator, Mapping, Sequence
from pathlib import Path

from ranks.errors import UserError
from ranks.launch.env_vars import check_loopback, rank_env_vars
from ranks.launch.gpus import Gpus, find_gpus
from ranks.launch.output import Channel
from ranks.launch.placement import Placement, place
from ranks.launch.supervision.config import HangRules, LaunchConfig
from ranks.launch.supervision.supervise import Supervisor


def launch_script(
    script: Path,
    args: Sequence[str] = (),
    *,
    gpus: str | None = None,
    ranks: int | None = None,
    max_restarts: int = 3,
    hangs: HangRules | None = None,
) -> int:
    """Run `script args` as ranks until all end well. After a failure start all again, at most `max_restarts` times.

    Exit codes: 0; 1 failed with `max_restarts` 0; 3 gave up; 130/143 stopped by a signal. All ranks print to the
    terminal. The traceback of each failure is printed once. Raises UserError.
    """
    if not script.is_file():
        raise UserError(f"launch {script}", "there is no such file", "give the path of a Python script")
    if max_restarts < 0:
        raise UserError(f"--max-restarts {max_restarts}", "it is below zero", "give 0 or more")
    found = find_gpus() if gpus != "none" else Gpus(0)
    placement = place(gpus, ranks, found=found)
    check_loopback(placement.ranks)
    if placement.note is not None:
        _say(placement.note)
    env = rank_env_vars(placement.threads, deterministic=False) | {
        "GROUP_RANK": "0",
        "GROUP_WORLD_SIZE": "1",
        "ROLE_NAME": "default",
        "ROLE_WORLD_SIZE": str(placement.ranks),
        "TORCHELASTIC_RUN_ID": uuid.uuid4().hex,
        "TORCHELASTIC_MAX_RESTARTS": str(max_restarts),
        "TORCHELASTIC_USE_AGENT_STORE": "True",
    }
    config = LaunchConfig(
        (sys.executable, str(script), *args),
        placement.devices,
        env,
        _tcp_store,
        own_env=gpus_of_script(placement, found),
        shown=frozenset(range(placement.ranks)),
        max_restarts=max_restarts,
        foreign=True,
        hangs=hangs or HangRules(),
    )
    supervisor = Supervisor(config, say=_say, show=_show)
    code = supervisor.run()
    if supervisor.last_line:
        _say(supervisor.last_line)
    return code


def gpus_of_script(placement: Placement, found: Gpus) -> tuple[dict[str, str], ...]:
    """The GPUs that each rank sees, such that `cuda:LOCAL_RANK` is its own.

    Where ranks share a GPU, or the GPUs are MIG slices, each rank sees one GPU and has LOCAL_RANK 0, as under
    `torchrun --virtual-local-rank`.
    """
    if placement.only:
        entries = placement.only
    else:
        entries = tuple(found.physical(int(d.removeprefix("cuda:"))) for d in placement.devices if d != "cpu")
    if placement.only or len(set(entries)) < len(entries):
        return tuple({"CUDA_VISIBLE_DEVICES": entry, "LOCAL_RANK": "0"} for entry in entries)
    return ({"CUDA_VISIBLE_DEVICES": ",".join(entries)},) * placement.ranks


@contextlib.contextmanager
def _tcp_store(attempt: int, private: Path) -> Generator[Mapping[str, str]]:
    """The store of this attempt, on a free port of the loopback interface."""
    from torch._C._distributed_c10d import TCPStore

    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(128)
        port: int = listener.getsockname()[1]
        store = TCPStore("127.0.0.1", port, None, True, wait_for_workers=False, master_listen_fd=listener.detach())
    yield {
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
        "TORCHELASTIC_RESTART_COUNT": str(attempt),
    }
    del store


def _say(text: str) -> None:
    print(f"ranks: {text}", file=sys.stderr, flush=True)


def _show(rank: int, channel: Channel, text: str) -> None:
    stream = sys.stdout if channel == "out" else sys.stderr
    stream.write(text)
    stream.flush()
