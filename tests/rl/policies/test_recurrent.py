"""unroll_lstm: equal to a cell that runs step by step and resets where episodes start."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from ranks.rl.policies.recurrent import Segments, initial_lstm_state, run_packed, run_stretches, unroll_lstm
from ranks.rl.pytree import State

T, B, F, H = 7, 5, 3, 4


def random_lstm(num_layers: int = 1) -> tuple[nn.LSTM, Tensor, State]:
    torch.manual_seed(num_layers)
    lstm = nn.LSTM(F, H, num_layers).double()
    state = {name: torch.randn(B, num_layers, H, dtype=torch.float64) for name in "hc"}
    return lstm, torch.randn(T, B, F, dtype=torch.float64), state


def layers_first(state: State) -> tuple[Tensor, Tensor]:
    """The state as `torch.nn.LSTM` has it."""
    return state["h"].transpose(0, 1).contiguous(), state["c"].transpose(0, 1).contiguous()


def cell_by_cell(lstm: nn.LSTM, input_TBF: Tensor, state: State, first_TB: Tensor) -> tuple[Tensor, State]:
    """The reference: the equations of a one-layer LSTM for each step and environment."""
    w_input, w_hidden, b_input, b_hidden = lstm.all_weights[0]
    out = torch.zeros(T, B, H, dtype=torch.float64)
    last: list[tuple[Tensor, Tensor]] = []
    for b in range(B):
        h, c = state["h"][b, 0], state["c"][b, 0]
        for t in range(T):
            if first_TB[t, b]:
                h, c = torch.zeros_like(h), torch.zeros_like(c)
            i, f, g, o = (w_input @ input_TBF[t, b] + b_input + w_hidden @ h + b_hidden).chunk(4)
            c = f.sigmoid() * c + i.sigmoid() * g.tanh()
            h = o.sigmoid() * c.tanh()
            out[t, b] = h
        last.append((h, c))
    return out, {"h": torch.stack([h for h, _ in last])[:, None], "c": torch.stack([c for _, c in last])[:, None]}


RESETS = {
    "none": [],
    "first step": [(0, 0), (0, 3)],
    "in the middle": [(2, 1), (4, 1), (4, 2)],
    "last step": [(6, 4)],
    "everywhere": [(t, b) for t in range(T) for b in range(B)],
}


def first_of(name: str) -> Tensor:
    """bool[T, B]: first_TB of RESETS[name]."""
    first_TB = torch.zeros(T, B, dtype=torch.bool)
    for t, b in RESETS[name]:
        first_TB[t, b] = True
    return first_TB


@pytest.mark.parametrize("name", RESETS)
@pytest.mark.parametrize("run", [run_stretches, run_packed])
def test_both_ways_with_resets_equal_the_cell_step_by_step(run: Any, name: str) -> None:
    lstm, input_TBF, state = random_lstm()
    first_TB = first_of(name)
    input_TBF.requires_grad_()
    found_TBH, (h_LBH, c_LBH) = run(lstm, input_TBF, layers_first(state), first_TB)
    slow_TBH, slow = cell_by_cell(lstm, input_TBF, state, first_TB)
    torch.testing.assert_close(found_TBH, slow_TBH)
    torch.testing.assert_close({"h": h_LBH.transpose(0, 1), "c": c_LBH.transpose(0, 1)}, slow)
    gradients = [
        torch.autograd.grad(out.square().sum(), [input_TBF, *lstm.parameters()]) for out in (found_TBH, slow_TBH)
    ]
    torch.testing.assert_close(*gradients)


def test_a_packed_call_has_no_padding_and_the_longest_segment_first() -> None:
    first_TB = first_of("in the middle")
    segments = Segments.of(first_TB)
    assert segments.batch_sizes.tolist() == [8, 8, 6, 4, 3, 3, 3]
    assert sorted(segments.step_M.tolist()) == list(range(T * B))
    assert torch.equal(segments.step_M[segments.row_M], torch.arange(T * B))
    assert sorted(segments.state_N.tolist()) == [0, 1, 2, 3, 4, B, B, B]


def test_without_resets_one_call_gives_the_same() -> None:
    lstm, input_TBF, state = random_lstm(num_layers=2)
    none_TB = torch.zeros(T, B, dtype=torch.bool)
    torch.testing.assert_close(unroll_lstm(lstm, input_TBF, state), unroll_lstm(lstm, input_TBF, state, none_TB))


def test_a_sequence_can_be_split_and_continued_from_its_state() -> None:
    lstm, input_TBF, state = random_lstm(num_layers=2)
    first_TB = torch.zeros(T, B, dtype=torch.bool)
    first_TB[2, 1] = first_TB[4, 0] = True
    whole_TBH, end = unroll_lstm(lstm, input_TBF, state, first_TB)
    head_TBH, between = unroll_lstm(lstm, input_TBF[:4], state, first_TB[:4])
    tail_TBH, after = unroll_lstm(lstm, input_TBF[4:], between, first_TB[4:])
    torch.testing.assert_close(torch.cat([head_TBH, tail_TBH]), whole_TBH)
    torch.testing.assert_close(after, end)


def test_gradients_stop_at_a_reset() -> None:
    lstm, input_TBF, state = random_lstm()
    input_TBF.requires_grad_()
    first_TB = torch.zeros(T, B, dtype=torch.bool)
    first_TB[3, 1] = True
    hidden_TBH, _ = unroll_lstm(lstm, input_TBF, state, first_TB)
    hidden_TBH[-1].sum().backward()
    assert input_TBF.grad is not None
    reached_TB = input_TBF.grad.abs().sum(-1) > 0
    assert reached_TB[:, 0].all()
    assert reached_TB[:, 1].tolist() == [False] * 3 + [True] * 4


@pytest.mark.parametrize("num_layers", [1, 2])
def test_the_initial_state_is_zero_with_rows_first(num_layers: int) -> None:
    lstm, input_TBF, _ = random_lstm(num_layers)
    start = initial_lstm_state(lstm, B)
    assert {name: tuple(rows.shape) for name, rows in start.items()} == {
        "h": (B, num_layers, H),
        "c": (B, num_layers, H),
    }
    assert not any(rows.any() for rows in start.values())
    assert start["h"].dtype == torch.float64
    hidden_TBH, state = unroll_lstm(lstm, input_TBF, start)
    assert hidden_TBH.shape == (T, B, H)
    assert torch.equal(state["h"][:, -1], hidden_TBH[-1])
    torch.testing.assert_close(lstm(input_TBF)[0], hidden_TBH)
