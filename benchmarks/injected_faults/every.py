"""All faults: each file registers its own."""

from __future__ import annotations

from injected_faults import blind, one_host, two_hosts
from injected_faults.registry import FAULTS

__all__ = ["FAULTS", "blind", "one_host", "two_hosts"]
