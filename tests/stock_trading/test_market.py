"""The market: against a plain account, fills, costs, exits, episodes, ruin, states, any deal of environments."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from ranks.errors import UserError
from ranks.rl.environments import Transition
from ranks.workloads.stock_trading.data.prices import Prices
from ranks.workloads.stock_trading.market.config import MarketConfig
from ranks.workloads.stock_trading.market.fills import sum_stocks
from ranks.workloads.stock_trading.market.market import Market

from .fixtures import ReferenceAccount, bars, days, of_closes, stocks

PLAIN = MarketConfig(initial_cash=10_000, max_shares=40, episode_days=None)
FREE = MarketConfig(initial_cash=1000, max_shares=100, commission_bps=0, episode_days=None, reward_scale=1.0)
CONFIGS = {
    "whole shares": PLAIN,
    "fractions": replace(PLAIN, whole_shares=False),
    "slippage, no fee": replace(PLAIN, commission_bps=0, slippage_bps=25),
    "dear": replace(PLAIN, commission_bps=500, slippage_bps=300, whole_shares=False),
    "more than the cash": replace(PLAIN, max_shares=100_000),
    "fractions, more than the cash": replace(PLAIN, max_shares=100_000, whole_shares=False),
}


def random_actions(num_steps: int, num: int, num_stocks: int, seed: int = 0) -> Tensor:
    """[T, B, S], some of them beyond -1..1."""
    return torch.rand((num_steps, num, num_stocks), generator=torch.Generator().manual_seed(seed)) * 3 - 1.5


def play(market: Market, action_TBS: Tensor) -> list[tuple[dict[str, Tensor], Transition]]:
    """(observation before, transition) of each step."""
    return [(market.observe(), market.step(action_BS)) for action_BS in action_TBS]


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
@pytest.mark.parametrize("prices", [bars(60, 5, 3), bars(60, 1, 4).only(("S0",)), stocks().take(range(6500, 6560))])
def test_an_account_equals_a_plain_one(prices: Prices, config: MarketConfig) -> None:
    turbulent = (10, 11, 30)
    market = Market(days(prices, turbulent=turbulent), range(3), 0, config)
    reference = [ReferenceAccount(config, prices.num_stocks) for _ in range(3)]
    action_TBS = random_actions(prices.num_days - 1, 3, prices.num_stocks)
    fill_DS = prices.fill_DS()
    for day, action_BS in enumerate(action_TBS):
        market.advance(action_BS)
        for row, account in enumerate(reference):
            account.trade(action_BS[row].tolist(), fill_DS[day].tolist(), day in turbulent)
            assert market.shares_BS[row].tolist() == pytest.approx(account.shares, rel=1e-9, abs=1e-9)
            assert market.cash_B[row].item() == pytest.approx(account.cash, abs=1e-6)
            assert market.value_B[row].item() == pytest.approx(account.value(prices.close_DS[day + 1].tolist()))
        assert (market.cash_B >= 0).all()
        assert (market.shares_BS >= 0).all()
        if day in turbulent:
            assert (market.shares_BS == 0).all()


def test_orders_are_filled_at_the_next_open() -> None:
    prices = of_closes([10.0], [20.0], [30.0], open=[[9.0], [15.0], [25.0]], high=[[99.0]] * 3, low=[[1.0]] * 3)
    market = Market(days(prices), range(1), 0, FREE)
    assert market.step(torch.tensor([[0.1]])).reward_B.item() == 10 * (20 - 15)
    assert market.cash_B.item() == 1000 - 10 * 15
    assert market.observe()["account"][0].tolist() == pytest.approx([0.85, 0.2, 1.05])


def test_closes_alone_are_filled_at_the_next_close() -> None:
    market = Market(days(of_closes([10.0], [20.0], [30.0])), range(1), 0, FREE)
    assert market.step(torch.tensor([[0.1]])).reward_B.item() == 0
    assert market.cash_B.item() == 1000 - 10 * 20


def test_sales_pay_for_purchases_and_both_sides_pay() -> None:
    prices = of_closes([10.0, 10.0], [10.0, 10.0], [10.0, 10.0])
    config = replace(FREE, initial_cash=1000, commission_bps=100, slippage_bps=1000, whole_shares=False, max_shares=50)
    market = Market(days(prices), range(1), 0, config)
    market.advance(torch.tensor([[1.0, 0.0]]))  # 50 at 11, and 1 % of 550
    assert market.cash_B.item() == pytest.approx(1000 - 550 - 5.5)
    market.advance(torch.tensor([[-1.0, 2.0]]))  # 50 at 9, less 1 %; then 50 of the other
    assert market.cash_B.item() == pytest.approx(444.5 + 450 - 4.5 - 555.5)
    assert market.shares_BS.tolist() == [[0, 50]]


def test_a_share_of_the_cash_buys_alike_of_all() -> None:
    prices = of_closes([10.0, 20.0], [10.0, 20.0], [10.0, 20.0])
    market = Market(days(prices), range(1), 0, replace(FREE, initial_cash=905))
    market.advance(torch.tensor([[0.4, 0.8]]))  # 40 and 80 cost 2000; a share of 0.4525 is 18.1 and 36.2
    assert market.shares_BS.tolist() == [[18, 36]]
    assert market.cash_B.item() == 905 - 180 - 720


def test_fractions_of_an_order_are_cut_towards_zero() -> None:
    market = Market(days(of_closes([1.0, 1.0], [1.0, 1.0], [1.0, 1.0])), range(1), 0, FREE)
    market.advance(torch.tensor([[0.199, 0.5]]))
    market.advance(torch.tensor([[-0.0199, -0.0501]]))
    assert market.shares_BS.tolist() == [[18, 45]]


def test_episodes_are_cut_off_and_begin_again() -> None:
    market = Market(days(bars(60, 2, 0), window=5), range(50), 7, replace(PLAIN, episode_days=20))
    assert market.episode_steps == 20
    assert market.day_B.min() >= 4
    assert market.day_B.max() <= 4 + 55 - 20
    start_B, steps = market.day_B.clone(), play(market, random_actions(40, 50, 2))
    for number, (_, moved) in enumerate(steps, start=1):
        is_end = number % 20 == 0
        assert (moved.ended_B == is_end).all()
        assert (moved.discount_B == 1).all()
        assert (moved.final_obs is not None) is is_end
    final = steps[19][1].final_obs
    assert final is not None
    assert (final["day"] == start_B + 20).all()
    assert (final["account"][:, -1] != 1).any()
    observation = steps[20][0]
    assert (observation["account"] == torch.tensor([1.0, 0, 0, 1.0])).all()
    assert (observation["day"] != start_B).any()
    assert (market.episode_B == 2).all()


def test_every_day_that_a_whole_episode_fits_after_is_drawn() -> None:
    market = Market(days(bars(30, 1, 0), window=3), range(600), 1, replace(PLAIN, episode_days=20))
    first_B = market.day_B
    assert sorted(set(first_B.tolist())) == list(range(2, 2 + 27 - 20 + 1))
    market.reset()
    assert 0.05 < (market.day_B == first_B).double().mean() < 0.25  # one in eight by chance
    other = Market(market.days, range(600), 2, market.config)
    assert not torch.equal(other.day_B, first_B)


def test_the_whole_period_is_one_episode() -> None:
    market = Market(days(bars(30, 1, 0), window=3), range(4), 1, PLAIN)
    assert (market.day_B == 2).all()
    final = play(market, random_actions(27, 4, 1))[-1][1].final_obs
    assert final is not None
    assert (final["day"] == 29).all()
    assert (market.day_B == 2).all()


def test_a_period_shorter_than_an_episode_is_refused() -> None:
    with pytest.raises(UserError, match="a period of 27 days"):
        Market(days(bars(30, 1, 0), window=3), range(4), 1, replace(PLAIN, episode_days=28))


def test_beyond_the_end_there_is_no_day() -> None:
    market = Market(days(bars(3, 1, 0)), range(1), 0, PLAIN)
    for _ in range(2):
        market.advance(torch.zeros(1, 1))
    with pytest.raises(ValueError, match="reset"):
        market.advance(torch.zeros(1, 1))
    with pytest.raises(ValueError, match="shape"):
        market.step(torch.zeros(1, 2))


CRASH = of_closes([10.0], [10.0], [1.0], [10.0], [10.0], [10.0])


def test_ruin_ends_for_good_and_the_others_go_on() -> None:
    market = Market(days(CRASH), range(2), 0, replace(FREE, ruin_fraction=0.2))
    assert market.episode_steps is None
    steps = play(market, torch.tensor([[[1.0], [0.5]], [[0.0], [0.0]], [[0.0], [0.0]]]))
    for number, (_, moved) in enumerate(steps):
        assert moved.final_obs is not None  # the host cannot know
        assert moved.ended_B.tolist() == [number == 1, False]
        assert moved.discount_B.tolist() == [0.0 if number == 1 else 1.0, 1.0]
    final = steps[1][1].final_obs
    assert final is not None
    assert final["account"][0].tolist() == pytest.approx([0.0, 0.1, 0.1])
    assert steps[2][0]["account"].tolist() == [[1.0, 0.0, 1.0], [0.5, pytest.approx(0.05), pytest.approx(0.55)]]
    assert market.episode_B.tolist() == [1, 0]
    assert market.day_B.tolist() == [1, 3]


def test_an_end_that_is_no_ruin_keeps_its_discount() -> None:
    market = Market(days(CRASH), range(2), 0, replace(FREE, ruin_fraction=0.2))
    *_, last = play(market, torch.zeros(5, 2, 1))
    assert last[1].ended_B.all()
    assert (last[1].discount_B == 1).all()
    assert (market.episode_B == 1).all()


@pytest.mark.parametrize("ruin_fraction", [0.0, 0.97])
def test_any_deal_of_environments_plays_the_same_bits(ruin_fraction: float) -> None:
    prices, action_TBS = bars(80, 7, 0), random_actions(45, 12, 7)
    config = replace(PLAIN, episode_days=20, ruin_fraction=ruin_fraction)
    whole = Market(days(prices), range(100, 112), 5, config)
    together = play(whole, action_TBS)
    for edges in ([0, 12], [0, 1, 12], [0, 5, 7, 12], [0, 0, 4, 8, 12]):
        parts = [range(100 + a, 100 + b) for a, b in itertools.pairwise(edges)]
        markets = [Market(days(prices), ids, 5, config) for ids in parts]
        apart = [
            play(m, action_TBS[:, ids.start - 100 : ids.stop - 100]) for m, ids in zip(markets, parts, strict=True)
        ]
        for step, (observation, moved) in enumerate(together):
            for name, rows in observation.items():
                assert torch.equal(rows, torch.cat([played[step][0][name] for played in apart]))
            assert torch.equal(moved.reward_B, torch.cat([played[step][1].reward_B for played in apart]))
            assert torch.equal(moved.ended_B, torch.cat([played[step][1].ended_B for played in apart]))
    if ruin_fraction:
        assert any((moved.discount_B == 0).any() for _, moved in together)


@pytest.mark.parametrize("ruin_fraction", [0.0, 0.97])
def test_a_state_goes_on_where_it_was(ruin_fraction: float) -> None:
    prices, action_TBS = bars(80, 4, 0), random_actions(50, 6, 4)
    config = replace(PLAIN, episode_days=20, ruin_fraction=ruin_fraction)
    market = Market(days(prices), range(6), 5, config)
    play(market, action_TBS[:27])
    state = {name: rows.clone() for name, rows in market.state_dict().items()}
    assert all(len(rows) == 6 for rows in state.values())
    straight = play(market, action_TBS[27:])
    resumed = Market(days(prices), range(2, 5), 5, config)
    resumed.load_state_dict({name: rows[2:5] for name, rows in state.items()})
    for (seen, moved), (seen_again, moved_again) in zip(straight, play(resumed, action_TBS[27:, 2:5]), strict=True):
        assert torch.equal(seen["account"][2:5], seen_again["account"])
        assert torch.equal(moved.reward_B[2:5], moved_again.reward_B)
        assert (moved.final_obs is None) == (moved_again.final_obs is None)
    with pytest.raises(ValueError, match="shape"):
        resumed.load_state_dict(state)


def test_what_was_observed_stays_as_it_was() -> None:
    market = Market(days(bars(30, 2, 0)), range(4), 0, replace(PLAIN, episode_days=5))
    seen = market.observe()
    copies = {name: rows.clone() for name, rows in seen.items()}
    play(market, random_actions(12, 4, 2))
    assert all(torch.equal(seen[name], rows) for name, rows in copies.items())


class Reads(TorchFunctionMode):
    """Counts what turns a tensor's values into Python's, which on a GPU means to wait for it."""

    NAMES = frozenset({"item", "tolist", "numpy", "cpu", "__bool__", "__float__", "__int__", "__index__", "nonzero"})
    count = 0

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.count += getattr(func, "__name__", "") in self.NAMES
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("ruin_fraction", [0.0, 0.5])
def test_the_host_never_waits_for_the_device(ruin_fraction: float) -> None:
    market = Market(days(bars(30, 2, 0)), range(4), 0, replace(PLAIN, episode_days=5, ruin_fraction=ruin_fraction))
    action_TBS = random_actions(12, 4, 2)
    with Reads() as reads:
        play(market, action_TBS)
        assert reads.count == 0
        market.cash_B[0].item()
        assert reads.count == 1


def test_the_tree_adds_up_any_number_of_stocks() -> None:
    for num in (1, 2, 3, 5, 20, 30):
        values_BS = torch.rand(4, num, dtype=torch.float64)
        torch.testing.assert_close(sum_stocks(values_BS), values_BS.sum(1), rtol=1e-14, atol=0)


@pytest.mark.parametrize(
    "wrong",
    [
        {"initial_cash": 0.0},
        {"max_shares": 0},
        {"commission_bps": -1.0},
        {"slippage_bps": 10_000.0},
        {"episode_days": 0},
        {"reward_scale": float("nan")},
        {"turbulence_exit": 1.5},
        {"ruin_fraction": 1.0},
    ],
)
def test_markets_that_are_none(wrong: dict[str, Any]) -> None:
    with pytest.raises(UserError, match=r"--market\."):
        replace(MarketConfig(), **wrong)
