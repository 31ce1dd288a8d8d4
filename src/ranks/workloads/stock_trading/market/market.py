"""The market: a vectorised environment in which thousands of accounts trade, as tensors on one device.

An action is chosen at the close of a day: how the weights of the stocks in the account shall change. Its orders are
filled at the next open (at the next close for close-only prices). The reward is the change of the account's value from
close to close, after costs.

No method waits for the device. With `ruin_fraction` 0 all episodes have the same length and start together, so the host
knows when they end, and `final_obs` is None on other days. With ruin the host cannot know, and `final_obs` is always
set.

Legend: B environments, S stocks, D rows of days, F columns of the feature table, A = S + 2 numbers of an account.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from ranks.engine.sharding import rng
from ranks.errors import UserError
from ranks.rl.environments import Transition
from ranks.workloads.stock_trading.data.market_days import MarketDays
from ranks.workloads.stock_trading.market.config import MarketConfig
from ranks.workloads.stock_trading.market.fills import fill_orders
from ranks.workloads.stock_trading.market.orders import Orders, orders_to, sum_stocks, target_weights, weights_of
from ranks.workloads.stock_trading.market.tradability import Tradability

STATE = ("day", "start_day", "episode", "cash", "shares", "value")


def num_account_features(num_stocks: int) -> int:
    """A: the numbers of `account_features`."""
    return num_stocks + 2


def account_features(cash_B: Tensor, held_BS: Tensor, value_B: Tensor, initial_cash: float) -> Tensor:
    """float64[B, A]: what a policy sees of an account, none of it in units of a price: its cash and the value of each
    holding as fractions of the account's value, and that value as a fraction of the initial cash."""
    cash_B1 = weights_of(cash_B[:, None], value_B)
    return torch.cat([cash_B1, weights_of(held_BS, value_B), value_B[:, None] / initial_cash], 1)


class Market:
    """The environments `ids`. An environment depends only on its id and its actions, on any number of ranks.

    An episode starts with cash only. Its first day is drawn from (seed, environment id, episode number) so that a whole
    episode fits into the period. It is truncated after `episode_days` days and terminated at ruin.
    """

    def __init__(
        self, days: MarketDays, ids: range, seed: int, config: MarketConfig, device: torch.device | str = "cpu"
    ) -> None:
        """Raises UserError if the period is shorter than an episode, or the no-trade band is not below the step."""
        self.days, self.config = days, config
        self.num_environments, self.num_stocks = len(ids), len(days.tickers)
        config.band_of(self.num_stocks)
        self.episode_days = config.episode_days or days.num_days
        """Length of an episode without ruin."""
        if days.num_days < self.episode_days or days.num_days < 1:
            asked = f"episodes of {self.episode_days} days"
            found = f"a period of {days.num_days} days up to {days.dates_D[-1]}"
            raise UserError(asked, found, "shorten the episodes (--market.episode-days), or lengthen the period")
        self.episode_steps = self.episode_days if config.ruin_fraction == 0 else None
        """The length of every episode if all start together; None if ruin may end one earlier."""
        self._table_DF = torch.as_tensor(days.table_DK, dtype=torch.get_default_dtype(), device=device)
        self._close_DS = torch.as_tensor(days.close_DS, dtype=torch.float64, device=device)
        self.fill_DS = torch.as_tensor(days.fill_DS, dtype=torch.float64, device=device)
        """float64[D, S]: price at which the orders of a day are filled, forced sales of delisted stocks included."""
        self._tradability = Tradability.of(days, config.delisted_after, device)
        if self._tradability is not None:
            self.fill_DS = self._tradability.fill_DS(self.fill_DS, self._close_DS, config.recovery)
        self._is_turbulent_D1 = torch.as_tensor(days.is_turbulent_D, device=device)[:, None]
        self._first_item_B = torch.arange(ids.start, ids.stop, dtype=torch.int64, device=device) << 32
        self._key = rng.key(seed, "episode", 0)
        self.episode_B = torch.full((len(ids),), -1, dtype=torch.int64, device=device)
        """int64[B]: number of the running episode."""
        self.reset()

    def reset(self) -> None:
        """Start the next episode in every environment."""
        self.episode_B = self.episode_B + 1
        self.day_B = self.start_day_B = self._start_days(self.episode_B)
        """int64[B]: row of the present day, and row of the first action of the episode."""
        self.cash_B = torch.full_like(self.day_B, self.config.initial_cash, dtype=torch.float64)
        """float64[B]: cash."""
        self.shares_BS = self.cash_B.new_zeros(self.num_environments, self.num_stocks)
        """float64[B, S]: shares held."""
        self.value_B = self.cash_B
        """float64[B]: cash plus the holdings at the close of the present day."""
        self._steps = 0

    def _start_days(self, episode_B: Tensor) -> Tensor:
        num_starts = self.days.num_days - self.episode_days + 1
        drawn_B1 = rng.integers(self._key, self._first_item_B + episode_B, 1, num_starts)
        return drawn_B1[:, 0] + (self.days.window - 1)

    @property
    def table_DF(self) -> Tensor:
        """[D, F] in the default dtype: features of every row on the device; all environments index it by their day."""
        return self._table_DF

    def held_BS(self) -> Tensor:
        """float64[B, S]: the value of each holding at the present close."""
        return self.shares_BS * self._close_DS.index_select(0, self.day_B)

    def weights_BS(self) -> Tensor:
        """float64[B, S]: the value of each holding as a fraction of the account."""
        return weights_of(self.held_BS(), self.value_B)

    def observe(self) -> dict[str, Tensor]:
        """`day`: int64[B], the row of `table_DF` of the present day; later rows are in the future. `account`: [B, A],
        see `account_features`."""
        account_BA = account_features(self.cash_B, self.held_BS(), self.value_B, self.config.initial_cash)
        return {"day": self.day_B, "account": account_BA.to(self._table_DF.dtype)}

    def observation_vector(self) -> Tensor:
        """[B, A + F]: the account and the features of the present day."""
        return self.vector(self.observe())

    def vector(self, observation: Mapping[str, Tensor]) -> Tensor:
        """[B, A + F]: any observation as vectors."""
        return torch.cat([observation["account"], self._table_DF.index_select(0, observation["day"])], 1)

    def advance(self, action_BS: Tensor) -> None:
        """Give orders at the present close and move to the next close. Episodes neither start nor end here."""
        if action_BS.shape != (self.num_environments, self.num_stocks):
            raise ValueError(f"actions of shape {tuple(action_BS.shape)} for {tuple(self.shares_BS.shape)}")
        if self._steps >= self.episode_days and self.episode_steps is not None:
            raise ValueError("the episode is over: reset the market")
        orders, fill_BS = self._orders(action_BS), self.fill_DS.index_select(0, self.day_B)
        self.cash_B, self.shares_BS = fill_orders(self.cash_B, self.shares_BS, orders, fill_BS, self.config)
        self.day_B = self.day_B + 1
        self.value_B = self.cash_B + sum_stocks(self.held_BS())
        self._steps += 1

    def _orders(self, action_BS: Tensor) -> Orders:
        """The orders of the actions that the next day fills. On turbulent days all holdings are sold instead, except
        those of stocks that are suspended today."""
        config, tradability, weight_BS = self.config, self._tradability, self.weights_BS()
        is_traded_BS = None if tradability is None else tradability.is_traded_DS.index_select(0, self.day_B)
        step, band = config.step_of(self.num_stocks), config.band_of(self.num_stocks)
        target_BS = target_weights(action_BS, weight_BS, step, band, is_traded_BS)
        orders = orders_to(target_BS, weight_BS, self.value_B)
        is_exit_B1 = self._is_turbulent_D1.index_select(0, self.day_B)
        sold_BS = 1.0 if is_traded_BS is None else is_traded_BS.double()
        orders = Orders(torch.where(is_exit_B1, sold_BS, orders.sell_BS), torch.where(is_exit_B1, 0.0, orders.buy_BS))
        return orders if tradability is None else tradability.filled(orders, self.day_B)

    def step(self, action_BS: Tensor) -> Transition:
        """`advance`, then start the next episode where one ended. Actions are changes of weights in units of
        `weight_step`, -1 to 1: see `orders.target_weights`. A NaN action makes the account and its reward NaN until the
        episode ends; the collector rejects NaN rewards."""
        before_B = self.value_B
        self.advance(action_BS)
        reward_B = ((self.value_B - before_B) * self.config.reward_scale).to(self._table_DF.dtype)
        if self.episode_steps is None:
            return self._end_on_device(reward_B)
        is_end = self._steps == self.episode_days
        final = self.observe() if is_end else None
        if is_end:
            self.reset()
        ended_B = torch.full_like(self.day_B, is_end, dtype=torch.bool)
        return Transition(reward_B, torch.ones_like(reward_B), ended_B, final)

    def _end_on_device(self, reward_B: Tensor) -> Transition:
        terminated_B = self.value_B <= self.config.ruin_fraction * self.config.initial_cash
        ended_B = terminated_B | (self.day_B - self.start_day_B >= self.episode_days)
        final, running = self.observe(), self.state_dict()
        self.reset()
        for name, new in self.state_dict().items():
            is_new = ended_B[:, None] if new.ndim > 1 else ended_B
            self._set(name, torch.where(is_new, new, running[name]))
        return Transition(reward_B, 1.0 - terminated_B.to(reward_B.dtype), ended_B, final)

    def close(self) -> None:
        """Do nothing: there are only tensors to free."""

    def state_dict(self) -> dict[str, Tensor]:
        """The state, one row for each environment: day, start_day, episode, cash, shares, value."""
        return {name: self._get(name) for name in STATE}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Load the state of these environments. ValueError for another number of environments or stocks."""
        for name in STATE:
            mine = self._get(name)
            if state[name].shape != mine.shape:
                raise ValueError(f"{name} of shape {tuple(state[name].shape)}, not {tuple(mine.shape)}")
            self._set(name, state[name].to(mine))
        if self.num_environments:
            self._steps = int(self.day_B[0] - self.start_day_B[0])

    def _get(self, name: str) -> Tensor:
        return getattr(self, f"{name}_BS" if name == "shares" else f"{name}_B")

    def _set(self, name: str, rows: Tensor) -> None:
        setattr(self, f"{name}_BS" if name == "shares" else f"{name}_B", rows)
