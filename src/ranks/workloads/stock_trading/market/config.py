"""Settings of the market. Imports no torch."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from ranks.errors import UserError


@dataclass(frozen=True)
class MarketConfig:
    """Orders, trading costs, episodes and rewards. Cash, costs and rewards are those of the paper (Zou et al. 2022,
    arXiv 2212.02721)."""

    initial_cash: float = 1e6
    """Cash at the start of each episode, in the currency of the prices."""
    weight_step: float | None = None
    """How much an action of 1 raises the weight of a stock in the account in a day, and an action of -1 lowers it;
    none: 1 / number of stocks."""
    no_trade_band: float | None = None
    """An action that would change the weight of a stock by less than this does not trade it, except that a weight of 0
    sells the whole holding; none: 0.2 / number of stocks, at most 0.01. Below the step of a day."""
    commission_bps: float = 10.0
    """Commission on purchases and on sales, in basis points of the traded value."""
    slippage_bps: float = 0.0
    """How much worse than the market price an order is filled, in basis points."""
    whole_shares: bool = False
    """Buy and sell whole shares only. Adjusted prices do not tell how many shares a sum bought on its day."""
    delisted_after: int = 20
    """A stock without a price on this many days in a row is taken as delisted: its holders are sold out by force."""
    recovery: float = 0.7
    """The fraction of its last price at which a delisted stock is sold by force."""
    episode_days: int | None = 252
    """Trading days of an episode; none: the whole period."""
    reward_scale: float = 1e-4
    """Reward for a gain of one unit of the currency, after costs."""
    turbulence_exit: float | None = None
    """Sell all holdings and buy nothing after a day whose turbulence is above this quantile of the training days
    (paper: 0.9); none: off."""
    ruin_fraction: float = 0.0
    """Terminate an episode when the account is worth this fraction of the initial cash or less; 0: never."""

    def step_of(self, num_stocks: int) -> float:
        """`weight_step`, or its default for this number of stocks."""
        return 1 / num_stocks if self.weight_step is None else self.weight_step

    def band_of(self, num_stocks: int) -> float:
        """`no_trade_band`, or its default for this number of stocks. Raises UserError if it is the step or more, with
        which no action could trade."""
        band, step = self.no_trade_band, self.step_of(num_stocks)
        if band is None:
            band = min(0.01, 0.2 / num_stocks)
        if band >= step:
            found = f"a step of {step:g} a day for {num_stocks} stocks, so that nothing would ever be traded"
            do = "give a band below the step, or a larger step (--market.weight-step)"
            raise UserError(f"a no-trade band of {band:g} (--market.no-trade-band)", found, do)
        return band

    @property
    def commission(self) -> float:
        """As a fraction of the traded value."""
        return self.commission_bps * 1e-4

    @property
    def slippage(self) -> float:
        """As a fraction of the market price."""
        return self.slippage_bps * 1e-4

    def __post_init__(self) -> None:
        for name in ("initial_cash", "reward_scale"):
            self._check(name, lambda value: 0 < value < math.inf, "a number above 0")
        for name in ("commission_bps", "slippage_bps"):
            self._check(name, lambda value: 0 <= value <= 1_000, "0 to 1,000 basis points")
        if self.weight_step is not None:
            self._check("weight_step", lambda value: 0 < value <= 1, "a weight above 0, at most 1")
        if self.no_trade_band is not None:
            self._check("no_trade_band", lambda value: 0 <= value < 1, "a weight from 0 to less than 1")
        self._check("recovery", lambda value: 0 <= value <= 1, "a fraction from 0 to 1")
        self._check("ruin_fraction", lambda value: 0 <= value < 1, "a fraction from 0 to less than 1")
        self._check("delisted_after", lambda value: value >= 1, "1 day or more")
        if self.episode_days is not None:
            self._check("episode_days", lambda value: value >= 1, "1 or more")
        if self.turbulence_exit is not None:
            self._check("turbulence_exit", lambda value: 0 < value < 1, "a quantile between 0 and 1, for example 0.9")

    def _check(self, name: str, is_valid: Callable[[float], bool], wanted: str) -> None:
        if not is_valid(value := vars(self)[name]):
            raise UserError(f"--market.{name.replace('_', '-')} {value}", "a value out of range", f"give {wanted}")
