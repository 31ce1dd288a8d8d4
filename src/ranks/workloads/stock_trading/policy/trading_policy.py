"""The network of stock-trading: cascaded LSTMs (CLSTM-PPO; Zou et al. 2022, arXiv 2212.02721), and its controls.

The first LSTM reads only the market. The market is the same for all accounts, so this LSTM runs once for all of them,
and actor and critic look up its output by day. In the paper it also reads the past of the account, which only the LSTMs
of actor and critic see here.

Legend: D days, K columns of the feature table, P windows, W days of a window, H hidden size, T steps, B accounts,
A numbers of an account, S stocks.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from ranks.rl.policies.distributions import DiagonalGaussian
from ranks.rl.policies.recurrent import initial_lstm_state, unroll_lstm
from ranks.rl.pytree import State


class Branch(nn.Module):
    """Actor or critic: an LSTM or (without `memory`) a linear layer, then a linear layer and the output head."""

    def __init__(self, num_inputs: int, hidden: int, num_outputs: int, memory: bool, gain: float) -> None:
        super().__init__()
        self.lstm = nn.LSTM(num_inputs, hidden) if memory else None
        self.first = None if memory else nn.Linear(num_inputs, hidden)
        self.second = nn.Linear(hidden, hidden)
        self.head = nn.Linear(hidden, num_outputs)
        for name, parameter in self.named_parameters():
            if "bias" in name:
                nn.init.zeros_(parameter)
            else:
                nn.init.orthogonal_(parameter, gain if name.startswith("head") else math.sqrt(2))

    def start_state(self, num_rows: int) -> State:
        """Zeros; empty without memory."""
        return {} if self.lstm is None else initial_lstm_state(self.lstm, num_rows)

    def forward(self, input_TBF: Tensor, state: State, first_TB: Tensor | None) -> tuple[Tensor, State]:
        """(outputs [T, B, ...], the state after the last step)."""
        if self.lstm is not None:
            hidden_TBH, state = unroll_lstm(self.lstm, input_TBF, state, first_TB)
        else:
            assert self.first is not None
            hidden_TBH = torch.tanh(self.first(input_TBF))
        return self.head(torch.tanh(self.second(hidden_TBH))), state


class TradingPolicy(nn.Module):
    """Actor-critic policy. `num_columns`: K of the feature table; `num_account`: A. `kind`, `window`, `stride`: see
    ModelConfig; `clip`: see FeatureConfig.

    Its buffers are the preprocessing statistics of the training days: mean and standard deviation of each column, and
    the turbulence threshold `exit_above`. The market applies that threshold, not the policy.
    """

    def __init__(
        self,
        num_stocks: int,
        num_columns: int,
        num_account: int,
        kind: str = "clstm",
        window: int = 30,
        stride: int = 21,
        feature_hidden: int = 128,
        hidden: int = 128,
        log_std: float = -0.7,
        clip: float = 5.0,
    ) -> None:
        super().__init__()
        self.num_stocks, self.num_columns, self.num_account = num_stocks, num_columns, num_account
        self.kind, self.window, self.stride = kind, window, stride
        self.feature_hidden, self.hidden, self.log_std, self.clip = feature_hidden, hidden, log_std, clip
        self.mean_K: Tensor
        self.std_K: Tensor
        self.exit_above: Tensor
        self.register_buffer("mean_K", torch.zeros(num_columns))
        self.register_buffer("std_K", torch.ones(num_columns))
        self.register_buffer("exit_above", torch.tensor(math.inf))
        self.reader = nn.LSTM(num_columns, feature_hidden) if kind == "clstm" else None
        num_inputs = (feature_hidden if kind == "clstm" else num_columns) + num_account
        self.actor = Branch(num_inputs, hidden, num_stocks, kind != "mlp", 0.01)
        self.critic = Branch(num_inputs, hidden, 1, kind != "mlp", 1.0)
        self.log_std_S = nn.Parameter(torch.full((num_stocks,), log_std))

    def windows(self, table_DK: Tensor, stride: int) -> Tensor:
        """[P, K, window - 1 + stride]: the inputs of the first LSTM. Window p gives the features of the `stride` days
        from row `window - 1 + p * stride` on; rows beyond the table are zeros."""
        lead = self.window - 1
        num_windows = -(-(len(table_DK) - lead) // stride)
        missing = lead + num_windows * stride - len(table_DK)
        padded_DK = torch.cat([table_DK, table_DK.new_zeros(missing, table_DK.shape[1])])
        return padded_DK.unfold(0, lead + stride, stride)

    def extract_features(self, windows_PKW: Tensor) -> Tensor:
        """[P * stride, H]: features of the last `stride` days of each window, window by window. The features of a day
        come from that day and the days of its window before it."""
        if self.reader is None:
            return windows_PKW[:, :, self.window - 1 :].transpose(1, 2).flatten(0, 1)
        hidden_WPH, _ = self.reader(windows_PKW.permute(2, 0, 1))
        return hidden_WPH[self.window - 1 :].transpose(0, 1).flatten(0, 1)

    def start_state(self, num_rows: int) -> State:
        """Initial LSTM states of actor and critic: zeros, [B, L, H] each."""
        actor, critic = self.actor.start_state(num_rows), self.critic.start_state(num_rows)
        return {f"actor.{n}": rows for n, rows in actor.items()} | {f"critic.{n}": rows for n, rows in critic.items()}

    def decide(
        self, features_TBH: Tensor, account_TBA: Tensor, state: State, first_TB: Tensor | None
    ) -> tuple[DiagonalGaussian, Tensor, State]:
        """(distribution of the actions, values [T, B], the state after the last step)."""
        input_TBF = torch.cat([features_TBH, account_TBA], -1)
        mine = {b: {n[len(b) + 1 :]: r for n, r in state.items() if n.startswith(b)} for b in ("actor", "critic")}
        mean_TBS, actor = self.actor(input_TBF, mine["actor"], first_TB)
        value_TB1, critic = self.critic(input_TBF, mine["critic"], first_TB)
        after = {f"actor.{n}": r for n, r in actor.items()} | {f"critic.{n}": r for n, r in critic.items()}
        return DiagonalGaussian.from_log_std(mean_TBS, self.log_std_S), value_TB1[..., 0], after

    def forward(self, window_BWK: Tensor, account_BA: Tensor, state: State) -> tuple[Tensor, Tensor, State]:
        """One day, for the exported model: unscaled features of the last W days, and the account as fractions of its
        initial cash (cash, each holding, their sum) -> (actions [B, S] in -1..1, value [B], the state to pass in on the
        next day). Start with `start_state`."""
        scaled_BWK = ((window_BWK - self.mean_K) / self.std_K).clamp(-self.clip, self.clip).to(account_BA.dtype)
        features_BH = scaled_BWK[:, -1]
        if self.reader is not None:
            features_BH = self.reader(scaled_BWK.transpose(0, 1))[0][-1]
        distribution, value_1B, state = self.decide(features_BH[None], account_BA[None], state, None)
        return distribution.mode()[0].clamp(-1.0, 1.0), value_1B[0], state
