"""glibc's malloc keeps the buffers of a batch for the next one.

By default it maps each buffer above 32 MiB on its own, and gives freed memory at the end of its heap back at once. Then
the kernel clears the same pages again in every batch: up to a fifth of the CPU time of a training with convolutions.
"""

from __future__ import annotations

import ctypes
import os
from contextlib import suppress

LARGEST_KEPT = 256 * 2**20
"""Larger buffers, such as a data set, still go back to the system when they are freed."""
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
"""Of mallopt (glibc, malloc.h)."""
NEVER = -1
SWITCHES = ("MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_", "GLIBC_TUNABLES")


def keep_freed_memory(largest_bytes: int = LARGEST_KEPT) -> None:
    """Keep freed buffers of up to so many bytes in this process. Nothing changes with another C library, or where one
    of glibc's own environment variables says what to do."""
    if any(name in os.environ for name in SWITCHES):
        return
    with suppress(OSError, AttributeError):  # a C library without mallopt
        libc = ctypes.CDLL(None)
        libc.mallopt(M_MMAP_THRESHOLD, largest_bytes)
        libc.mallopt(M_TRIM_THRESHOLD, NEVER)
