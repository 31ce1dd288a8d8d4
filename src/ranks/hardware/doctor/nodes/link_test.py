"""One TCP link between two nodes: round trips, the difference of the clocks, and bytes a second in both directions.

    client ── control ──► server     pings; then the results of each direction
           ── block ────► server     a block there and back: packets as long as they come, or else short ones only
           ── data ─────► server     the server reads for a while, and says how fast they came
           ◄──── data ──             the client reads for a while

Every connection begins with the token of this start, so that other programs that connect are ignored.
"""

from __future__ import annotations

import json
import select
import socket
import statistics
import struct
import threading
import time
from contextlib import suppress
from dataclasses import dataclass

PINGS, PING_S = 300, 0.8
"""At most so many, for so long."""
WARM_S, READ_S = 0.15, 0.5
"""Before and while the bytes are counted: TCP begins slowly, and a shaped link lets the first ones through."""
STEP_S, CONNECT_S = 4.0, 2.5
"""The longest wait for the other node in one step, and for a connection: TCP asks again after one second."""
CHUNK = bytes(1 << 18)
BLOCK, BLOCK_S, SHORT = bytes(1 << 14), 1.5, 536
"""Sent there and back, for so long at most; then in packets of this payload, which every network carries."""
ANSWER = struct.Struct("d8x")
PING, LAST_PING = b"p" * ANSWER.size, b"x" * ANSWER.size


@dataclass(frozen=True)
class LinkTest:
    """From node `first` to node `second` and back."""

    first: int
    second: int
    error: str = ""
    round_trip_s: float = 0.0
    clock_s: float = 0.0
    """The clock of the second node, less that of the first."""
    there_bytes_per_s: float = 0.0
    back_bytes_per_s: float = 0.0
    retransmitted: float = 0.0
    """Share of the small packets, one at a time, that were sent again. A full link loses some packets; an idle one
    should lose none."""
    only_short_packets: bool = False
    """A block arrives in short packets only: something between the nodes drops long ones."""


class LinkServer:
    """Answers the previous node, in a thread."""

    def __init__(self, address: str) -> None:
        self.listener = socket.create_server((address, 0))
        self.port: int = self.listener.getsockname()[1]

    def start(self, token: str) -> None:
        threading.Thread(target=self._serve, args=(token.encode(),), daemon=True).start()

    def _serve(self, token: bytes) -> None:
        with suppress(OSError, ValueError), self.listener, self._accept(token) as control:
            while _read(control, ANSWER.size) != LAST_PING:
                control.sendall(ANSWER.pack(time.time()))
            again, packets = _counters(control)
            _say(control, {"again": again, "packets": packets})
            if not self._echo(token) and not self._echo(token):
                return
            _say(control, {"rate": count(self._accept(token))})
            flood(self._accept(token), control)

    def _echo(self, token: bytes) -> bool:
        """Return a block; whether the other side then says that it has it."""
        try:
            with self._accept(token) as block:
                block.settimeout(BLOCK_S)
                block.sendall(_read(block, len(BLOCK)))
                return _read(block, 1) == b"\n"
        except OSError:
            return False

    def _accept(self, token: bytes) -> socket.socket:
        """The next connection that knows the token."""
        while True:
            connection, _ = self.listener.accept()
            connection.settimeout(STEP_S)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with suppress(OSError):
                if _read(connection, len(token)) == token:
                    return connection
            connection.close()


def measure_link(first: int, second: int, address: str, port: int, token: str) -> LinkTest:
    """Measure the link to another node's server."""
    try:
        with _connect(address, port, token) as control:
            round_trip_s, clock_s = _pings(control)
            again, packets = _counters(control)
            theirs = _hear(control)
            if not _block_returns(address, port, token):
                short = _block_returns(address, port, token, SHORT)
                problem = f"of {len(BLOCK):,} bytes nothing came back in {BLOCK_S:g} s, but pings did"
                return LinkTest(first, second, f"{address} port {port}: {problem}", only_short_packets=short)
            flood(_connect(address, port, token), control)
            there = _hear(control)["rate"]
            back = count(_connect(address, port, token))
            control.sendall(b"\n")
    except (OSError, ValueError) as error:
        problem = getattr(error, "strerror", None) or str(error)
        return LinkTest(first, second, f"{address} port {port}: {problem}")
    lost = (again + theirs["again"]) / (packets + theirs["packets"])
    return LinkTest(first, second, "", round_trip_s, clock_s, there, back, lost)


def _block_returns(address: str, port: int, token: str, payload: int | None = None) -> bool:
    """Whether a block that is sent comes back; `payload`: in packets of so many bytes at most."""
    try:
        with _connect(address, port, token, payload) as block:
            block.settimeout(BLOCK_S)
            block.sendall(BLOCK)
            _read(block, len(BLOCK))
            block.sendall(b"\n")
            return True
    except OSError:
        return False


def _connect(address: str, port: int, token: str, payload: int | None = None) -> socket.socket:
    connection = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    connection.settimeout(CONNECT_S)
    if payload is not None:  # the other side then sends packets of this size too
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, payload)
    try:
        connection.connect((address, port))
    except OSError:
        connection.close()
        raise
    connection.settimeout(STEP_S)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.sendall(token.encode())
    return connection


def _pings(control: socket.socket) -> tuple[float, float]:
    """The median round trip, and how far the other clock is ahead, by the fastest round trip."""
    trips: list[tuple[float, float]] = []
    began = time.monotonic()
    while len(trips) < PINGS and time.monotonic() - began < PING_S:
        wall, start = time.time(), time.monotonic()
        control.sendall(PING)
        (theirs,) = ANSWER.unpack(_read(control, ANSWER.size))
        trip_s = time.monotonic() - start
        trips.append((trip_s, theirs - wall - trip_s / 2))
    control.sendall(LAST_PING)
    return statistics.median(trip for trip, _ in trips), min(trips)[1]


def flood(data: socket.socket, control: socket.socket) -> None:
    """Send until the other side has counted enough, which it says on `control`. Closes `data`."""
    with data:
        _flood(data, control)


def _flood(data: socket.socket, control: socket.socket) -> None:
    data.setblocking(False)
    deadline = time.monotonic() + STEP_S
    while time.monotonic() < deadline:
        heard, writable, _ = select.select([control], [data], [], 0.1)
        if heard:
            break
        if writable:
            try:
                data.send(CHUNK)
            except ConnectionError:  # the other side has counted enough
                break


def count(data: socket.socket) -> float:
    """Bytes a second that arrive, after a while. Closes `data`."""
    with data:
        return _count(data)


def _count(data: socket.socket) -> float:
    buffer, counted = bytearray(1 << 20), 0
    size = data.recv_into(buffer)
    began = time.monotonic()
    counting, now = began, began
    while size and now - began < WARM_S + READ_S:
        size = data.recv_into(buffer)
        now = time.monotonic()
        if counting == began:
            counting = now if now - began > WARM_S else began
        else:
            counted += size
    data.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # what is on its way is dropped
    return counted / (now - counting) if now > counting > began else 0.0


def _counters(connection: socket.socket) -> tuple[int, int]:
    """Packets that were sent again, and all that were sent (struct tcp_info of Linux)."""
    info = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 144)
    return struct.unpack_from("I", info, 100)[0], struct.unpack_from("I", info, 136)[0]


def _say(control: socket.socket, found: dict[str, float]) -> None:
    control.sendall(json.dumps(found).encode() + b"\n")


def _hear(control: socket.socket) -> dict[str, float]:
    line = b""
    while not line.endswith(b"\n"):
        line += _read(control, 1)
    return json.loads(line)


def _read(connection: socket.socket, size: int) -> bytes:
    """Exactly so many bytes. Raises OSError where the connection ends before."""
    found = b""
    while len(found) < size:
        part = connection.recv(size - len(found))
        if not part:
            raise ConnectionError("the other node closed the connection")
        found += part
    return found
