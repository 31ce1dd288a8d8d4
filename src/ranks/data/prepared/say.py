"""Lines about prepared data, on standard error."""

from __future__ import annotations

import sys


def say(text: str) -> None:
    """Print one line on standard error, with the prefix of this package."""
    print(f"ranks: {text}", file=sys.stderr, flush=True)
