"""Look up a name, for a limited time."""

from __future__ import annotations

import socket
import time
from dataclasses import dataclass
from functools import partial

from ranks.hardware.doctor.limited import within


@dataclass(frozen=True)
class LookedUp:
    """An IPv4 address, or why there is none."""

    address: str
    error: str
    seconds: float


def look_up(host: str, limit_s: float) -> LookedUp:
    """The first IPv4 address of a host. A resolver that does not answer within the limit is left alone."""
    began = time.monotonic()
    none = "", f"no answer within {limit_s:g} s (see /etc/resolv.conf)"
    address, error = within(limit_s, partial(_ask, host)) or none
    return LookedUp(address, error, time.monotonic() - began)


def _ask(host: str) -> tuple[str, str]:
    try:
        found = socket.getaddrinfo(host, None, socket.AF_INET, socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:  # UnicodeError: a name with empty or very long parts
        return "", getattr(error, "strerror", None) or str(error)
    return str(found[0][4][0]), ""
