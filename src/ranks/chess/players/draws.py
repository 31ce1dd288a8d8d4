"""The random choices of players: hashes of (seed, ply), so that the same game is played again for the same seed."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence


def shuffled(moves: Sequence[int], seed: int, ply: int) -> list[int]:
    """The moves in a random order that does not depend on the order they come in."""

    def place(move: int) -> bytes:
        return hashlib.blake2b(f"{seed} {ply} {move}".encode(), digest_size=8).digest()

    return sorted(moves, key=place)
