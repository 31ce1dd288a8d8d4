"""`ranks scale --shares auto`: measure each rank's speed in company, and propose shares."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ranks.cli.columns import aligned
from ranks.cli.scaling.measure import Case, Measurement
from ranks.cli.units import rate, short_s
from ranks.engine.sharding.assignment import ShardAssignment
from ranks.errors import UserError
from ranks.hardware.scale.shares import MOST, propose_shares, slowest_s, spread_of


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


def measure_balance(measurement: Measurement, num_ranks: int, num_shards: int, limits: Sequence[int] | None) -> Balance:
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
    shares = propose_shares(speeds, limits, whole, min(MOST, num_shards), spread_of(each))
    if shares is None:
        asked = f"--max-items {','.join(map(str, limits or ()))}"
        raise UserError(asked, f"a batch of {whole} items does not fit into these", "give a smaller --global-batch")
    return Balance(rounds[0].devices, items, work_s, shares)


def balance_table(balance: Balance) -> str:
    """One line for each rank, and the flag."""
    lines = [["rank", "device", "items", "work", "items/s", "share"]]
    for rank, speed in enumerate(balance.speeds):
        items, work, share = str(balance.items[rank]), short_s(balance.work_s[rank]), str(balance.shares[rank])
        lines.append([str(rank), balance.devices[rank], items, work, rate(speed), share])
    now, then = short_s(balance.slowest_now_s), short_s(balance.slowest_then_s)
    if len(set(balance.shares)) == 1:
        end = "the ranks are equally fast, as far as these rounds can tell: no --shares are needed"
    else:
        end = f"ranks train ... {balance.flag}: the slowest rank works about {then} in an iteration, now {now}"
    return f"{aligned(lines, left=[1])}\n\n{end}"
