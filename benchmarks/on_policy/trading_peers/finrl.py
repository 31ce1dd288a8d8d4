"""A side of trading.py: RecurrentPPO of sb3-contrib on FinRL's own environment, as its users train.

It observes the same features of the same days of the same stocks, and trades with the same cash, costs and limit of
shares. FinRL trades at the close that it observes, so its returns cannot be compared with ours; only speed is.
"""

from __future__ import annotations

import contextlib
import importlib.util
import io
import time
from typing import Any

import numpy as np
import pandas as pd
from recurrent_ppo import learn
from stable_baselines3.common.vec_env import DummyVecEnv
from task import Task, print_result, read_task

from ranks.workloads.stock_trading.data.market_days import MarketDays
from ranks.workloads.stock_trading.data.periods import load_periods

MAX_SHARES, COST, REWARD_SCALE, CASH = 100, 1e-3, 1e-4, 1_000_000
"""Those of the paper and of FinRL's examples."""


class TimedEnvs(DummyVecEnv):
    """Environments one after the other, as FinRL's `get_sb_env` has them; `spent_s`: CPU seconds of their steps."""

    spent_s = 0.0

    def step_wait(self) -> Any:
        start = time.process_time()
        found = super().step_wait()
        self.spent_s += time.process_time() - start
        return found


def frame(days: MarketDays, names: tuple[str, ...]) -> pd.DataFrame:
    """One row for each day and stock, indexed by the number of the day, with the scaled features."""
    num_days, num_stocks = days.close_DS.shape
    table_DSF = days.table_DK[:, : num_stocks * len(names)].reshape(num_days * num_stocks, len(names))
    columns = {"date": np.repeat(days.dates_D.astype(str), num_stocks), "tic": list(days.tickers) * num_days}
    columns |= {"close": days.close_DS.ravel()} | {name: table_DSF[:, f] for f, name in enumerate(names)}
    return pd.DataFrame(columns, index=np.repeat(np.arange(num_days), num_stocks))


def environments(task: Task) -> TimedEnvs:
    """FinRL's environment, from the file of the task, `task.environments` times."""
    spec = importlib.util.spec_from_file_location("env_stocktrading", task.finrl)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    cfg = task.config()
    names = cfg.features.names
    table = frame(load_periods(cfg.periods).train, names)
    num_stocks = int(table["tic"].nunique())
    settings = {
        "df": table,
        "stock_dim": num_stocks,
        "hmax": MAX_SHARES,
        "initial_amount": CASH,
        "num_stock_shares": [0] * num_stocks,
        "buy_cost_pct": [COST] * num_stocks,
        "sell_cost_pct": [COST] * num_stocks,
        "reward_scaling": REWARD_SCALE,
        "state_space": 1 + (2 + len(names)) * num_stocks,
        "action_space": num_stocks,
        "tech_indicator_list": list(names),
    }
    return TimedEnvs([lambda: module.StockTradingEnv(**settings)] * task.environments)


def main() -> None:
    task = read_task()
    with contextlib.redirect_stdout(io.StringIO()):  # it prints at the end of an episode
        _, found = learn(task, environments(task))
    print_result(**found, score=None)


if __name__ == "__main__":
    main()
