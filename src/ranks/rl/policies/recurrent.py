"""Whole sequences through an LSTM, also where episodes begin inside them.

Legend: T steps, B environments, F inputs, H hidden.
"""

from __future__ import annotations

from itertools import pairwise

import torch
from torch import Tensor, nn

from ranks.rl.pytree import State


def lstm_start(lstm: nn.LSTM, num_rows: int) -> State:
    """The zero state, [B, L, H] each: rows come first, as everywhere in experience."""
    weight = next(lstm.parameters())
    shape = (num_rows, lstm.num_layers, lstm.hidden_size)
    return {"h": weight.new_zeros(shape), "c": weight.new_zeros(shape)}


def unroll_lstm(lstm: nn.LSTM, input_TBF: Tensor, state: State, first_TB: Tensor | None = None) -> tuple[Tensor, State]:
    """(hidden [T, B, H], the state after the last step).

    `first_TB`: bool, on the CPU, an episode begins with the step, so the state before it is zero; None where that can
    only be so at step 0, whose state is zero already: then the LSTM runs the whole sequence at once. Otherwise it runs
    the stretches between steps at which any episode begins, so that a sequence costs as many calls as there are such
    steps. No device is waited for.
    """
    carry = (state["h"].transpose(0, 1).contiguous(), state["c"].transpose(0, 1).contiguous())
    if first_TB is None:
        hidden_TBH, carry = lstm(input_TBF, carry)
    else:
        starts = [0, *(t for t in first_TB.any(1).nonzero()[:, 0].tolist() if t > 0)]
        goes_on_NB1 = (~first_TB[starts])[..., None].to(input_TBF.device, input_TBF.dtype, non_blocking=True)
        pieces: list[Tensor] = []
        for n, (start, stop) in enumerate(pairwise([*starts, len(input_TBF)])):
            goes_on_1B1 = goes_on_NB1[n : n + 1]
            piece_TBH, carry = lstm(input_TBF[start:stop], (carry[0] * goes_on_1B1, carry[1] * goes_on_1B1))
            pieces.append(piece_TBH)
        hidden_TBH = torch.cat(pieces)
    return hidden_TBH, {"h": carry[0].transpose(0, 1), "c": carry[1].transpose(0, 1)}
