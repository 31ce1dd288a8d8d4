"""The shared memory of the market: moving averages of the features over the last days, with fixed weights.

Cash and holdings are fully observed, so only the market must be remembered, and it is the same for all accounts. The
memory of a day is a function of the `window` days up to it. So it has no state that is carried through an episode, it
is computed for all days at once, and a minibatch may hold single days from anywhere.

Legend: N days, S stocks, K columns of the feature table, F of each stock, M half-lives, W days of a window.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

HALF_LIVES = (3.0, 10.0, 30.0)
"""Days until a weight is halved."""


def average_weights(window: int) -> list[list[float]]:
    """[M][W]: the weights of the last W days, the present one first, for each half-life h.

        w_k = 2^(-k / h) / (2^0 + 2^(-1 / h) + ... + 2^(-(W - 1) / h))

    An exponential moving average that is cut off after W days and scaled to a sum of 1.
    """
    raw = [[2.0 ** (-day / half_life) for day in range(window)] for half_life in HALF_LIVES]
    return [[weight / sum(weights) for weight in weights] for weights in raw]


class SharedMemory(nn.Module):
    """The features of the day and their M moving averages, divided by their deviations over the training days."""

    def __init__(self, num_columns: int, window: int, clip: float) -> None:
        """`clip`: in standard deviations, as for the features."""
        super().__init__()
        self.window, self.clip = window, clip
        self.weight_MW = average_weights(window)
        self.std_MK: Tensor
        self.register_buffer("std_MK", torch.ones(len(HALF_LIVES), num_columns))

    @property
    def num_features(self) -> int:
        """(1 + M) * K."""
        return (1 + len(HALF_LIVES)) * self.std_MK.shape[1]

    def averages(self, days_WNK: Sequence[Tensor]) -> Tensor:
        """[N, M, K] from the table's rows of `window` consecutive days, the present one last.

        A sum over days in a fixed order, so a row has the same bits among any number of rows.
        """
        total_NMK = torch.zeros_like(days_WNK[-1])[:, None].expand(-1, len(self.weight_MW), -1).clone()
        for back, day_NK in enumerate(reversed(days_WNK)):
            for m, weights in enumerate(self.weight_MW):
                total_NMK[:, m] += weights[back] * day_NK
        return total_NMK

    def forward(self, days_WNK: Sequence[Tensor]) -> Tensor:
        """[N, (1 + M) * K]: the features of the present day, and their scaled averages over `window` days."""
        scaled_NMK = (self.averages(days_WNK) / self.std_MK).clamp(-self.clip, self.clip)
        return torch.cat([days_WNK[-1], scaled_NMK.flatten(1)], 1)

    def fit(self, table_DK: Tensor, num_stocks: int, num_market: int) -> None:
        """Measure the deviations on the table of the training days; 1 for an average that does not vary.

        The average of a feature has one deviation over all stocks, as the feature itself has (`Scaler`): one of its own
        would be tiny for a stock that was listed shortly before the end. The last `num_market` columns are of no
        stock."""
        averages_NMK = self.averages(consecutive(table_DK.double(), self.window))
        std_MK = averages_NMK.std(0, correction=0)
        num_of_stocks = std_MK.shape[1] - num_market
        stocks_NMSF = averages_NMK[..., :num_of_stocks].unflatten(2, (num_stocks, -1))
        std_MK[:, :num_of_stocks] = stocks_NMSF.std((0, 2), correction=0).repeat(1, num_stocks)
        self.std_MK.copy_(torch.where(std_MK > 0, std_MK, 1.0))


def consecutive(table_DK: Tensor, window: int) -> list[Tensor]:
    """W views of D - W + 1 rows each: what lies W - 1 days back, ..., 1 day back, 0 days back from each day that has
    a whole window."""
    num_days = len(table_DK) - window + 1
    return [table_DK[first : first + num_days] for first in range(window)]
