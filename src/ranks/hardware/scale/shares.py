"""Shares for ranks of unequal speed: integers such that all ranks end their part of a global batch at the same time."""

from __future__ import annotations

from collections.abc import Sequence

MOST = 64
"""The sum of proposed shares; a run has 64 shards by default."""
TOLERANCE = 0.01
"""Smaller numbers are preferred where they cost at most this share of the time, by default."""
MOST_TOLERANCE = 0.2


def propose_shares(
    speeds: Sequence[float],
    limits: Sequence[int] | None = None,
    num_items: int = 0,
    most: int = MOST,
    tolerance: float = TOLERANCE,
) -> tuple[int, ...] | None:
    """The shares with the shortest iteration, each at least 1, their sum at most `most`. None where no shares fit.

    `speeds`: items per second of each rank. `limits`: the items of a global batch of `num_items` that each rank's
    memory holds. `tolerance`: smaller numbers are preferred where they cost at most this share of the time.
    """
    found: list[tuple[float, tuple[int, ...]]] = []
    for total in range(len(speeds), most + 1):
        caps = [total] * len(speeds) if limits is None else [limit * total // num_items for limit in limits]
        shares = _shares_of(total, speeds, caps)
        if shares is not None:
            found.append((slowest_s(shares, speeds, 1.0), shares))
    if not found:
        return None
    best = min(seconds for seconds, _ in found)
    return next(shares for seconds, shares in found if seconds <= best * (1 + tolerance))


def spread_of(rounds: Sequence[Sequence[float]]) -> float:
    """How much the speeds of the ranks, relative to each other, differ between rounds: a tolerance for shares."""
    relative = [[speed / sum(speeds) * len(speeds) for speed in speeds] for speeds in rounds]
    spreads = [(max(of_rank) - min(of_rank)) / 2 for of_rank in zip(*relative, strict=True)]
    return min(max(TOLERANCE, *spreads), MOST_TOLERANCE)


def slowest_s(shares: Sequence[int], speeds: Sequence[float], num_items: float) -> float:
    """Seconds of the rank that ends last, for a global batch of `num_items`."""
    return max(num_items * share / sum(shares) / speed for share, speed in zip(shares, speeds, strict=True))


def _shares_of(total: int, speeds: Sequence[float], caps: Sequence[int]) -> tuple[int, ...] | None:
    """So many shares. One after the other goes to the rank that ends it first; that minimises the time of the slowest
    rank. `caps`: the most of each rank. None where a rank cannot have one, or where all are full."""
    if min(caps) < 1:
        return None
    shares = [1] * len(speeds)
    for _ in range(total - len(speeds)):
        free = [rank for rank, share in enumerate(shares) if share < caps[rank]]
        if not free:
            return None
        shares[min(free, key=lambda rank: (shares[rank] + 1) / speeds[rank])] += 1
    return tuple(shares)
