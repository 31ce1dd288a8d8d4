"""The cores of the host, which all ranks of a machine share: workers that load data, environments, self-play, and the
threads that launch kernels.

A rank is recorded alone, with all cores for itself. n of them need n times its CPU time, so an iteration takes at least

    n * CPU seconds of a rank / cores

While some ranks wait for the link or for the slowest rank, others may use the cores: only the sum counts.
"""

from __future__ import annotations

UNCERTAINTY = 0.2
"""A guess: the bound is right within this share in nine cases of ten."""


def host_bound_s(cpu_s: float | None, num_ranks: int, cores: float | None) -> float:
    """The least seconds of an iteration. `cpu_s`: CPU seconds of one rank in it; `cores`: that all ranks have together.
    0 where one of them is unknown."""
    return 0.0 if cpu_s is None or cores is None else num_ranks * cpu_s / cores
