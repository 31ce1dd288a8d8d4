"""Fifty jobs, drawn from a seed: 20 to tune the forecast on, 30 to judge it."""

from __future__ import annotations

import math
import random
from dataclasses import asdict, dataclass

SEED, TUNED, JUDGED = 20261123, 20, 30
GLOBAL_BATCH = 64


@dataclass(frozen=True)
class NetworkJob:
    """One job and its network."""

    number: int
    mbit: float
    """Rate of each host's link."""
    megabytes: float
    bucket_megabytes: float
    layers: int
    front_heavy: float
    forward_ms: float
    backward_ms: float
    fixed_ms: float
    loading_ms: float
    jitter: float
    passes: int
    """Of a rank in an iteration: with more than one, gradients are accumulated."""
    is_weak: bool
    """Each rank carries the batch of one rank; otherwise the batch is divided."""

    @property
    def is_judged(self) -> bool:
        return self.number >= TUNED

    def items_of(self, num_ranks: int) -> int:
        """Of one iteration."""
        return GLOBAL_BATCH * num_ranks if self.is_weak else GLOBAL_BATCH

    def flags(self, num_ranks: int) -> list[str]:
        """Of `ranks train ./sleeper.py` with so many ranks."""
        own = {k: v for k, v in asdict(self).items() if k not in ("number", "mbit", "passes", "is_weak")}
        of_rank = self.items_of(num_ranks) // num_ranks
        flags = [f"--{name.replace('_', '-')}={value}" for name, value in own.items()]
        flags.append(f"--global-batch={of_rank * num_ranks}")
        return flags + ([f"--micro-batch={max(1, of_rank // self.passes)}"] if self.passes > 1 else [])


def draw() -> list[NetworkJob]:
    """All jobs, the same ones on every machine."""
    rng = random.Random(SEED)
    return [_draw(number, rng) for number in range(TUNED + JUDGED)]


def _draw(number: int, rng: random.Random) -> NetworkJob:
    def log_uniform(low: float, high: float) -> float:
        return math.exp(rng.uniform(math.log(low), math.log(high)))

    mbit, step_s, ratio = log_uniform(20, 1000), log_uniform(0.1, 2.0), log_uniform(0.03, 1.0)
    # `ratio`: time of the all-reduce of two ranks over that of the passes; memory and processor limit the size
    megabytes = min(40.0, max(0.02, ratio * step_s * mbit / 8))
    buckets = rng.choice((1, 2, 4, 8))
    loading = rng.choice((0.0, 0.0, rng.uniform(0.02, 0.3)))
    fixed = rng.choice((0.0, rng.uniform(0.02, 0.3)))
    forward = rng.uniform(0.25, 0.4)
    passes = rng.choice((1, 1, 2, 4))
    compute_s = step_s * (1 - loading)
    item_ms = 1000 * compute_s * (1 - fixed) / GLOBAL_BATCH
    return NetworkJob(
        number,
        round(mbit, 1),
        round(megabytes, 3),
        round(1.02 * megabytes / buckets, 4),
        rng.randint(4, 24),
        round(log_uniform(0.1, 10), 3),
        round(item_ms * forward, 4),
        round(item_ms * (1 - forward), 4),
        round(1000 * compute_s * fixed / 2 / passes, 3),
        round(1000 * step_s * loading / GLOBAL_BATCH, 4),
        round(rng.choice((0.0, rng.uniform(0.0, 0.05))), 4),
        passes,
        rng.random() < 0.5,
    )
