"""Actor or critic of a trading policy: with an LSTM for each account, or an MLP whose market part is shared.

Legend: T steps, B accounts, R rows of the market (days), F features of a day, A numbers of an account, H hidden size.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn.functional import hardtanh, linear

from ranks.rl.policies.recurrent import initial_lstm_state, unroll_lstm
from ranks.rl.pytree import State


class RecurrentBranch(nn.Module):
    """An LSTM on [features of the day, account], then a linear layer and the output head."""

    def __init__(self, num_features: int, num_account: int, hidden: int, num_outputs: int, gain: float) -> None:
        super().__init__()
        self.lstm = nn.LSTM(num_features + num_account, hidden)
        self.second = nn.Linear(hidden, hidden)
        self.head = nn.Linear(hidden, num_outputs)
        init_orthogonal(self, gain)

    def start_state(self, num_rows: int) -> State:
        """Zeros, [B, L, H] each."""
        return initial_lstm_state(self.lstm, num_rows)

    def forward(self, input_TBF: Tensor, state: State, first_TB: Tensor | None) -> tuple[Tensor, State]:
        """(outputs [T, B, ...], the state after the last step)."""
        hidden_TBH, state = unroll_lstm(self.lstm, input_TBF, state, first_TB)
        return self.head(torch.tanh(self.second(hidden_TBH))), state


ACTIVATIONS = {"tanh": torch.tanh, "hardtanh": hardtanh, "relu": torch.relu}
"""By `ModelConfig.activation`."""


class MLPBranch(nn.Module):
    """An MLP with two hidden layers on [features of the day, account]. `activation`: see ModelConfig.

    The first layer is W_market @ features + W_account @ account + bias. Its market part is the same for all accounts,
    so `of_market` computes it once for each day.
    """

    def __init__(
        self,
        num_features: int,
        num_account: int,
        hidden: int,
        num_outputs: int,
        gain: float,
        activation: str = "tanh",
    ) -> None:
        super().__init__()
        self.num_features, self.activation = num_features, activation
        self.first = nn.Linear(num_features + num_account, hidden)
        self.second = nn.Linear(hidden, hidden)
        self.head = nn.Linear(hidden, num_outputs)
        init_orthogonal(self, gain)

    def of_market(self, features_RF: Tensor) -> Tensor:
        """[R, H]: the market part of the first layer, with its bias."""
        return linear(features_RF, self.first.weight[:, : self.num_features], self.first.bias)

    def forward(self, market_TBH: Tensor, account_TBA: Tensor) -> Tensor:
        """Outputs [T, B, ...], from the market part of each account's day and the account."""
        account_TBH = linear(account_TBA, self.first.weight[:, self.num_features :])
        activate = ACTIVATIONS[self.activation]
        hidden_TBH = activate(self.second(activate(market_TBH + account_TBH)))
        return self.head(hidden_TBH)


def init_orthogonal(branch: nn.Module, head_gain: float) -> None:
    """Orthogonal weights with gain sqrt(2), of the head with `head_gain`; zero biases (detail 2 of Huang et al. 2022,
    "The 37 implementation details of proximal policy optimization")."""
    for name, parameter in branch.named_parameters():
        if "bias" in name:
            nn.init.zeros_(parameter)
        else:
            nn.init.orthogonal_(parameter, head_gain if name.startswith("head") else math.sqrt(2))
