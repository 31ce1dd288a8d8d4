"""Where the ranks of several hosts meet, and the network interface that they use. Imports no torch."""

from __future__ import annotations

import socket
import sys
from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass

from ranks.errors import UserError

LOOPBACK = "lo0" if sys.platform == "darwin" else "lo"
INTERFACE_VARIABLES = ("GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME")
ADDRESS_OF_INTERFACE = 0x8915
"""SIOCGIFADDR of Linux."""


@dataclass(frozen=True)
class Meeting:
    """A TCPStore at `host`:`port`."""

    host: str
    port: int
    name: str = ""
    """Of the job. Another job that finds the same store does not disturb."""
    served_by_agent: bool = False
    """torchrun's agent serves the store, else rank 0."""

    @classmethod
    def of_torchrun(cls, environ: Mapping[str, str]) -> Meeting:
        """From MASTER_ADDR and MASTER_PORT, as torchrun and launchers like it set them."""
        if not environ.get("MASTER_ADDR"):
            raise UserError(
                "to meet the other ranks", "MASTER_ADDR is not set", "start with torchrun, or set MASTER_ADDR"
            )
        return cls(
            environ["MASTER_ADDR"],
            number(environ, "MASTER_PORT"),
            environ.get("TORCHELASTIC_RUN_ID", ""),
            served_by_agent=environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True",
        )

    @property
    def is_loopback(self) -> bool:
        return self.host in ("localhost", "::1") or self.host.startswith("127.")

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


def use_interface(environ: MutableMapping[str, str], meeting: Meeting | None) -> str:
    """Restrict gloo and NCCL to one network interface; its IPv4 address.

    `meeting`: None where all ranks are on this machine. They then use the loopback interface. On
    several hosts it is the interface that leads to the meeting. Names that the user has set stay.
    Raises UserError where the host of the meeting is unknown, or no interface that others reach leads
    to it.
    """
    named = environ.get(INTERFACE_VARIABLES[0]) or environ.get(INTERFACE_VARIABLES[1])
    if named:
        interface = named.split(",")[0]
    elif meeting is None:
        interface = LOOPBACK
    else:
        interface = _interface_with(_address_towards(meeting), meeting)
    for variable in INTERFACE_VARIABLES:
        environ.setdefault(variable, named or interface)
    return "127.0.0.1" if interface == LOOPBACK else _addresses().get(interface, "")


def _address_towards(meeting: Meeting) -> str:
    """The address of this host from which it reaches the meeting. Nothing is sent."""
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            probe.connect((meeting.host, meeting.port))
            return str(probe.getsockname()[0])
    except OSError as error:
        raise UserError(
            f"to meet the other ranks at {meeting}",
            f"{socket.gethostname()} finds no way to {meeting.host}: {error.strerror or error}",
            "set MASTER_ADDR to a name or an IPv4 address of the host of rank 0 that every host knows",
        ) from error


def _interface_with(address: str, meeting: Meeting) -> str:
    interface = next((name for name, own in _addresses().items() if own == address), LOOPBACK)
    if interface == LOOPBACK:
        raise UserError(
            f"to meet the other ranks at {meeting}",
            f"{socket.gethostname()} reaches {meeting.host} from {address}, which other hosts do not reach",
            "name the network interface: export GLOO_SOCKET_IFNAME=eth0 (see `ip address`), or set MASTER_ADDR",
        )
    return interface


def _addresses() -> dict[str, str]:
    """Interface -> its IPv4 address. Empty on systems other than Linux."""
    if sys.platform != "linux":
        return {}
    import fcntl

    found: dict[str, str] = {}
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        for _, name in socket.if_nameindex():
            request = name.encode()[:15].ljust(40, b"\0")  # struct ifreq
            try:
                answer = fcntl.ioctl(probe, ADDRESS_OF_INTERFACE, request)
            except OSError:  # it has no IPv4 address
                continue
            found[name] = socket.inet_ntoa(answer[20:24])
    return found


def number(environ: Mapping[str, str], name: str, default: int | None = None) -> int:
    """The value of a process variable. Raises UserError where it is no number, or where it is not
    set and there is no default."""
    text = environ.get(name, "" if default is None else str(default))
    try:
        return int(text)
    except ValueError:
        found = f"{name}={text}" if name in environ else f"{name} is not set"
        raise UserError(
            "a place among the ranks", found, f"start with `ranks train`, torchrun or srun, or set {name}"
        ) from None
