"""The prices shipped with the package: 20 US stocks and the S&P 500, 1990 to 2022. Closes are adjusted for splits and
dividends (the index excludes dividends). Licence and source: `shipped/README.md`."""

from __future__ import annotations

import functools
from dataclasses import replace
from pathlib import Path

from ranks.workloads.stock_trading.data.prices import Prices
from ranks.workloads.stock_trading.data.read_csv import read_csv

SHIPPED = Path(__file__).parent / "shipped"


def stocks() -> Prices:
    """8,313 days of 20 stocks with survivorship bias: compare every result with buy-and-hold of the same stocks."""
    return _shipped("sp500_dataset.csv.gz", "20 US stocks 1990-2022")


def index() -> Prices:
    """The S&P 500 on the same days, as one stock named SP500."""
    return _shipped("sp500_index.csv.gz", "the S&P 500 1990-2022")


@functools.cache
def _shipped(name: str, source: str) -> Prices:
    # its daily moves above 40 % (AAPL on 2000-09-29, AMD on 2016-04-22) are real
    return replace(read_csv(SHIPPED / name), source=source, notes=())
