"""Settings of the market. Imports no torch."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from ranks.errors import UserError


@dataclass(frozen=True)
class MarketConfig:
    """What trading costs, how an episode begins and ends, and what it is rewarded by. The paper's values (Zou et al.
    2022, arXiv 2212.02721) but for the length of an episode."""

    initial_cash: float = 1e6
    """Money at the start of each episode, in the prices' currency."""
    max_shares: int = 100
    """Shares of one stock that an action of 1 buys, or of -1 sells, in a day."""
    cost_bps: float = 10.0
    """Fee on what is bought and on what is sold, in hundredths of a per cent of its price."""
    slippage_bps: float = 0.0
    """How much worse than the market's price an order is filled, in hundredths of a per cent."""
    whole_shares: bool = True
    """Buy and sell whole shares only."""
    episode_days: int | None = 252
    """Trading days of an episode; none: the whole period."""
    reward_scale: float = 1e-4
    """Reward for a gain of one unit of money, after costs."""
    turbulence_exit: float | None = None
    """Sell all and buy nothing after a day more turbulent than this share of the training days; the paper: 0.9."""
    ruin_share: float = 0.0
    """An episode ends for good where no more than this share of the initial cash is left; 0: never."""

    @property
    def fee(self) -> float:
        """As a share of the money that changes hands."""
        return self.cost_bps * 1e-4

    @property
    def slippage(self) -> float:
        """As a share of the market's price."""
        return self.slippage_bps * 1e-4

    def __post_init__(self) -> None:
        for name in ("initial_cash", "max_shares", "reward_scale"):
            self._check(name, lambda value: 0 < value < math.inf, "a number above 0")
        for name in ("cost_bps", "slippage_bps"):
            self._check(name, lambda value: 0 <= value <= 1_000, "0 to 1,000 (a tenth of the price)")
        self._check("ruin_share", lambda value: 0 <= value < 1, "a share from 0 to less than 1")
        if self.episode_days is not None:
            self._check("episode_days", lambda value: value >= 1, "1 or more")
        if self.turbulence_exit is not None:
            self._check("turbulence_exit", lambda value: 0 < value < 1, "a share between 0 and 1, such as 0.9")

    def _check(self, name: str, is_good: Callable[[float], bool], wanted: str) -> None:
        if not is_good(value := vars(self)[name]):
            raise UserError(f"--market.{name.replace('_', '-')} {value}", "no such market", f"give {wanted}")
