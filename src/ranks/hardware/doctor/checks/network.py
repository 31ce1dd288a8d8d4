"""The loopback interface, the name of this machine, the place of the meeting, and the interfaces that are named."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from dataclasses import dataclass, field

import psutil

from ranks.engine.distributed.rendezvous.meeting import INTERFACE_VARIABLES, LOOPBACK
from ranks.hardware.doctor.finding import Asked, Finding, failure, note, ok, warning
from ranks.hardware.doctor.listener import listener_of
from ranks.hardware.doctor.look_up import look_up

SLOW_NAME_S, NAME_LIMIT_S = 1.0, 4.0
"""Seconds of a look-up that are slow, and after which it is given up."""


@dataclass(frozen=True)
class NetworkFacts:
    """What answered."""

    loopback_error: str = ""
    host: str = ""
    name_error: str = ""
    name_s: float = 0.0
    """Seconds to look up the name of this machine."""
    interfaces: list[str] = field(default_factory=list[str])
    """Those that are up."""
    named: dict[str, str] = field(default_factory=dict[str, str])
    """Process variables that name an interface."""
    meeting: str = ""
    """MASTER_ADDR:MASTER_PORT, where they are set."""
    meeting_error: str = ""
    listener: str = ""
    """The process that has the port of the meeting."""


def measure(asked: Asked) -> NetworkFacts:
    """Connect to ourselves, look up names, take the port of the meeting for a moment."""
    host = socket.gethostname()
    own = look_up(host, NAME_LIMIT_S)
    up = sorted(name for name, state in psutil.net_if_stats().items() if state.isup)
    named = {variable: os.environ[variable] for variable in INTERFACE_VARIABLES if os.environ.get(variable)}
    meeting = asked.meeting
    if not meeting and os.environ.get("MASTER_ADDR") and os.environ.get("MASTER_PORT"):
        meeting = f"{os.environ['MASTER_ADDR']}:{os.environ['MASTER_PORT']}"
    serves = not asked.served_by_agent and (asked.node if asked.meeting else os.environ.get("RANK", "0")) in (0, "0")
    error, listener = _meeting(meeting, serves=serves) if meeting else ("", "")
    return NetworkFacts(_loopback(), host, own.error, own.seconds, up, named, meeting, error, listener)


def _loopback() -> str:
    """Send a byte from this process to itself; what is wrong with that, or an empty text."""
    try:
        with socket.create_server(("127.0.0.1", 0)) as server:
            server.settimeout(2.0)
            with socket.create_connection(server.getsockname(), timeout=2.0) as client:
                accepted, _ = server.accept()
                with accepted:
                    client.sendall(b"x")
                    accepted.settimeout(2.0)
                    return "" if accepted.recv(1) == b"x" else "what was sent did not arrive"
    except OSError as error:
        return error.strerror or str(error)


def _meeting(meeting: str, *, serves: bool) -> tuple[str, str]:
    """What is wrong with the meeting of the ranks, and who has its port if this host is to serve it."""
    host, _, port = meeting.rpartition(":")
    found = look_up(host, NAME_LIMIT_S)
    if found.error:
        return f"{host} cannot be looked up: {found.error}", ""
    if not port.isdecimal() or not 0 < int(port) < 65_536:
        return f"{port} is no port", ""
    ours = {one.address for all_of in psutil.net_if_addrs().values() for one in all_of}
    if found.address not in ours or not serves:
        return "", ""
    try:
        socket.create_server(("", int(port))).close()
    except OSError as error:
        problem = os.strerror(error.errno) if error.errno else str(error)
        return f"port {port}: {problem}", listener_of(int(port))
    return "", ""


def judge(facts: NetworkFacts, asked: Asked) -> Iterator[Finding]:
    """The ranks of one machine need the loopback interface; those of several need names and a free port."""
    if facts.loopback_error:
        found = f"127.0.0.1: {facts.loopback_error}"
        yield failure("loopback", found, "a connection of this process to itself", f"ip link set {LOOPBACK} up")
    else:
        yield ok("loopback", "127.0.0.1 answers")
    for variable, value in facts.named.items():
        missing = [name for name in value.lstrip("^=").split(",") if name and not _is_up(name, facts, variable)]
        if missing:
            found = f"{variable}={value}: no interface {', '.join(missing)} is up"
            expected = f"one of {', '.join(facts.interfaces)}"
            yield failure("interface", found, expected, f"unset {variable}, or export {variable}=NAME")
        elif len(facts.named) == 2 and len({*facts.named.values()}) == 2 and variable == INTERFACE_VARIABLES[0]:
            yield note("interface", f"{facts.named}: gloo and NCCL use different interfaces")
    if facts.name_error:
        found = f"the name of this machine, {facts.host}: {facts.name_error}"
        yield warning("host name", found, "an address", f"echo 127.0.1.1 {facts.host} >> /etc/hosts")
    elif facts.name_s > SLOW_NAME_S:
        found = f"{facts.host} took {facts.name_s:.1f} s to look up"
        yield warning("host name", found, "milliseconds", f"echo 127.0.1.1 {facts.host} >> /etc/hosts")
    else:
        yield ok("host name", facts.host)
    if facts.meeting_error:
        who = f", taken by {facts.listener}" if facts.listener else ""
        host = facts.meeting.rpartition(":")[0]
        do = (
            "take another port on all machines (MASTER_PORT=29501, --rdzv-endpoint HOST:29501), or end that process"
            if "port" in facts.meeting_error
            else f"echo ADDRESS {host} >> /etc/hosts, or give the address in place of {host}"
        )
        yield failure("meeting", f"{facts.meeting}: {facts.meeting_error}{who}", "a free port of a known host", do)


def _is_up(name: str, facts: NetworkFacts, variable: str) -> bool:
    """NCCL takes the beginning of a name, and what follows ^ is left out."""
    if variable.startswith("NCCL") and not facts.named[variable].startswith("="):
        return facts.named[variable].startswith("^") or any(up.startswith(name) for up in facts.interfaces)
    return name in facts.interfaces
