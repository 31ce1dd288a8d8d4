"""The market against a reference account; episodes, ruin, saved state, any number of ranks."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from ranks.errors import UserError
from ranks.rl.environments import Transition
from ranks.workloads.stock_trading.data.prices import Prices
from ranks.workloads.stock_trading.market.config import MarketConfig
from ranks.workloads.stock_trading.market.market import Market
from ranks.workloads.stock_trading.market.orders import sum_stocks

from ..fixtures import DEFAULT, FLAT, NO_COSTS, CountReads, ReferenceAccount, bars, days, of_closes, stocks

CONFIGS = {
    "default": DEFAULT,
    "whole shares": replace(DEFAULT, whole_shares=True),
    "slippage, no commission": replace(DEFAULT, commission_bps=0, slippage_bps=25),
    "high costs": replace(DEFAULT, commission_bps=500, slippage_bps=300),
    "small steps": replace(DEFAULT, weight_step=0.03),
    "large steps, wide band": replace(DEFAULT, weight_step=1.0, no_trade_band=0.2),
    "no band, whole shares": replace(DEFAULT, no_trade_band=0.0, whole_shares=True),
}


def random_actions(num_steps: int, num: int, num_stocks: int, seed: int = 0) -> Tensor:
    """[T, B, S], some of them outside -1..1."""
    return torch.rand((num_steps, num, num_stocks), generator=torch.Generator().manual_seed(seed)) * 3 - 1.5


def run_steps(market: Market, action_TBS: Tensor) -> list[tuple[dict[str, Tensor], Transition]]:
    """(observation before, transition) of each step."""
    return [(market.observe(), market.step(action_BS)) for action_BS in action_TBS]


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
@pytest.mark.parametrize("prices", [bars(60, 5, 3), bars(60, 1, 4).only(("S0",)), stocks().take(range(6500, 6560))])
def test_market_equals_the_reference_account(prices: Prices, config: MarketConfig) -> None:
    turbulent = (10, 11, 30)
    market = Market(days(prices, turbulent=turbulent), range(3), 0, config)
    reference = [ReferenceAccount(config, prices.num_stocks) for _ in range(3)]
    action_TBS = random_actions(prices.num_days - 1, 3, prices.num_stocks)
    close_DS, fill_DS = prices.close_DS, prices.fill_DS()
    for day, action_BS in enumerate(action_TBS):
        market.advance(action_BS)
        for row, account in enumerate(reference):
            account.trade(action_BS[row].tolist(), close_DS[day].tolist(), fill_DS[day].tolist(), day in turbulent)
            assert market.shares_BS[row].tolist() == pytest.approx(account.shares, rel=1e-9, abs=1e-9)
            assert market.cash_B[row].item() == pytest.approx(account.cash, abs=1e-6)
            assert market.value_B[row].item() == pytest.approx(account.value(close_DS[day + 1].tolist()))
        assert (market.cash_B >= 0).all()
        assert (market.shares_BS >= 0).all()
        if day in turbulent:
            assert (market.shares_BS == 0).all()


def test_nan_actions_make_nan_rewards() -> None:
    market = Market(days(FLAT), range(2), 0, NO_COSTS)
    reward_B = market.step(torch.tensor([[0.5, torch.nan], [0.5, 0.5]])).reward_B
    assert reward_B.isnan().tolist() == [True, False]


def test_episodes_are_truncated_and_reset() -> None:
    market = Market(days(bars(60, 2, 0), window=5), range(50), 7, replace(DEFAULT, episode_days=20))
    assert market.episode_steps == 20
    assert market.day_B.min() >= 4
    assert market.day_B.max() <= 4 + 55 - 20
    start_B, steps = market.day_B.clone(), run_steps(market, random_actions(40, 50, 2))
    for number, (_, transition) in enumerate(steps, start=1):
        is_end = number % 20 == 0
        assert (transition.ended_B == is_end).all()
        assert (transition.discount_B == 1).all()
        assert (transition.final_obs is not None) is is_end
    final = steps[19][1].final_obs
    assert isinstance(final, dict)
    assert (final["day"] == start_B + 20).all()
    assert (final["account"][:, -1] != 1).any()
    observation = steps[20][0]
    assert (observation["account"] == torch.tensor([1.0, 0, 0, 1.0])).all()
    assert (observation["day"] != start_B).any()
    assert (market.episode_B == 2).all()


def test_start_days_cover_all_days_with_room_for_an_episode() -> None:
    market = Market(days(bars(30, 1, 0), window=3), range(600), 1, replace(DEFAULT, episode_days=20))
    first_B = market.day_B
    assert sorted(set(first_B.tolist())) == list(range(2, 2 + 27 - 20 + 1))
    market.reset()
    assert 0.05 < (market.day_B == first_B).double().mean() < 0.25  # one in eight by chance
    other = Market(market.days, range(600), 2, market.config)
    assert not torch.equal(other.day_B, first_B)


def test_episode_can_be_the_whole_period() -> None:
    market = Market(days(bars(30, 1, 0), window=3), range(4), 1, DEFAULT)
    assert (market.day_B == 2).all()
    final = run_steps(market, random_actions(27, 4, 1))[-1][1].final_obs
    assert isinstance(final, dict)
    assert (final["day"] == 29).all()
    assert (market.day_B == 2).all()


def test_periods_shorter_than_an_episode_are_rejected() -> None:
    with pytest.raises(UserError, match="a period of 27 days"):
        Market(days(bars(30, 1, 0), window=3), range(4), 1, replace(DEFAULT, episode_days=28))


def test_steps_beyond_the_end_raise() -> None:
    market = Market(days(bars(3, 1, 0)), range(1), 0, DEFAULT)
    for _ in range(2):
        market.advance(torch.zeros(1, 1))
    with pytest.raises(ValueError, match="reset"):
        market.advance(torch.zeros(1, 1))
    with pytest.raises(ValueError, match="shape"):
        market.step(torch.zeros(1, 2))


CRASH = of_closes([10.0], [10.0], [1.0], [10.0], [10.0], [10.0])


def test_ruin_terminates_only_its_environment() -> None:
    market = Market(days(CRASH), range(2), 0, replace(NO_COSTS, ruin_fraction=0.2))
    assert market.episode_steps is None
    steps = run_steps(market, torch.tensor([[[1.0], [0.5]], [[0.0], [0.0]], [[0.0], [0.0]]]))
    for number, (_, transition) in enumerate(steps):
        assert transition.final_obs is not None  # the host cannot know
        assert transition.ended_B.tolist() == [number == 1, False]
        assert transition.discount_B.tolist() == [0.0 if number == 1 else 1.0, 1.0]
    final = steps[1][1].final_obs
    assert isinstance(final, dict)
    assert final["account"][0].tolist() == pytest.approx([0.0, 1.0, 0.1])
    assert steps[2][0]["account"].tolist() == [[1.0, 0.0, 1.0], pytest.approx([0.5 / 0.55, 0.05 / 0.55, 0.55])]
    assert market.episode_B.tolist() == [1, 0]
    assert market.day_B.tolist() == [1, 3]


def test_truncation_keeps_discount_1() -> None:
    market = Market(days(CRASH), range(2), 0, replace(NO_COSTS, ruin_fraction=0.2))
    *_, last = run_steps(market, torch.zeros(5, 2, 1))
    assert last[1].ended_B.all()
    assert (last[1].discount_B == 1).all()
    assert (market.episode_B == 1).all()


@pytest.mark.parametrize("ruin_fraction", [0.0, 0.97])
def test_environments_are_equal_bit_for_bit_on_any_ranks(ruin_fraction: float) -> None:
    prices, action_TBS = bars(80, 7, 0), random_actions(45, 12, 7)
    config = replace(DEFAULT, episode_days=20, ruin_fraction=ruin_fraction)
    whole = Market(days(prices), range(100, 112), 5, config)
    together = run_steps(whole, action_TBS)
    for edges in ([0, 12], [0, 1, 12], [0, 5, 7, 12], [0, 0, 4, 8, 12]):
        parts = [range(100 + a, 100 + b) for a, b in itertools.pairwise(edges)]
        markets = [Market(days(prices), ids, 5, config) for ids in parts]
        apart = [
            run_steps(m, action_TBS[:, ids.start - 100 : ids.stop - 100]) for m, ids in zip(markets, parts, strict=True)
        ]
        for step, (observation, transition) in enumerate(together):
            for name, rows in observation.items():
                assert torch.equal(rows, torch.cat([steps_of[step][0][name] for steps_of in apart]))
            assert torch.equal(transition.reward_B, torch.cat([steps_of[step][1].reward_B for steps_of in apart]))
            assert torch.equal(transition.ended_B, torch.cat([steps_of[step][1].ended_B for steps_of in apart]))
    if ruin_fraction:
        assert any((transition.discount_B == 0).any() for _, transition in together)


@pytest.mark.parametrize("ruin_fraction", [0.0, 0.97])
def test_saved_state_resumes(ruin_fraction: float) -> None:
    prices, action_TBS = bars(80, 4, 0), random_actions(50, 6, 4)
    config = replace(DEFAULT, episode_days=20, ruin_fraction=ruin_fraction)
    market = Market(days(prices), range(6), 5, config)
    run_steps(market, action_TBS[:27])
    state = {name: rows.clone() for name, rows in market.state_dict().items()}
    assert all(len(rows) == 6 for rows in state.values())
    uninterrupted = run_steps(market, action_TBS[27:])
    resumed = Market(days(prices), range(2, 5), 5, config)
    resumed.load_state_dict({name: rows[2:5] for name, rows in state.items()})
    for (seen, transition), (resumed_obs, resumed_transition) in zip(
        uninterrupted, run_steps(resumed, action_TBS[27:, 2:5]), strict=True
    ):
        assert torch.equal(seen["account"][2:5], resumed_obs["account"])
        assert torch.equal(transition.reward_B[2:5], resumed_transition.reward_B)
        assert (transition.final_obs is None) == (resumed_transition.final_obs is None)
    with pytest.raises(ValueError, match="shape"):
        resumed.load_state_dict(state)


def test_observations_are_not_modified_later() -> None:
    market = Market(days(bars(30, 2, 0)), range(4), 0, replace(DEFAULT, episode_days=5))
    seen = market.observe()
    copies = {name: rows.clone() for name, rows in seen.items()}
    run_steps(market, random_actions(12, 4, 2))
    assert all(torch.equal(seen[name], rows) for name, rows in copies.items())


@pytest.mark.parametrize("ruin_fraction", [0.0, 0.5])
def test_steps_do_not_wait_for_the_device(ruin_fraction: float) -> None:
    market = Market(days(bars(30, 2, 0)), range(4), 0, replace(DEFAULT, episode_days=5, ruin_fraction=ruin_fraction))
    action_TBS = random_actions(12, 4, 2)
    with CountReads() as counter:
        run_steps(market, action_TBS)
        assert counter.count == 0
        market.cash_B[0].item()
        assert counter.count == 1


def test_pairwise_sum_of_any_number_of_stocks() -> None:
    for num in (1, 2, 3, 5, 20, 30):
        values_BS = torch.rand(4, num, dtype=torch.float64)
        torch.testing.assert_close(sum_stocks(values_BS), values_BS.sum(1), rtol=1e-14, atol=0)


@pytest.mark.parametrize(
    "wrong",
    [
        {"initial_cash": 0.0},
        {"weight_step": 0.0},
        {"no_trade_band": -0.01},
        {"recovery": 1.1},
        {"delisted_after": 0},
        {"commission_bps": -1.0},
        {"slippage_bps": 10_000.0},
        {"episode_days": 0},
        {"reward_scale": float("nan")},
        {"turbulence_exit": 1.5},
        {"ruin_fraction": 1.0},
    ],
)
def test_invalid_market_configs_are_rejected(wrong: dict[str, Any]) -> None:
    with pytest.raises(UserError, match=r"--market\."):
        replace(MarketConfig(), **wrong)
