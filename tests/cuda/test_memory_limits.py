"""Shares for a card whose allocator is capped: it carries fewer items."""

from __future__ import annotations

import torch

from ranks.cli.scaling.balance import ItemLimits
from ranks.hardware.forecast.memory_need import MemoryNeed
from ranks.hardware.scale.shares import propose_shares
from ranks.hardware.short_runs.capacity import capacity_of_rank
from tests.cuda.gpu import NEEDS_GPU

pytestmark = NEEDS_GPU
ITEMS = 2000


def test_a_capped_card_carries_fewer_items() -> None:
    device = torch.device("cuda:0")
    total = torch.cuda.mem_get_info(device)[1]
    before = torch.cuda.get_per_process_memory_fraction(device)
    capacities: list[int] = []
    for fraction in (before, 0.1):
        torch.cuda.set_per_process_memory_fraction(fraction, device)
        try:
            capacities.append(capacity_of_rank(device, 2))
        finally:
            torch.cuda.set_per_process_memory_fraction(before, device)
    whole, capped = capacities
    assert capped <= 0.1 * total
    assert capped < whole, "other programs hold most of this card"
    need = MemoryNeed(ITEMS // 2, fixed_bytes=0.2 * capped, bytes_per_item=4 * capped / ITEMS)
    limits = ItemLimits(need=need, global_batch=ITEMS).of([whole, capped], ITEMS)
    assert limits is not None
    assert limits[1] in (349, 350), "0.9 - 0.2 of the capped memory, at 4 of it for all items"
    shares = propose_shares((1.0, 1.0), limits, ITEMS)
    assert shares is not None
    assert ITEMS * shares[1] / sum(shares) <= limits[1]
