"""All faults: each file registers its own."""

from __future__ import annotations

from injected_faults import blind, held_out, one_host, two_hosts
from injected_faults.registry import FAULTS

__all__ = ["FAULTS", "blind", "held_out", "one_host", "two_hosts"]
