"""Reference values of the shipped prices that every correct backtest reproduces: 2016-01-04 to 2020-05-08, 1,095
days."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ranks.workloads.stock_trading.data import sp500
from ranks.workloads.stock_trading.data.prices import Floats
from ranks.workloads.stock_trading.data.turbulence import turbulence
from ranks.workloads.stock_trading.market import baselines
from ranks.workloads.stock_trading.market.config import MarketConfig
from ranks.workloads.stock_trading.market.metrics import cagr, cumulative_return, max_drawdown, sharpe, volatility

FIRST, LAST = "2016-01-04", "2020-05-08"
TRAIN = ("2009-01-02", "2015-10-01")
MEASURES = (cumulative_return, cagr, volatility, sharpe, max_drawdown)
NO_COSTS = MarketConfig(commission_bps=0.0, no_trade_band=0.0)
EXPECTED = {
    "buy and hold, equal weights, no cost": (1.6342, 0.2500, 0.2321, 1.0781, -0.3065),
    "equal weights every 21 days, 10 bp": (0.8948, 0.1586, 0.1970, 0.8459, -0.3150),
    "the S&P 500": (0.4557, 0.0903, 0.1924, 0.5463, -0.3392),
}
"""Return, CAGR, volatility, Sharpe ratio, maximum drawdown to four digits, computed by other code. Orders are sized at
the close of the day before, and filled at the close of the day."""
TURBULENT = {0.9: (42.18, 153), 0.99: (91.70, 41), 1.0: (267.57, 5)}
"""Quantile of the training days -> (turbulence at that quantile, number of test days above it)."""


@dataclass(frozen=True)
class ReferenceRow:
    what: str
    found: str
    bar: str
    passed: bool


def reference_rows() -> list[ReferenceRow]:
    """Compute all reference values and compare them with the printed ones."""
    stocks, index = sp500.stocks(), sp500.index()
    rows = stocks.rows(FIRST, LAST)
    with_costs = replace(NO_COSTS, commission_bps=10.0)
    values: dict[str, Floats] = {
        "buy and hold, equal weights, no cost": baselines.buy_and_hold(stocks, rows, NO_COSTS).value_T[1:],
        "equal weights every 21 days, 10 bp": baselines.equal_weight(stocks, rows, with_costs).value_T[1:],
        "the S&P 500": baselines.buy_and_hold(index, index.rows(FIRST, LAST), NO_COSTS).value_T[1:],
    }
    out: list[ReferenceRow] = []
    for name, value_T in values.items():
        found = tuple(round(measure(value_T), 4) for measure in MEASURES)
        out.append(ReferenceRow(name, _text(found), _text(EXPECTED[name]), found == EXPECTED[name]))
    turbulence_D, train = turbulence(stocks.close_DS), stocks.rows(*TRAIN)
    for quantile, (limit, above) in TURBULENT.items():
        level = float(np.quantile(turbulence_D[train.start : train.stop], quantile))
        days = int((turbulence_D[rows.start : rows.stop] > level).sum())
        name = f"turbulence, quantile {quantile:g} of the training days"
        passed = (round(level, 2), days) == (limit, above)
        out.append(
            ReferenceRow(name, f"{level:.2f}, {days} test days above", f"{limit:.2f}, {above} test days above", passed)
        )
    return out


def _text(numbers: tuple[float, ...]) -> str:
    return " ".join(f"{number:.4f}" for number in numbers)
