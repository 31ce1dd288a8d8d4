"""Training: PPO with recurrent policies in a market of many accounts."""

from __future__ import annotations

import hashlib
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from ranks.engine.distributed.world import World
from ranks.engine.runs.run import Run
from ranks.engine.runs.summary import Summary
from ranks.engine.update.learner import Learner
from ranks.engine.update.loss import Loss
from ranks.rl import ppo
from ranks.rl.collector import Collector
from ranks.rl.config import PPOConfig
from ranks.rl.rollout import Rollout
from ranks.workloads.stock_trading.carried import carry, days_for
from ranks.workloads.stock_trading.config import Config, DataConfig
from ranks.workloads.stock_trading.loading import periods_in, prices_of, resolved, rows_of_test
from ranks.workloads.stock_trading.market.days import Days
from ranks.workloads.stock_trading.market.market import Market
from ranks.workloads.stock_trading.on_market import OnMarket
from ranks.workloads.stock_trading.one_account import backtest, measures
from ranks.workloads.stock_trading.policy import TradingPolicy


def build(cfg: Config) -> TradingPolicy:
    """The policy, untrained and with nothing fitted. Of a run, whose config names its stocks, no prices are read."""
    num_stocks, m, f = len(cfg.data.tickers or prices_of(cfg.data).tickers), cfg.model, cfg.features
    widths = (num_stocks, num_stocks * len(f.names) + f.turbulence, num_stocks + 2)
    return TradingPolicy(*widths, m.kind, m.window, m.stride, m.feature_hidden, m.hidden, m.log_std, f.clip)


def trading_loss(policy: TradingPolicy, part: Rollout, *, cfg: PPOConfig, table_DK: Tensor) -> Loss:
    """PPO's loss of one minibatch; one item an account."""
    return ppo.ppo_loss(OnMarket(policy, table_DK), part, cfg=cfg)


def train(cfg: Config, world: World) -> Summary:
    """The loop."""
    prices = prices_of(cfg.data)
    cfg = resolved(cfg, prices)
    periods = periods_in(prices, cfg)
    market = partial(Market, periods.train, seed=world.seed, config=cfg.market, device=world.device)
    table_DK = torch.as_tensor(periods.train.table_DK, dtype=torch.get_default_dtype(), device=world.device)
    policy = build(cfg)
    carry(policy, periods.fitted)
    updates = cfg.iterations * cfg.ppo.epochs * cfg.ppo.minibatches
    learner = Learner(policy, cfg.optim, world, global_batch=cfg.global_batch, updates=updates)
    collector = Collector(OnMarket(policy, table_DK), market, cfg.global_batch, cfg.horizon, cfg.ppo, world)
    loss = partial(trading_loss, cfg=cfg.ppo, table_DK=table_DK)
    with Run.open(cfg, world, keep=dict(learner=learner, collector=collector), data=sha256_of(periods.train)) as run:
        run.session.note(days_in_words(cfg.data))
        for note in prices.notes:
            run.session.warn(note)
        for iteration in run.iterations(cfg.iterations, long=True):
            rollout = collector.collect(OnMarket(policy, table_DK), iteration)
            run.log(ppo.update(learner, loss, rollout, collector.ids, cfg.ppo, iteration))
            run.log(collector.statistics(), prefix="rollout")
            if run.every(cfg.eval_every) and periods.validation is not None:
                run.log(measures(backtest(policy, periods.validation, cfg, world.device, world)), prefix="val")
                run.save()
    return run.finish(export=policy)


def evaluate(model: nn.Module, cfg: Config, world: World) -> dict[str, float]:
    """Measures of the test period, costs included: one account that takes the likeliest action each day."""
    assert isinstance(model, TradingPolicy)
    prices = prices_of(cfg.data)
    days = days_for(model, prices, rows_of_test(resolved(cfg, prices), prices), cfg)
    return measures(backtest(model, days, cfg, world.device, world))


def days_in_words(data: DataConfig) -> str:
    """Both periods of a config that names them."""
    embargo = f"{data.embargo_days} trading days or more between them unused"
    return f"training {data.train_from} to {data.train_to}, test {data.test_from} to {data.test_to}, {embargo}"


def sha256_of(days: Days) -> str:
    """Of all that a policy can learn from a period."""
    digest = hashlib.sha256("\n".join(days.tickers).encode())
    arrays: list[Any] = [days.close_DS, days.fill_DS, days.table_DK, days.is_turbulent_D]
    for array in arrays:
        digest.update(array.tobytes())
    return digest.hexdigest()
