"""Training and evaluation: PPO in a market of many accounts."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torch import nn

from ranks.engine.distributed.world import World
from ranks.engine.runs.run import Run
from ranks.engine.runs.summary import Summary
from ranks.engine.update.learner import Learner
from ranks.engine.update.loss import Loss
from ranks.rl import ppo
from ranks.rl.collector import Collector
from ranks.rl.config import PPOConfig
from ranks.rl.environments import MakeVecEnv
from ranks.rl.rollouts.rollout import Rollout
from ranks.workloads.stock_trading.config import Config
from ranks.workloads.stock_trading.data.config import DataConfig
from ranks.workloads.stock_trading.data.market_days import MarketDays
from ranks.workloads.stock_trading.data.periods import get_test_rows, load_prices, prepare_periods, resolve_dates
from ranks.workloads.stock_trading.market.market import Market, num_account_features
from ranks.workloads.stock_trading.policy.backtest import backtest
from ranks.workloads.stock_trading.policy.market_policy import MarketPolicy
from ranks.workloads.stock_trading.policy.preprocessing import market_days_for, set_preprocessing
from ranks.workloads.stock_trading.policy.trading_policy import MarketInputs, TradingPolicy


def build(cfg: Config) -> TradingPolicy:
    """The untrained policy, without preprocessing statistics. Reads no prices if the config names its tickers."""
    num_stocks, m, f = len(cfg.data.tickers or load_prices(cfg.data).tickers), cfg.model, cfg.periods.features
    widths = (num_stocks, num_stocks * len(f.names) + f.turbulence, num_account_features(num_stocks))
    sizes = (m.window, m.stride, m.feature_hidden, m.hidden)
    return TradingPolicy(*widths, m.kind, *sizes, m.log_std, f.clip, m.activation)


def trading_loss(policy: TradingPolicy, part: Rollout, *, cfg: PPOConfig, inputs: MarketInputs) -> Loss:
    """The PPO loss of one minibatch. `inputs`: what the policy reads of the training days."""
    return ppo.ppo_loss(MarketPolicy(policy, inputs), part, cfg=cfg)


def read_training_days(policy: TradingPolicy, days: MarketDays, world: World) -> MarketInputs:
    """What the policy, which is on the device already, reads of the training days."""
    return policy.read(torch.as_tensor(days.table_DK, dtype=torch.get_default_dtype(), device=world.device))


def make_collector(
    policy: TradingPolicy, inputs: MarketInputs, market: MakeVecEnv, cfg: Config, world: World
) -> Collector:
    """The collector of a training. Minibatches hold single days where accounts carry no state."""
    market_policy, cut_time = MarketPolicy(policy, inputs), not policy.is_recurrent
    return Collector(market_policy, market, cfg.global_batch, cfg.n_steps, cfg.ppo, world, cut_time=cut_time)


def train(cfg: Config, world: World) -> Summary:
    """Train the policy: collect a rollout in the market, then update, `cfg.iterations` times."""
    prices = load_prices(cfg.data)
    cfg = replace(cfg, data=resolve_dates(cfg.periods, prices))
    periods = prepare_periods(cfg.periods, prices)
    market = partial(Market, periods.train, seed=world.seed, config=cfg.market, device=world.device)
    policy = build(cfg)
    set_preprocessing(policy, periods)
    updates = cfg.iterations * cfg.ppo.epochs * cfg.ppo.minibatches
    learner = Learner(policy, cfg.optim, world, global_batch=cfg.global_batch, updates=updates)
    inputs = read_training_days(policy, periods.train, world)
    collector = make_collector(policy, inputs, market, cfg, world)
    loss = partial(trading_loss, cfg=cfg.ppo, inputs=inputs)
    with Run.open(cfg, world, keep=dict(learner=learner, collector=collector), data=sha256_of(periods.train)) as run:
        run.session.note(describe_periods(cfg.data))
        for note in prices.notes:
            run.session.warn(note)
        for iteration in run.iterations(cfg.iterations, long=True):
            rollout = collector.collect(MarketPolicy(policy, inputs), iteration)
            run.log(ppo.update(learner, loss, rollout, collector.ids, cfg.ppo, iteration))
            run.log(collector.statistics(), prefix="rollout")
            if run.every(cfg.eval_every) and periods.validation is not None:
                ledger = backtest(policy, periods.validation, cfg.market, world.device, world)
                run.log(ledger.metrics(), prefix="val")
                run.save()
    return run.finish(export=policy)


def evaluate(model: nn.Module, cfg: Config, world: World) -> dict[str, float]:
    """Performance metrics of a backtest of the test period, with costs."""
    assert isinstance(model, TradingPolicy)
    prices = load_prices(cfg.data)
    rows = get_test_rows(resolve_dates(cfg.periods, prices), cfg.model.window, prices)
    days = market_days_for(model, prices, rows, cfg.periods.features)
    return backtest(model, days, cfg.market, world.device, world).metrics()


def describe_periods(data: DataConfig) -> str:
    """One line with the training and the test period of a config with resolved dates."""
    periods = f"train {data.train_from} to {data.train_to}, test {data.test_from} to {data.test_to}"
    return f"{data.source}: {len(data.tickers)} stocks, {periods}, embargo {data.embargo_days} trading days"


def sha256_of(days: MarketDays) -> str:
    """SHA-256 of everything that a policy can learn from a period."""
    digest = hashlib.sha256("\n".join(days.tickers).encode())
    arrays: list[Any] = [days.close_DS, days.fill_DS, days.table_DK, days.is_turbulent_D]
    arrays += [] if days.is_traded_DS is None else [days.is_traded_DS]
    for array in arrays:
        digest.update(array.tobytes())
    return digest.hexdigest()
