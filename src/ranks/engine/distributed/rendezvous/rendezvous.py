"""The store through which the ranks of a run find each other."""

from __future__ import annotations

import os
import socket
import time
import uuid
from datetime import timedelta

import torch.distributed as dist

from ranks.engine.distributed.rendezvous.meeting import Meeting, use_interface
from ranks.engine.distributed.rendezvous.process_env import ProcessEnv
from ranks.errors import UserError

MEET_S = 300.0
"""How long ranks wait for each other."""
POLL_S = 0.05


def store_of(process_env: ProcessEnv, wait_s: float = MEET_S) -> dist.Store:
    """The store for the process group of these ranks. Nothing of an earlier start is in it.

    It also restricts gloo and NCCL to one network interface. On one machine of ours and of Slurm it is
    a file, so no port is opened. Raises UserError where the ranks do not find each other.
    """
    address = use_interface(os.environ, None if process_env.one_host else process_env.meeting)
    if process_env.store is not None:
        process_env.store.parent.mkdir(parents=True, exist_ok=True)
        return dist.FileStore(str(process_env.store), process_env.world_size)
    meeting = process_env.meeting
    assert meeting is not None, "ranks have a file or a TCPStore"
    rank, size = process_env.rank, process_env.world_size
    try:
        store = tcp_store(meeting, rank, address, wait_s)
        return _of_this_start(dist.PrefixStore(f"ranks/{meeting.name}", store), rank, size, wait_s)
    except (dist.DistNetworkError, dist.DistStoreError, OSError) as error:
        problem = str(error).partition("\n")[0]
        raise UserError(
            f"rank {rank} of {size} on {socket.gethostname()} to meet the others at {meeting}",
            problem,
            "look first at the output of the other ranks; the host of rank 0 must accept connections to that "
            "port: set MASTER_ADDR, MASTER_PORT or GLOO_SOCKET_IFNAME",
        ) from error


def tcp_store(meeting: Meeting, rank: int, address: str, wait_s: float) -> dist.Store:
    """The store at a meeting. Rank 0 serves it, on this one address only, unless torchrun does. Raises UserError, and
    OSError or an error of torch where the port is taken or nobody answers."""
    if rank > 0 or meeting.served_by_agent:
        return dist.TCPStore(meeting.host, meeting.port, timeout=timedelta(seconds=wait_s))
    if not address:
        raise UserError(
            f"GLOO_SOCKET_IFNAME={os.environ['GLOO_SOCKET_IFNAME']}",
            f"{socket.gethostname()} has no such network interface with an IPv4 address",
            "name one of `ip address`",
        )
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((address, meeting.port))
        listener.listen(1024)
        return dist.TCPStore(
            address,
            meeting.port,
            is_master=True,
            timeout=timedelta(seconds=wait_s),
            wait_for_workers=False,
            master_listen_fd=listener.detach(),
        )


def _of_this_start(store: dist.Store, rank: int, size: int, wait_s: float) -> dist.Store:
    """A part of the store that only the ranks of this start use.

    torchrun keeps one store for all its restarts, and gloo would read in it the addresses of ranks
    that have ended. The number of the restart does not tell the starts apart, because agents count
    for themselves. So rank 0 writes a new token, the others answer to it with tokens of their own, and
    rank 0 lists the answers. A rank that finds its own token in the list has found its start.
    """
    mine, deadline = uuid.uuid4().hex, time.monotonic() + wait_s
    if rank == 0:
        store.set("start", mine)
        answers = [store.get(f"{mine}/{other}").decode() for other in range(1, size)]
        store.set(f"{mine}/all", " ".join(answers))
        return dist.PrefixStore(mine, store)
    answered = ""
    while True:
        start = store.get("start").decode()
        if start != answered:
            store.set(f"{start}/{rank}", mine)
            answered = start
        if store.check([f"{start}/all"]) and mine in store.get(f"{start}/all").decode().split():
            return dist.PrefixStore(start, store)
        if time.monotonic() > deadline:
            raise dist.DistStoreError(f"no answer from rank 0 within {wait_s:g} s")
        time.sleep(POLL_S)
