"""Meet the other nodes at the store of training, step by step, so that what is wrong has a name."""

from __future__ import annotations

import json
import os
import socket
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import timedelta

import torch.distributed as dist

from ranks.engine.distributed.rendezvous.meeting import Meeting, use_interface
from ranks.engine.distributed.rendezvous.rendezvous import tcp_store
from ranks.errors import UserError
from ranks.hardware.doctor.finding import Asked
from ranks.hardware.doctor.limited import within
from ranks.hardware.doctor.listener import listener_of
from ranks.hardware.doctor.look_up import look_up
from ranks.hardware.doctor.nodes.report import NodeReport

NAME_LIMIT_S, STORE_LIMIT_S, POLL_S = 4.0, 4.0, 0.05
ROOM = "doctor"
"""The part of the store that the doctor uses."""


class NotMet(Exception):
    """The nodes do not meet."""

    def __init__(self, found: str, expected: str, do: str) -> None:
        super().__init__(found)
        self.found, self.expected, self.do = found, expected, do


@dataclass(frozen=True)
class Met:
    """What all nodes know after they met."""

    store: dist.Store
    """Of this start alone."""
    token: str
    """Of this start."""
    reports: list[NodeReport]
    """By node."""


def interface_of(meeting: Meeting, node: int) -> str:
    """The address of the interface that gloo and NCCL will use; it is also set for them. Raises NotMet."""
    found = look_up(meeting.host, NAME_LIMIT_S)
    if found.error:
        do = f"echo ADDRESS {meeting.host} >> /etc/hosts, or give the address in --rdzv-endpoint"
        raise NotMet(f"{meeting.host} cannot be looked up: {found.error}", "the address of node 0", do)
    try:
        address = use_interface(os.environ, meeting)
    except UserError as error:
        raise NotMet(error.found, "an interface that leads to the meeting", error.do) from error
    named = os.environ.get("GLOO_SOCKET_IFNAME", "")
    if not address:
        raise NotMet(f"GLOO_SOCKET_IFNAME={named}: no such interface has an IPv4 address", "one of `ip address`",
                     "unset GLOO_SOCKET_IFNAME NCCL_SOCKET_IFNAME")  # fmt: skip
    if node == 0 and not meeting.served_by_agent and found.address != address:
        raise NotMet(
            f"node 0 listens at {address} ({named}), and the others look for it at {meeting.host} ({found.address})",
            "one interface that all nodes reach",
            f"name the interface with {found.address}: export GLOO_SOCKET_IFNAME=NAME (see `ip address`), or unset it",
        )
    return address


def open_store(meeting: Meeting, node: int, address: str, wait_s: float) -> dist.Store:
    """Serve the store, or find the one that is served. Raises NotMet."""
    if node == 0 and not meeting.served_by_agent:
        try:
            return tcp_store(meeting, 0, address, wait_s)
        except (OSError, dist.DistNetworkError, dist.DistStoreError) as error:
            raise _taken(meeting, address, error) from error
    _connect(meeting, wait_s)
    store = _store_at(meeting.host, meeting.port)
    if store is None:
        raise NotMet(
            f"what answers at {meeting} is no store: another program has the port on {meeting.host}",
            "the store of node 0",
            f"on {meeting.host}: ss -ltnp 'sport = :{meeting.port}'; end it, or take another port on all nodes",
        )
    return store


def _store_at(host: str, port: int) -> dist.Store | None:
    """The store that another process serves; None where something else answers, or nothing."""

    def ask() -> dist.Store | None:
        try:
            return dist.TCPStore(host, port, timeout=timedelta(seconds=STORE_LIMIT_S))
        except (OSError, RuntimeError):
            return None

    return within(STORE_LIMIT_S, ask)  # torch itself waits for ever for a program that accepts and is silent


def _taken(meeting: Meeting, address: str, error: Exception) -> NotMet:
    """Why node 0 cannot serve the store."""
    number = error.errno if isinstance(error, OSError) else None
    problem = os.strerror(number) if number else str(error).partition("\n")[0]
    who = listener_of(meeting.port)
    kind = f"by {who}" if who else "by a process of another user or container"
    store = _store_at(address, meeting.port)
    kind += ", which is no store" if store is None else f", the store of another run ({store.num_keys()} keys)"
    pid = who.partition("(")[2].rstrip(")")
    do = f"end it ({f'kill {pid}' if pid else 'ss -ltnp'}), or take another port on all nodes"
    return NotMet(f"port {meeting.port} of node 0 is taken {kind}: {problem}", "a free port", do)


def _connect(meeting: Meeting, wait_s: float) -> None:
    """Wait until something accepts connections at the meeting. Raises NotMet."""
    deadline = time.monotonic() + wait_s
    while True:
        try:
            socket.create_connection((meeting.host, meeting.port), timeout=min(wait_s, STORE_LIMIT_S)).close()
            return
        except OSError as error:
            problem = error.strerror or str(error)
        if time.monotonic() > deadline:
            break
        time.sleep(POLL_S)
    do = f"start ranks doctor on node 0; there: ufw allow from THIS_ADDRESS to any port {meeting.port} proto tcp"
    raise NotMet(f"node 0 does not answer at {meeting} within {wait_s:g} s: {problem}", "an open port on node 0", do)


def meet(store: dist.Store, asked: Asked, report: Callable[[str], NodeReport], nonce: str) -> Met:
    """Exchange reports. Node 0 names the start by a token, the others answer to it, and node 0 lists the answers; a
    node that finds its own nonce in the list has found its start. Raises NotMet. `report`: of this node, by its nonce.
    """
    shared = dist.PrefixStore(f"{ROOM}/{asked.meeting_name}", store)
    mine, deadline = json.dumps(asdict(report(nonce))), time.monotonic() + asked.wait_s
    if asked.node == 0:
        shared.set(f"{nonce}/0", mine)
        shared.set("start", nonce)
        keys = {node: f"{nonce}/{node}" for node in range(asked.nodes)}
        missing = [*keys]
        while missing and time.monotonic() < deadline:
            missing = [node for node in missing if not shared.check([keys[node]])]
            time.sleep(POLL_S if missing else 0)
        if missing:
            raise _missing(missing, asked)
        shared.set(f"{nonce}/all", json.dumps([shared.get(key).decode() for key in keys.values()]))
        return _met(shared, nonce)
    answered = ""
    while time.monotonic() < deadline:
        start = shared.get("start").decode() if shared.check(["start"]) else ""
        if start and start != answered:
            shared.set(f"{start}/{asked.node}", mine)
            answered = start
        if answered and shared.check([f"{answered}/all"]) and nonce in shared.get(f"{answered}/all").decode():
            return _met(shared, answered)
        time.sleep(POLL_S)
    if answered:
        raise NotMet("node 0 waits for other nodes", f"all {asked.nodes} nodes", "look at what node 0 says")
    raise NotMet(
        f"a store answers at {asked.meeting}, but node 0 has written nothing there within {asked.wait_s:g} s: it is "
        "the store of another run, or of another machine",
        "the store of node 0",
        f"look at what node 0 says; on {asked.meeting.rpartition(':')[0]}: ss -ltnp; end the old run, or take another "
        "port on all nodes",
    )


def _missing(missing: list[int], asked: Asked) -> NotMet:
    names = ", ".join(map(str, missing[:8])) + (", ..." if len(missing) > 8 else "")
    found = f"{asked.nodes - len(missing)} of {asked.nodes} nodes came to {asked.meeting} within {asked.wait_s:g} s"
    do = f"look at what node {missing[0]} says: it runs ranks doctor --nodes {asked.nodes} --node-rank {missing[0]}"
    return NotMet(f"{found}; missing: {names}", f"{asked.nodes} nodes", f"{do} --rdzv-endpoint {asked.meeting}")


def _met(shared: dist.Store, token: str) -> Met:
    texts: list[str] = json.loads(shared.get(f"{token}/all"))
    return Met(dist.PrefixStore(token, shared), token, [NodeReport.of_json(json.loads(text)) for text in texts])
