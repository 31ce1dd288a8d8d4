"""The network of stock-trading: a memory of the market only, the cascaded LSTMs of CLSTM-PPO, and two controls.

What an account must remember is the market, which is the same for all accounts. So `shared` reads the market once a
day for all of them (`shared_memory`), and actor and critic are MLPs on the features of the day and the account.

`clstm` is the paper's cascade (Zou et al. 2022, arXiv 2212.02721): one LSTM reads the market, actor and critic have an
LSTM for each account. Here its first LSTM does not read the account, so that it runs once for all accounts; in the
paper it reads the past of the account too.

Legend: D days, K columns of the feature table, P days with a whole window or windows, W days of a window, R rows,
H sizes of features, T steps, B accounts, A numbers of an account, S stocks.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor, nn

from ranks.rl.policies.distributions import DiagonalGaussian
from ranks.rl.pytree import State
from ranks.workloads.stock_trading.policy.branches import MLPBranch, RecurrentBranch
from ranks.workloads.stock_trading.policy.shared_memory import SharedMemory, consecutive


@dataclass(frozen=True)
class MarketInputs:
    """What a policy reads of the market, computed once for a feature table.

    `rows_P`: one entry for each `stride` days from row `window` - 1 of the table on. For `clstm` [P, K, window - 1 +
    stride], the windows of its first LSTM; for the others [P, F], the inputs of a day, with a stride of 1.
    """

    rows_P: Tensor
    stride: int


class TradingPolicy(nn.Module):
    """Actor-critic policy. `num_columns`: K of the feature table; `num_account`: A. `kind`, `window`, `stride`: see
    ModelConfig; `clip`: see FeatureConfig; `activation`: of `shared` and `mlp`, see ModelConfig.

    Its buffers are the preprocessing statistics of the training days: mean and standard deviation of each column and
    of its averages, and the turbulence threshold `exit_above`. The market applies that threshold, not the policy.
    """

    def __init__(
        self,
        num_stocks: int,
        num_columns: int,
        num_account: int,
        kind: str = "shared",
        window: int = 30,
        stride: int = 21,
        feature_hidden: int = 128,
        hidden: int = 128,
        log_std: float = -0.7,
        clip: float = 5.0,
        activation: str = "tanh",
    ) -> None:
        super().__init__()
        self.num_stocks, self.num_columns, self.num_account = num_stocks, num_columns, num_account
        self.kind, self.window, self.stride = kind, window, stride
        self.feature_hidden, self.hidden, self.log_std, self.clip = feature_hidden, hidden, log_std, clip
        self.activation = activation
        self.mean_K: Tensor
        self.std_K: Tensor
        self.exit_above: Tensor
        self.register_buffer("mean_K", torch.zeros(num_columns))
        self.register_buffer("std_K", torch.ones(num_columns))
        self.register_buffer("exit_above", torch.tensor(math.inf))
        self.reader = nn.LSTM(num_columns, feature_hidden) if kind == "clstm" else None
        self.memory = SharedMemory(num_columns, window, clip) if kind == "shared" else None
        num_features = {"clstm": feature_hidden, "lstm": num_columns, "mlp": num_columns}.get(kind, 0)
        num_features = num_features if self.memory is None else self.memory.num_features
        branch = RecurrentBranch if kind in ("clstm", "lstm") else partial(MLPBranch, activation=activation)
        self.actor = branch(num_features, num_account, hidden, num_stocks, 0.01)
        self.critic = branch(num_features, num_account, hidden, 1, 1.0)
        self.log_std_S = nn.Parameter(torch.full((num_stocks,), log_std))

    @property
    def is_recurrent(self) -> bool:
        """Whether an account carries a state through its episode."""
        return isinstance(self.actor, RecurrentBranch)

    # The market: once for all accounts --------------------------------------------------------------------------------

    def read(self, table_DK: Tensor, stride: int | None = None) -> MarketInputs:
        """The inputs of all days that have a whole window. `stride`: of `clstm`; by default the policy's own."""
        lead = self.window - 1
        if self.reader is not None:
            stride = stride or self.stride
            num_windows = -(-(len(table_DK) - lead) // stride)
            missing = lead + num_windows * stride - len(table_DK)
            padded_DK = torch.cat([table_DK, table_DK.new_zeros(missing, table_DK.shape[1])])
            return MarketInputs(padded_DK.unfold(0, lead + stride, stride), stride)
        if self.memory is not None:
            return MarketInputs(self.memory(consecutive(table_DK, self.window)), 1)
        return MarketInputs(table_DK[lead:], 1)

    def extract_features(self, rows_P: Tensor) -> Tensor:
        """[R, H]: features of the days of some inputs, day by day, with gradients. `clstm`: the output of its first
        LSTM; `lstm`: the inputs; the others: the market part of the first layers of actor and critic, side by side."""
        if self.reader is not None:
            hidden_WPH, _ = self.reader(rows_P.permute(2, 0, 1))
            return hidden_WPH[self.window - 1 :].transpose(0, 1).flatten(0, 1)
        if isinstance(self.actor, MLPBranch) and isinstance(self.critic, MLPBranch):
            return torch.cat([self.actor.of_market(rows_P), self.critic.of_market(rows_P)], 1)
        return rows_P

    # The accounts -----------------------------------------------------------------------------------------------------

    def start_state(self, num_rows: int) -> State:
        """The state of an account at the start of an episode: zeros, [B, L, H] each, for the LSTMs of actor and critic;
        empty for `shared` and `mlp`."""
        branches = {"actor": self.actor, "critic": self.critic}
        return {
            f"{name}.{part}": rows
            for name, branch in branches.items()
            if isinstance(branch, RecurrentBranch)
            for part, rows in branch.start_state(num_rows).items()
        }

    def decide(
        self, features_TBH: Tensor, account_TBA: Tensor, state: State, first_TB: Tensor | None
    ) -> tuple[DiagonalGaussian, Tensor, State]:
        """(distribution of the actions, values [T, B], the state after the last step)."""
        if isinstance(self.actor, MLPBranch) and isinstance(self.critic, MLPBranch):
            actor_TBH, critic_TBH = features_TBH.split(self.hidden, -1)
            mean_TBS, value_TB1 = self.actor(actor_TBH, account_TBA), self.critic(critic_TBH, account_TBA)
            return DiagonalGaussian.from_log_std(mean_TBS, self.log_std_S), value_TB1[..., 0], {}
        input_TBF = torch.cat([features_TBH, account_TBA], -1)
        mine = {b: {n[len(b) + 1 :]: r for n, r in state.items() if n.startswith(b)} for b in ("actor", "critic")}
        mean_TBS, actor = self.actor(input_TBF, mine["actor"], first_TB)
        value_TB1, critic = self.critic(input_TBF, mine["critic"], first_TB)
        after = {f"actor.{n}": r for n, r in actor.items()} | {f"critic.{n}": r for n, r in critic.items()}
        return DiagonalGaussian.from_log_std(mean_TBS, self.log_std_S), value_TB1[..., 0], after

    def forward(self, window_BWK: Tensor, account_BA: Tensor, state: State) -> tuple[Tensor, Tensor, State]:
        """One day, for the exported model: unscaled features of the last W days, and the account -> (actions [B, S] in
        -1..1, value [B], the state to pass in on the next day). Start with `start_state`.

        The account: cash and the value of each holding as fractions of the account's value, then that value as a
        fraction of the initial cash."""
        scaled_BWK = ((window_BWK - self.mean_K) / self.std_K).clamp(-self.clip, self.clip).to(account_BA.dtype)
        days_WBK = scaled_BWK.unbind(1)
        if self.reader is not None:
            rows_B = scaled_BWK.transpose(1, 2)
        else:
            rows_B = days_WBK[-1] if self.memory is None else self.memory(days_WBK)
        features_BH = self.extract_features(rows_B)
        distribution, value_1B, state = self.decide(features_BH[None], account_BA[None], state, None)
        return distribution.mode()[0].clamp(-1.0, 1.0), value_1B[0], state
