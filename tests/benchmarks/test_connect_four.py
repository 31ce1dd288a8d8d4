"""benchmarks/selfplay/connect_four.py: the committed positions, and how a net's moves are counted."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from benchmarks.selfplay import connect_four
from benchmarks.selfplay.connect_four_positions import after, legal_moves, outcome_or_count
from ranks.selfplay import Encoding, SelfPlayConfig


def test_the_committed_positions() -> None:
    positions = connect_four.read()
    assert len(positions) == 1100
    assert {len(position.moves) for position in positions} == set(range(8, 31))
    assert len({connect_four.key_of(position.state_W) for position in positions}) == 1100
    for position in positions:
        assert position.soonest <= position.best < set(position.legal)
        assert bool(position.soonest) == (len(position.moves) >= 16)
    assert sum(bool(position.soonest) and position.soonest < position.best for position in positions) > 100


def test_an_obvious_search_finds_the_same_best_moves() -> None:
    @cache
    def value(state: tuple[int, int]) -> int:
        """The outcome for the side to move, and how soon: a sooner win is higher, a sooner loss lower."""
        state_W = np.array(state, np.uint64)
        code = outcome_or_count(state_W, np.zeros(7, np.uint16))
        if code < 0:
            return (-2 - code) * (100 - sum(word.bit_count() for word in state))
        return max(-value(tuple(after(state_W, move).tolist())) for move in legal_moves(state_W))

    late = [position for position in connect_four.read() if len(position.moves) == 30][:5]
    for position in late:
        of = {move: -value(tuple(after(position.state_W, move).tolist())) for move in legal_moves(position.state_W)}
        assert set(of) == set(position.legal)
        assert {move for move in of if np.sign(of[move]) == np.sign(max(of.values()))} == position.best
        soonest = {move for move in of if of[move] == max(of.values())}
        assert position.soonest == (position.best if max(of.values()) == 0 else soonest)


def bits(states_BW: Tensor) -> Tensor:
    """[B, 98]: the squares of both words."""
    return ((states_BW[:, :, None] >> torch.arange(49)) & 1).flatten(1)


class Template:
    """What the template's module has."""

    ENCODING = Encoding(lambda p: bits(p.states_BW))
    SELFPLAY = SelfPlayConfig(c_scale=0.2)


class KnownPolicy(nn.Module):
    """A net whose policy is given for some positions; value 0."""

    def __init__(self, positions: Any, logit: float) -> None:
        super().__init__()
        rows = bits(torch.from_numpy(np.stack([position.state_W for position in positions]).view(np.int64)))
        self.best = {tuple(row): position.best for row, position in zip(rows.tolist(), positions, strict=True)}
        self.logit = logit

    def forward(self, bits_BS: Tensor) -> tuple[Tensor, Tensor]:
        logits = torch.zeros(len(bits_BS), 7)
        for row, squares in enumerate(bits_BS.long().tolist()):
            logits[row, list(self.best.get(tuple(squares), ()))] = self.logit
        return logits, torch.zeros(len(bits_BS))


@pytest.mark.parametrize(("logit", "share"), [(5.0, 1.0), (-5.0, 0.0), (0.0, None)])
def test_the_share_of_best_moves(logit: float, share: float | None) -> None:
    positions = connect_four.read()[:40]
    found = connect_four.measure(KnownPolicy(positions, logit), Template(), positions)
    if share is None:  # equal priors count in part
        share = float(np.mean([len(position.best) / len(position.legal) for position in positions]))
    assert found["policy"] == pytest.approx(share, abs=1e-4)
    assert found["policy_strict"] <= found["policy"]
    assert 0 < found["search"] <= 1
