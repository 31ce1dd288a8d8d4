"""Prices for tests, and a slow reference implementation of the market for one account."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch.overrides import TorchFunctionMode

from ranks import RunConfig, World
from ranks.workloads.stock_trading.config import Config
from ranks.workloads.stock_trading.data import sp500, synthetic
from ranks.workloads.stock_trading.data.market_days import MarketDays
from ranks.workloads.stock_trading.data.prices import Prices
from ranks.workloads.stock_trading.market.config import MarketConfig
from ranks.workloads.stock_trading.market.ledger import Ledger
from ranks.workloads.stock_trading.market.market import Market
from ranks.workloads.stock_trading.market.simulate import simulate
from ranks.workloads.stock_trading.training import train

TEST_PERIOD = ("2016-01-04", "2020-05-08")
TRAIN_PERIOD = ("2009-01-02", "2015-10-01")


@functools.cache
def stocks() -> Prices:
    return sp500.stocks()


@functools.cache
def index() -> Prices:
    return sp500.index()


def bars(num_days: int, num_stocks: int, seed: int) -> Prices:
    """Bars from the closes of a martingale: opens near the close before, highs and lows around both."""
    rng = np.random.default_rng(seed)
    made = synthetic.martingale(num_days, num_stocks, seed, volatility=0.02)
    close_DS = made.close_DS
    open_DS = np.concatenate([close_DS[:1], close_DS[:-1]]) * np.exp(0.01 * rng.standard_normal(close_DS.shape))
    high_DS = np.maximum(open_DS, close_DS) * (1 + 0.01 * rng.random(close_DS.shape))
    low_DS = np.minimum(open_DS, close_DS) * (1 - 0.01 * rng.random(close_DS.shape))
    fields = {"open": open_DS, "high": high_DS, "low": low_DS, "close": close_DS}
    return Prices.of(made.dates_D, made.tickers, fields, f"bars, seed {seed}")


def with_gaps(prices: Prices, *gaps: tuple[int, int, int]) -> Prices:
    """(stock, first row, row after the last) of each gap."""
    fields = {name: values.copy() for name, values in prices.fields().items()}
    for stock, start, stop in gaps:
        for values in fields.values():
            values[start:stop, stock] = np.nan
    return Prices.of(prices.dates_D, prices.tickers, fields, "gaps", has_gaps=True)


def days(prices: Prices, window: int = 1, turbulent: tuple[int, ...] = ()) -> MarketDays:
    """All days of the prices. The only feature is the row number; the rows in `turbulent` are turbulent."""
    is_turbulent_D = np.isin(np.arange(prices.num_days), turbulent)
    table_DK = np.arange(prices.num_days, dtype=np.float32)[:, None]
    fill_DS = prices.fill_DS()
    return MarketDays(prices.dates_D, prices.tickers, prices.close_DS, fill_DS, table_DK, is_turbulent_D, window)


def of_closes(*rows: list[float], **fields: list[list[float]]) -> Prices:
    """Prices of a few days, given by hand."""
    dates_D = np.busday_offset("2020-01-01", np.arange(len(rows)), roll="forward")
    arrays = {name: np.array(values) for name, values in fields.items()} | {"close": np.array(rows)}
    return Prices.of(dates_D, tuple("ABCDEFG"[: len(rows[0])]), arrays, "by hand")


@dataclass
class ReferenceAccount:
    """One account in plain Python, stock by stock, sales before purchases."""

    config: MarketConfig
    num_stocks: int
    cash: float = 0.0
    shares: list[float] = field(default_factory=list[float])

    def __post_init__(self) -> None:
        self.cash = self.config.initial_cash
        self.shares = [0.0] * self.num_stocks

    def value(self, close: list[float]) -> float:
        return self.cash + math.fsum(n * p for n, p in zip(self.shares, close, strict=True))

    def trade(self, action: list[float], close: list[float], fill: list[float], is_exit: bool = False) -> None:
        """Give orders at the close and fill them at the next day's prices."""
        commission, slip = self.config.commission_bps / 10_000, self.config.slippage_bps / 10_000
        step = self.config.weight_step or 1 / self.num_stocks
        value = self.value(close)
        weight = [n * p / value for n, p in zip(self.shares, close, strict=True)]
        target = [max(0.0, w + step * min(1.0, max(-1.0, a))) for w, a in zip(weight, action, strict=True)]
        band = self.config.no_trade_band
        band = max(min(0.01, 0.2 / self.num_stocks) if band is None else band, 1e-9)
        for stock, w in enumerate(weight):
            is_sold_out = target[stock] <= 1e-9 and target[stock] < w
            if is_sold_out:
                target[stock] = 0.0
            elif abs(target[stock] - w) < band:
                target[stock] = w
        too_much = max(1.0, math.fsum(target))
        change = [t / too_much - w for t, w in zip(target, weight, strict=True)]
        change = [0.0 if abs(c) < 1e-9 and t > 0 else c for c, t in zip(change, target, strict=True)]
        if is_exit:
            change = [-w for w in weight]
        for stock, (c, w) in enumerate(zip(change, weight, strict=True)):
            if c < 0:
                sold = self.shares[stock] * (-c / w)
                if self.config.whole_shares:
                    sold = math.floor(sold)
                self.shares[stock] -= sold
                self.cash += sold * fill[stock] * (1 - slip) * (1 - commission)
        needed = math.fsum(max(c, 0) * value for c in change) * (1 + commission)
        factor = min(1.0, self.cash / needed) if needed else 1.0
        for stock, c in enumerate(change):
            if c > 0:
                bought = c * value * factor / (fill[stock] * (1 + slip))
                if self.config.whole_shares:
                    bought = math.floor(bought)
                self.shares[stock] += bought
                self.cash -= bought * fill[stock] * (1 + slip) * (1 + commission)


def simulate_actions(days: MarketDays, action_TS: npt.NDArray[np.float64], config: MarketConfig) -> Ledger:
    """The ledger of given actions, one row of actions for each day of the period."""
    actions = iter(torch.as_tensor(action_TS, dtype=torch.float64)[:, None])
    market = Market(days, range(1), 0, replace(config, episode_days=None))
    return simulate(market, lambda _: next(actions))


def train_run(cfg: Config, runs_dir: Path, name: str, seed: int = 0) -> None:
    """Train a run in this process, as `ranks train stock-trading` does with one rank on the CPU."""
    config = RunConfig(runs_dir=runs_dir, name=name, seed=seed, threads=1)
    world = World.join(config, device="cpu", workload="stock-trading")
    try:
        train(cfg, world)
    finally:
        world.leave()


class CountReads(TorchFunctionMode):
    """Counts calls that copy a tensor's values to Python, which on a GPU wait for the device."""

    NAMES = frozenset({"item", "tolist", "numpy", "cpu", "__bool__", "__float__", "__int__", "__index__", "nonzero"})
    count = 0

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.count += getattr(func, "__name__", "") in self.NAMES
        return func(*args, **(kwargs or {}))


DEFAULT = MarketConfig(initial_cash=10_000, episode_days=None)
NO_COSTS = MarketConfig(initial_cash=1000, commission_bps=0, episode_days=None, reward_scale=1.0)
FLAT = of_closes([10.0, 20.0], [10.0, 20.0], [10.0, 20.0], [10.0, 20.0])
