"""Settings of the engine. Imports no torch, so that the command line can show them at once."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field, fields, is_dataclass, replace
from pathlib import Path
from typing import Any, Literal, TypeVar, cast

from ranks.errors import UserError

T = TypeVar("T")
Precision = Literal["fp32", "bf16", "fp64"]
FREE = "free"
MAX_SHARDS = 1 << 16
MAX_THREADS = 1 << 12
HANG_TIMEOUT = "5m"


def free(default: T) -> T:
    """A config field that may change between sessions of one run (iterations, intervals): not part
    of its identity."""
    return field(default=default, metadata={FREE: True})


def identity_of(config: Any) -> dict[str, Any]:
    """The fields of a frozen dataclass that belong to a run's identity: all except those marked
    `free`."""
    out: dict[str, Any] = {}
    for f in fields(config):
        if not f.metadata.get(FREE):
            out[f.name] = _plain(getattr(config, f.name))
    return out


def _plain(value: Any) -> Any:
    """A setting as JSON can hold it."""
    if is_dataclass(value):
        return identity_of(value)
    if isinstance(value, tuple):
        return tuple(_plain(item) for item in cast("tuple[Any, ...]", value))
    return str(value) if isinstance(value, Path) else value


def at_least(least: int, config: Any, *names: str) -> None:
    """For a config's `__post_init__`. Raises UserError for the first of these fields that is
    less."""
    for name in names:
        value = getattr(config, name)
        if value < least:
            flag = f"--{name.replace('_', '-')}"
            raise UserError(f"{flag} {value}", f"it is {least} or more", f"give {flag} {least} or more")


@dataclass(frozen=True)
class RunConfig:
    """Settings of a run that every workload has."""

    seed: int = 0
    """Every random number depends on it."""
    exact: bool = False
    """The same bits on any number of ranks (level L3)."""
    shards: int | None = None
    """Parts of a global batch that are assigned to ranks; 64, or 8 under --exact."""
    shares: tuple[int, ...] | None = free(None)
    """Shards per rank in proportion, for example 5,3; by default equal."""
    precision: Precision = "fp32"
    """Arithmetic of the forward pass; weights are float32 (fp64: all in float64, for proofs)."""
    threads: int | None = None
    """CPU threads per rank; by default 1 under --exact, else the cores divided by the ranks. 1 suits
    small networks."""
    micro_batch: int | None = None
    """Maximum number of items in one forward pass; by default a whole shard (exact) or all items of
    a rank (fast)."""
    deterministic: bool = False
    """Deterministic algorithms on CUDA also without --exact (on the CPU they are always on)."""
    name: str | None = free(None)
    """Name of the run folder; by default the workload's name."""
    runs_dir: Path = free(Path("runs"))
    """The folder of all run folders."""
    init_from: Path | None = free(None)
    """Begin with the weights of this export folder (runs/NAME/export) instead of new ones. The optimizer
    starts from zero. A resume does not read it again."""
    save_every: str = free("5m")
    """How often to write a checkpoint: 500 (iterations), or 30s, 5m, 1h."""
    max_time: str | None = free(None)
    """Save and stop with exit code 0 after this time of one command, restarts included: 90s, 10m,
    2h. The iteration that is running is finished first."""
    hang_timeout: str | None = free(HANG_TIMEOUT)
    """A training step without progress for this long is a hang; other phases may take longer. none:
    no hang is noticed, and one rank runs in the process of the command, where a debugger works."""
    stop_grace: str = free("60s")
    """How long ranks without progress may delay a stop by a signal; then they are ended without a
    save."""

    @property
    def hang_timeout_s(self) -> float:
        """Seconds without progress after which a rank in a training step hangs; infinite for none."""
        return hang_timeout_s(self.hang_timeout)

    @property
    def stop_grace_s(self) -> float:
        """Seconds that ranks without progress may delay a stop."""
        return time_limit(self.stop_grace, "--stop-grace")

    @property
    def num_shards(self) -> int:
        return self.shards if self.shards is not None else (8 if self.exact else 64)

    def resolved(self) -> RunConfig:
        """With the number of shards filled in, and the threads that --exact fixes."""
        return replace(self, shards=self.num_shards, threads=self.threads or (1 if self.exact else None))

    def __post_init__(self) -> None:
        if self.shards is not None and self.shards < 1:
            raise UserError(f"--shards {self.shards}", "a run needs at least one shard", "give --shards 1 or more")
        for name, most in (("shards", MAX_SHARDS), ("threads", MAX_THREADS)):
            if (getattr(self, name) or 0) > most:
                asked = f"--{name} {getattr(self, name)}"
                raise UserError(asked, f"{most:,} is the limit", f"give --{name} {most} or less")
        if self.micro_batch is not None and self.micro_batch < 1:
            raise UserError(
                f"--micro-batch {self.micro_batch}",
                "a forward pass needs at least one item",
                "give --micro-batch 1 or more",
            )
        if self.threads is not None and self.threads < 1:
            raise UserError(f"--threads {self.threads}", "a rank needs at least one thread", "give --threads 1 or more")
        if self.shares is not None and (min(self.shares, default=0) < 0 or sum(self.shares) == 0):
            raise UserError(
                f"--shares {self.shares}",
                "shares are not negative and not all zero",
                "give one number per rank, for example 5,3",
            )
        SaveInterval.parse(self.save_every, "--save-every")
        if self.max_time is not None:
            seconds(self.max_time, "--max-time")
        hang_timeout_s(self.hang_timeout)
        time_limit(self.stop_grace, "--stop-grace")


UNITS_S = {"s": 1.0, "m": 60.0, "h": 3600.0}


def seconds(text: str, flag: str) -> float:
    """'90s' -> 90.0. Raises UserError."""
    match = re.fullmatch(r"([0-9]{1,9}(?:\.[0-9]{1,9})?)([smh])", text.strip())
    if match is None:
        raise UserError(
            f"{flag} {text}",
            "that is not a length of time",
            f"write it with its unit, for example {flag} 90s, 10m or 2h",
        )
    return float(match[1]) * UNITS_S[match[2]]


def time_limit(text: str, flag: str) -> float:
    """As `seconds`, but above zero. Raises UserError."""
    limit_s = seconds(text, flag)
    if limit_s <= 0:
        raise UserError(f"{flag} {text}", "a time limit is above zero", f"give for example {flag} 60s")
    return limit_s


def hang_timeout_s(text: str | None) -> float:
    """The seconds of `--hang-timeout`, infinite for None. Raises UserError."""
    return math.inf if text is None else time_limit(text, "--hang-timeout")


@dataclass(frozen=True)
class SaveInterval:
    """How often to save: a number of iterations, or of seconds. The other one is None."""

    iterations: int | None
    interval_s: float | None

    @classmethod
    def parse(cls, text: str, flag: str) -> SaveInterval:
        """'500' -> iterations, '5m' -> seconds. Raises UserError."""
        if re.fullmatch(r"[1-9][0-9]{0,17}", text.strip()):
            return cls(int(text.strip()), None)
        return cls(None, seconds(text, flag))


@dataclass(frozen=True)
class OptimConfig:
    """AdamW (Loshchilov & Hutter 2019, arXiv 1711.05101), gradient clipping, and the learning-rate
    schedule."""

    lr: float = 1e-3
    """Learning rate; with an lr rule, at the base batch."""
    weight_decay: float = 0.01
    decay_only: Literal["matrices"] | None = None
    """matrices: only parameters of two or more dimensions decay, so no biases and no gains of norms (nanoGPT; timm's
    filter_bias_and_bn). None: all decay, as in torch.optim.AdamW."""
    betas: tuple[float, float] = (0.9, 0.999)
    eps: float = 1e-8
    clip_norm: float | None = 1.0
    """Maximum global gradient norm; None turns clipping off."""
    schedule: Literal["constant", "cosine", "linear"] = "cosine"
    """How the learning rate falls to zero after the warm-up."""
    warmup_updates: int = 0
    schedule_updates: int | None = None
    """Update at which the schedule ends; by default the last update of the run."""
    lr_rule: Literal["none", "linear", "sqrt"] = "none"
    """How the learning rate scales with the global batch relative to --optim.base-batch."""
    base_batch: int | None = None
    """The global batch that --optim.lr was chosen for, needed by an lr rule."""

    def __post_init__(self) -> None:
        refused = {
            "lr": not 0 < self.lr < math.inf,
            "weight-decay": not 0 <= self.weight_decay < math.inf,
            "betas": not all(0 <= beta < 1 for beta in self.betas),
            "eps": not 0 < self.eps < math.inf,
            "clip-norm": self.clip_norm is not None and not self.clip_norm > 0,
            "warmup-updates": self.warmup_updates < 0,
            "schedule-updates": self.schedule_updates is not None and self.schedule_updates < 1,
            "base-batch": self.base_batch is not None and self.base_batch < 1,
        }
        for name, bad in refused.items():
            if bad:
                value = getattr(self, name.replace("-", "_"))
                raise UserError(
                    f"--optim.{name} {value}",
                    "rates, eps, norms and counts are positive numbers, betas lie in [0, 1)",
                    "give one that is; --optim.clip-norm None turns clipping off",
                )

    def resolve(self, *, global_batch: int | None = None, updates: int | None = None) -> OptimConfig:
        """The rate for this global batch, and the schedule's end for this many updates. `Learner`
        calls it.

        Raises UserError where the rule needs a base batch or a global batch, or the schedule an
        end, that is not given.
        """
        scale = 1.0
        if self.lr_rule != "none":
            asked = f"--optim.lr-rule {self.lr_rule}"
            if self.base_batch is None:
                raise UserError(asked, "no base batch to scale from", "give it with --optim.base-batch N")
            if global_batch is None:
                raise UserError(asked, "no global batch to scale to", "write Learner(..., global_batch=N)")
            ratio = global_batch / self.base_batch
            scale = ratio if self.lr_rule == "linear" else ratio**0.5
        if self.schedule == "constant":
            return replace(self, lr=self.lr * scale, schedule_updates=None)
        end = self.schedule_updates if self.schedule_updates is not None else updates
        if end is None:
            raise UserError(
                f"--optim.schedule {self.schedule}",
                "the number of updates at which it ends is not known",
                "write Learner(..., updates=N), or give --optim.schedule-updates N",
            )
        return replace(self, lr=self.lr * scale, schedule_updates=end)
