"""A check for look-ahead bias: what is known on a day must not change when all later prices change.

Legend: D days, S stocks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from ranks.engine.sharding.rng import numpy_generator
from ranks.workloads.stock_trading.data.prices import Prices

Known = Callable[[Prices, int], Mapping[str, npt.NDArray[Any]]]
"""(prices, row of a day) -> everything that is known at that day's close, by name: features, scalers, holdings,
actions. It gets the prices of all days and must not use the later ones."""


def garbage_after(prices: Prices, day: int, seed: int) -> Prices:
    """The same prices up to row `day`, and after it unrelated random prices from 1 to 10,000, on the same days. Prices
    with gaps have other gaps there: at random, 1 to 40 days each, and each stock has a price or none on the last day by
    chance."""
    rng = numpy_generator(seed, "garbage", day, 0)
    shape = prices.num_days - day - 1, prices.num_stocks
    low_DS = 10 ** rng.uniform(0, 4, shape)
    high_DS = low_DS * rng.uniform(1, 2, shape)
    later = {"low": low_DS, "high": high_DS, "volume": 10 ** rng.uniform(0, 9, shape)}
    for name in ("open", "close"):
        later[name] = low_DS + rng.random(shape) * (high_DS - low_DS)
    is_gap_DS = _random_gaps(rng, shape) if prices.has_gaps else np.zeros(shape, bool)
    fields = {
        name: np.concatenate([old_DS[: day + 1], np.where(is_gap_DS, np.nan, later[name])])
        for name, old_DS in prices.fields().items()
    }
    source = f"{prices.source}, garbage after row {day}"
    return Prices.of(prices.dates_D, prices.tickers, fields, source, has_gaps=prices.has_gaps)


def _random_gaps(rng: np.random.Generator, shape: tuple[int, int]) -> npt.NDArray[np.bool_]:
    """Runs of 1 to 40 days, by turns without and with a price; by chance the first of a stock is either."""
    columns: list[npt.NDArray[np.bool_]] = []
    for _ in range(shape[1]):
        is_gap_R = (np.arange(shape[0]) + rng.integers(2)) % 2 == 1
        columns.append(np.repeat(is_gap_R, rng.integers(1, 41, shape[0]))[: shape[0]])
    return np.stack(columns, 1)


def find_leaks(information: Known, prices: Prices, day: int, seed: int) -> list[str]:
    """Names of what `information` returns for row `day` that changes, by any bit, with the prices after it.

    Empty if nothing looks ahead."""
    before, after = information(prices, day), information(garbage_after(prices, day, seed), day)
    return [
        name
        for name in sorted(before.keys() | after.keys())
        if name not in before or name not in after or not np.array_equal(before[name], after[name], equal_nan=True)
    ]
