"""Random numbers of players: hashes of (seed, ply, move), so a seed always gives the same game."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence


def shuffled(moves: Sequence[int], seed: int, ply: int) -> list[int]:
    """The moves in a random order, which does not depend on the order in which they are given."""

    def key(move: int) -> bytes:
        return hashlib.blake2b(f"{seed} {ply} {move}".encode(), digest_size=8).digest()

    return sorted(moves, key=key)
