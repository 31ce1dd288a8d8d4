"""glibc's malloc keeps the buffers of a batch for the next one.

By default it gives freed memory at the end of its heap back at once. Then the kernel clears the same pages again in
every batch: up to a fifth of the CPU time of a training with convolutions.
"""

from __future__ import annotations

import ctypes
import os
from contextlib import suppress

LARGEST_KEPT = 32 * 2**20
"""Larger buffers are mapped on their own, and go back to the system when they are freed. This is the highest limit that
glibc reaches by itself. A higher one lets the heap grow without end: a small object that stays can take a part of a
large freed buffer, and the next large one then finds no place. Older versions refuse it, too."""
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
        # alone, the second call would freeze the limit of the first where it is, at 128 KiB in a new process
        if libc.mallopt(M_MMAP_THRESHOLD, largest_bytes):
            libc.mallopt(M_TRIM_THRESHOLD, NEVER)


def give_back_freed_memory() -> None:
    """Give what this process keeps back to the system, which takes milliseconds. Nothing happens without glibc."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
