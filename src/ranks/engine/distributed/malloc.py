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
MOST_OF_OLD_GLIBC = 32 * 2**20
"""Older versions (2.30 for example) refuse a higher limit for maps of their own. To set M_TRIM_THRESHOLD alone would
freeze the limit where it is, at 128 KiB in a new process, and map every larger buffer on its own."""
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
"""Of mallopt (glibc, malloc.h)."""
NEVER = -1
SWITCHES = ("MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_", "GLIBC_TUNABLES")


def keep_freed_memory(largest_bytes: int = LARGEST_KEPT) -> None:
    """Keep freed buffers of up to so many bytes in this process, or up to as many as this glibc allows. Nothing changes
    with another C library, or where one of glibc's own environment variables says what to do."""
    if any(name in os.environ for name in SWITCHES):
        return
    with suppress(OSError, AttributeError):  # a C library without mallopt
        libc = ctypes.CDLL(None)
        for limit in (largest_bytes, MOST_OF_OLD_GLIBC):  # one that is refused changes nothing
            if libc.mallopt(M_MMAP_THRESHOLD, limit):
                libc.mallopt(M_TRIM_THRESHOLD, NEVER)
                return


def give_back_freed_memory() -> None:
    """Give what this process keeps back to the system, which takes milliseconds. Nothing happens without glibc."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
