"""What a check is at, for the case that it does not answer."""

from __future__ import annotations

import sys

MARK = "doing: "
"""Begins the line."""


def doing(what: str) -> None:
    """Say in a line on standard error what comes next, such as a folder that a file server may never answer for."""
    print(f"{MARK}{what}", file=sys.stderr, flush=True)
