"""Counter-based random numbers: each number is a hash of (seed, purpose, step, item id, index).

There is no generator state, so there is nothing to save, and a number does not depend on the rank
that computes it. Bits, integers and uniforms are the same on every device. The other distributions
are computed in float64; they are the same on one class of device only, since logarithm and cosine
differ between libraries.

The hash is the finaliser of splitmix64 (Steele, Lea & Flood 2014, "Fast splittable pseudorandom
number generators"), applied to the item id and then to the index. Torch's int64 arithmetic wraps in
the same way on every device.

Legend: N items, D random numbers of each item.
"""

from __future__ import annotations

import hashlib
import math

import torch
from torch import Tensor

from ranks.engine.sharding.numpy_rng import numpy_generator as numpy_generator
from ranks.splitmix64 import GOLDEN_GAMMA, MIX_1, MIX_2, as_int64

_GAMMA, _MIX_1, _MIX_2 = (as_int64(word) for word in (GOLDEN_GAMMA, MIX_1, MIX_2))


def key(seed: int, purpose: str, step: int) -> int:
    """The signed 64-bit key of one purpose at one step."""
    digest = hashlib.blake2b(f"{seed}/{purpose}/{step}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little", signed=True)


def _shift_right(x: Tensor, n: int) -> Tensor:
    return (x >> n) & ((1 << (64 - n)) - 1)


def _mix(x: Tensor) -> Tensor:
    x = (x ^ _shift_right(x, 30)) * _MIX_1
    x = (x ^ _shift_right(x, 27)) * _MIX_2
    return x ^ _shift_right(x, 31)


def bits(key: int, item_ids: Tensor, num: int) -> Tensor:
    """int64[N, num] of random bits for int64[N] item ids."""
    index_D = torch.arange(1, num + 1, device=item_ids.device, dtype=torch.int64)
    item_N = _mix(item_ids.to(torch.int64) * _GAMMA + key)
    return _mix(item_N[:, None] + index_D * _GAMMA)


def uniform(key: int, item_ids: Tensor, num: int) -> Tensor:
    """float64[N, num] in [0, 1), the same bits on every device."""
    return _shift_right(bits(key, item_ids, num), 11).to(torch.float64) * 2.0**-53


def integers(key: int, item_ids: Tensor, num: int, high: int) -> Tensor:
    """int64[N, num] in [0, high), high < 2**31, the same bits on every device."""
    if not 0 < high < 2**31:
        raise ValueError(f"high must lie in 1..2**31-1, it is {high}")
    return (_shift_right(bits(key, item_ids, num), 32) * high) >> 32


def normal(key: int, item_ids: Tensor, num: int) -> Tensor:
    """float64[N, num] standard normal (Box & Muller 1958)."""
    u_ND = uniform(key, item_ids, 2 * num)
    radius = torch.sqrt(-2.0 * torch.log1p(-u_ND[:, :num]))
    return radius * torch.cos(2.0 * math.pi * u_ND[:, num:])


def gumbel(key: int, item_ids: Tensor, num: int) -> Tensor:
    """float64[N, num] standard Gumbel: argmax(logits + gumbel) is a sample of softmax(logits)."""
    u_ND = uniform(key, item_ids, num) + 2.0**-54
    return -torch.log(-torch.log(u_ND))


def permutation(key: int, n: int) -> Tensor:
    """int64[n]: a random permutation of 0..n-1 (on the CPU)."""
    return torch.argsort(bits(key, torch.arange(n), 1)[:, 0], stable=True)


def torch_seed(seed: int, step: int, shard: int, offset: int) -> int:
    """The seed of torch's own generators before a pass that begins at item `offset` of a shard."""
    return key(seed, f"torch/{shard}/{offset}", step) & (2**63 - 1)
