"""Counter-based random numbers of NumPy. Imports no torch, so that processes that only make data start fast."""

from __future__ import annotations

import hashlib

import numpy as np


def numpy_generator(seed: int, purpose: str, step: int, item: int) -> np.random.Generator:
    """A NumPy generator for one item, to make data on the CPU (Philox, Salmon et al. 2011, keyed by
    all four)."""
    digest = hashlib.blake2b(f"{seed}/{purpose}/{step}/{item}".encode(), digest_size=16).digest()
    return np.random.Generator(np.random.Philox(key=int.from_bytes(digest, "little")))
