"""All faults: each file registers its own."""

from __future__ import annotations

from benchmarks.faults.injected import blind, held_out, one_host, two_hosts
from benchmarks.faults.injected.registry import FAULTS

__all__ = ["FAULTS", "blind", "held_out", "one_host", "two_hosts"]
