"""The kind of a failure, from the error's type and text: pure functions."""

from __future__ import annotations

import builtins
import re

from ranks.engine.distributed.device_errors import device_error
from ranks.errors import GaveUp, ProcessLost, UserError
from ranks.launch.failures.failure import Kind

PEER_LOST = re.compile(
    # gloo prefixes its errors with the place in its sources
    r"gloo[/\\]transport.*(by peer|by remote|[Bb]roken pipe|Connection refused|Timed out waiting|Read error"
    r"|Application timeout caused pair closure|Socket Timeout|Connect timeout|connect: |writev|read)"
    r"|ncclRemoteError|remote process exited|NCCL communicator was aborted|NCCL watchdog|Watchdog caught collective"
    # the TCPStore
    r"|Failed to (recv|send), (got|sent) 0 bytes|client socket has (failed|timed out)"
    # a wait on the store: "wait timeout after 300000ms, keys: ..."
    r"|[Ww]ait timeout after \d+ms, keys",
    re.DOTALL,
)
"""Errors of a rank that lost its connection to another rank (gloo, NCCL and TCPStore of torch 2.11 to 2.13)."""
MISMATCH = re.compile(r"EnforceNotMet[\s\S]*collective mismatch|op\.preamble\.length <= op\.nbytes")
"""gloo got a message of another size than it waits for."""


OS_ERRORS = frozenset(
    name for name, kind in vars(builtins).items() if isinstance(kind, type) and issubclass(kind, OSError)
)
"""Names of OSError and its subclasses."""
CONNECTION_ERRORS = frozenset({"DistNetworkError", "DistStoreError"})
"""Errors of the TCPStore; their text may be that of any failed system call."""


def kind_of_text(type_name: str, text: str) -> Kind:
    """The kind of an exception, from the name of its type (without its module) and its text.

    The libraries behind torch.distributed raise RuntimeError and its subclasses. An OSError comes from the program's
    own files and connections, whatever it says.
    """
    if type_name in OS_ERRORS:
        return "user"
    if type_name in CONNECTION_ERRORS or PEER_LOST.search(text):
        return "peer"
    return "device" if device_error(text) == "fault" else "user"


def kind_of(error: BaseException) -> Kind:
    """Classify an exception. A lost connection is `peer`, also where it caused the exception or came before it."""
    if isinstance(error, UserError):
        return "user_error"
    if isinstance(error, GaveUp):
        return "gave_up"
    if isinstance(error, ProcessLost):
        return "hang" if error.hangs else "signal"
    seen: BaseException | None = error
    while seen is not None:
        if isinstance(seen, RuntimeError) and (kind := kind_of_text(type(seen).__name__, str(seen))) != "user":
            return kind
        seen = seen.__cause__ or seen.__context__
    return "user"
