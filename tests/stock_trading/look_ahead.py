"""A check that nothing looks ahead: what is known on a day must not change when every later price does.

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
"""(prices, row of a day) -> all that is known at that day's close, by name: features, scalers, holdings, actions. It
is handed the prices of all days and has to leave the later ones alone."""


def garbage_after(prices: Prices, day: int, seed: int) -> Prices:
    """The same prices up to row `day`, and after it others that are unrelated, a hundredth to a hundred times 100."""
    rng = numpy_generator(seed, "garbage", day, 0)
    shape = prices.num_days - day - 1, prices.num_stocks
    low_DS = 10 ** rng.uniform(0, 4, shape)
    high_DS = low_DS * rng.uniform(1, 2, shape)
    later = {"low": low_DS, "high": high_DS, "volume": 10 ** rng.uniform(0, 9, shape)}
    for name in ("open", "close"):
        later[name] = low_DS + rng.random(shape) * (high_DS - low_DS)
    fields = {name: np.concatenate([old_DS[: day + 1], later[name]]) for name, old_DS in prices.fields().items()}
    return Prices.of(prices.dates_D, prices.tickers, fields, f"{prices.source}, garbage after row {day}")


def find_leaks(known: Known, prices: Prices, day: int, seed: int) -> list[str]:
    """Names of what is said to be known at the close of row `day`, and changes with the prices after it, bit for bit;
    empty where nothing looks ahead."""
    before, after = known(prices, day), known(garbage_after(prices, day, seed), day)
    return [
        name
        for name in sorted(before.keys() | after.keys())
        if name not in before or name not in after or not np.array_equal(before[name], after[name], equal_nan=True)
    ]
