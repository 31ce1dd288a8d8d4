"""`ranks scale --shares auto`: measure each rank's speed in company, and propose shares."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass

from ranks.cli.columns import aligned
from ranks.cli.flags.settings import Settings
from ranks.cli.forecasting.child import TraceRequest
from ranks.cli.forecasting.measure import record_trace
from ranks.cli.scaling.measure import Case, Measurement
from ranks.cli.units import short_s
from ranks.engine.sharding.assignment import ShardAssignment
from ranks.errors import UserError
from ranks.hardware.forecast.memory_need import MemoryNeed
from ranks.hardware.scale.shares import MOST, propose_shares, slowest_s, spread_of
from ranks.hardware.units import rate

SAFE = 0.9
"""The share of a card's memory that is given to a rank: some of it is lost between buffers."""


@dataclass(frozen=True)
class ItemLimits:
    """How many items of a global batch a rank may carry: as the user says, or by the memory of its device."""

    given: tuple[int, ...] | None = None
    """--max-items, one for each rank."""
    need: MemoryNeed | None = None
    """Of a rank; None: not measured, or its passes cannot be made smaller."""
    global_batch: int = 0
    most_pass: int | None = None
    """The items of a pass at most, where the settings split a rank's items."""

    def of(self, capacities: Sequence[int], num_items: int) -> tuple[int, ...] | None:
        """The limit of each rank in items of an iteration, of which there are `num_items`. None: unknown. `capacities`:
        bytes that each rank may hold."""
        if self.given is not None or self.need is None:
            return self.given
        shares = [self.need.share_that_fits(SAFE * c, self.global_batch, self.most_pass) for c in capacities]
        return tuple(math.floor(share * num_items) for share in shares)


def measured_limits(measurement: Measurement, settings: Settings, num_ranks: int) -> ItemLimits:
    """What a rank on the first GPU needs, by small passes. Nothing where there is no GPU: ranks on a CPU share the
    memory of the machine. Raises UserError where the workload fails."""
    if not measurement.on_gpus:
        return ItemLimits()
    asked = TraceRequest(num_ranks, "cuda:0", 0.0, time.time(), whole=False, memory_only=True)
    flags = [*measurement.flags, "--threads", str(measurement.threads)]
    need = record_trace(measurement.workload, flags, asked).need
    batch, engine = getattr(settings.config, "global_batch", 0), settings.engine
    passes = [math.ceil(batch / engine.num_shards)] if engine.exact else []
    passes += [engine.micro_batch] if engine.micro_batch is not None else []
    return ItemLimits(None, need, batch, min(passes, default=None))


@dataclass(frozen=True)
class Balance:
    """The ranks of a run with equal shares, and the proposal."""

    devices: tuple[str, ...]
    items: tuple[int, ...]
    """Of each rank in an iteration."""
    work_s: tuple[float, ...]
    """Of each rank in an iteration, without waiting."""
    shares: tuple[int, ...]
    """That are proposed."""
    limits: tuple[int, ...] | None
    """Items that the memory of each rank holds, or --max-items; None: unknown."""

    @property
    def speeds(self) -> list[float]:
        """Items per second of each rank's own work."""
        return [items / work_s for items, work_s in zip(self.items, self.work_s, strict=True)]

    @property
    def flag(self) -> str:
        """Of ranks train."""
        return f"--shares {','.join(map(str, self.shares))}"

    @property
    def slowest_now_s(self) -> float:
        return max(self.work_s)

    @property
    def slowest_then_s(self) -> float:
        return slowest_s(self.shares, self.speeds, sum(self.items))


def measure_balance(measurement: Measurement, num_ranks: int, num_shards: int, allowed: ItemLimits) -> Balance:
    """Run with equal shares and propose others. Raises UserError."""
    case = Case(f"{num_ranks} ranks with equal shares", num_ranks)
    rounds = measurement.run([case])[case.label]
    whole = round(next(iter(rounds[0].items.values()), float(num_shards)))
    assignment = ShardAssignment.make(num_shards, num_ranks)
    items = tuple(len(assignment.items_of(rank, whole)) for rank in range(num_ranks))
    parts = [[run.ranks[rank] for run in rounds] for rank in range(num_ranks)]
    work_s = tuple(sum(p.compute + p.data for p in own) / len(own) for own in parts)
    if not all(items):
        raise UserError("--shares auto", f"{whole} items are too few for {num_ranks} ranks", "give a larger batch")
    speeds = [count / seconds for count, seconds in zip(items, work_s, strict=True)]
    each = [[n / (p.compute + p.data) for n, p in zip(items, run.ranks, strict=True)] for run in rounds]
    limits = allowed.of(rounds[0].capacities, whole)
    shares = propose_shares(speeds, limits, whole, min(MOST, num_shards), spread_of(each))
    if shares is None:
        shown = ",".join(map(str, limits or ()))
        asked = f"--max-items {shown}" if allowed.given is not None else "--shares auto"
        found = f"a batch of {whole} items does not fit into {shown}, what the memory of the ranks holds"
        raise UserError(asked, found, "give a smaller --global-batch, or a --micro-batch")
    return Balance(rounds[0].devices, items, work_s, shares, limits)


def balance_table(balance: Balance) -> str:
    """One line for each rank, and the flag."""
    lines = [["rank", "device", "items", "work", "items/s", "at most", "share"]]
    for rank, speed in enumerate(balance.speeds):
        items, work, share = str(balance.items[rank]), short_s(balance.work_s[rank]), str(balance.shares[rank])
        most = "unknown" if balance.limits is None else str(balance.limits[rank])
        lines.append([str(rank), balance.devices[rank], items, work, rate(speed), most, share])
    now, then = short_s(balance.slowest_now_s), short_s(balance.slowest_then_s)
    if len(set(balance.shares)) == 1:
        end = "the ranks are equally fast, as far as these rounds can tell: no --shares are needed"
    else:
        end = f"ranks train ... {balance.flag}: the slowest rank works about {then} in an iteration, now {now}"
    return f"{aligned(lines, left=[1])}\n\n{end}"
