"""The loopback interface, the name of this machine, and what the process variables say of the network."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

import psutil

from ranks.engine.distributed.meeting import INTERFACE_VARIABLES, LOOPBACK
from ranks.hardware.doctor.finding import Asked, Finding, failure, note, ok, warning

SLOW_NAME_S = 1.0


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
    name_s, name_error = _look_up(host)
    up = sorted(name for name, state in psutil.net_if_stats().items() if state.isup)
    named = {variable: os.environ[variable] for variable in INTERFACE_VARIABLES if os.environ.get(variable)}
    address, port = os.environ.get("MASTER_ADDR", ""), os.environ.get("MASTER_PORT", "")
    error, listener = "", ""
    if address and port:
        error, listener = _meeting(address, port)
    meeting = f"{address}:{port}" if address and port else ""
    return NetworkFacts(_loopback(), host, name_error, name_s, up, named, meeting, error, listener)


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


def _look_up(host: str) -> tuple[float, str]:
    began = time.monotonic()
    try:
        socket.getaddrinfo(host, None)
    except OSError as error:
        return time.monotonic() - began, error.strerror or str(error)
    return time.monotonic() - began, ""


def _meeting(address: str, port: str) -> tuple[str, str]:
    """What is wrong with the meeting of the ranks, and who has its port if this host is to serve it."""
    try:
        where = socket.getaddrinfo(address, int(port), socket.AF_INET, socket.SOCK_STREAM)[0][4]
    except (OSError, ValueError, OverflowError) as error:
        return f"{address} cannot be looked up: {getattr(error, 'strerror', None) or error}", ""
    ours = {one.address for all_of in psutil.net_if_addrs().values() for one in all_of}
    if where[0] not in ours or os.environ.get("RANK", "0") != "0":
        return "", ""
    try:
        socket.create_server(("", int(port))).close()
    except OSError as error:
        return f"port {port}: {error.strerror}", _listener(int(port))
    return "", ""


def _listener(port: int) -> str:
    try:
        connections = psutil.net_connections("tcp")
    except (psutil.Error, OSError):
        return ""
    pids = [c.pid for c in connections if c.status == psutil.CONN_LISTEN and c.laddr and c.laddr.port == port and c.pid]
    if not pids:
        return ""
    try:
        return f"{psutil.Process(pids[0]).name()} ({pids[0]})"
    except psutil.Error:
        return str(pids[0])


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
        found = f"{facts.host}: {facts.name_error}"
        yield warning("host name", found, "an address", f"echo 127.0.1.1 {facts.host} >> /etc/hosts")
    elif facts.name_s > SLOW_NAME_S:
        found = f"{facts.host} took {facts.name_s:.1f} s to look up"
        yield warning("host name", found, "milliseconds", f"echo 127.0.1.1 {facts.host} >> /etc/hosts")
    else:
        yield ok("host name", facts.host)
    if facts.meeting_error:
        who = f", taken by {facts.listener}" if facts.listener else ""
        do = (
            "export MASTER_PORT=29501 on all machines, or end that process"
            if "port" in facts.meeting_error
            else ("export MASTER_ADDR=ADDRESS of the first machine")
        )
        yield failure("meeting", f"{facts.meeting}: {facts.meeting_error}{who}", "a free port of a known host", do)


def _is_up(name: str, facts: NetworkFacts, variable: str) -> bool:
    """NCCL takes the beginning of a name, and what follows ^ is left out."""
    if variable.startswith("NCCL") and not facts.named[variable].startswith("="):
        return facts.named[variable].startswith("^") or any(up.startswith(name) for up in facts.interfaces)
    return name in facts.interfaces
