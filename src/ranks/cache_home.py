"""The folder for caches of this user."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


def cache_home() -> Path:
    """$XDG_CACHE_HOME or ~/.cache; in the system's temporary folder for a user without a home, as in some
    containers."""
    given = os.environ.get("XDG_CACHE_HOME")
    try:
        return Path(given) if given else Path.home() / ".cache"
    except RuntimeError:
        return Path(tempfile.gettempdir()) / f"cache-{os.geteuid()}"
