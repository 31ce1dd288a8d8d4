"""Running an LSTM over whole sequences, with its state reset where episodes start inside them.

Legend: T steps, B environments, F inputs, L layers, H hidden, N stretches between resets.
"""

from __future__ import annotations

from itertools import pairwise

import torch
from torch import Tensor, nn

from ranks.rl.pytree import State


def initial_lstm_state(lstm: nn.LSTM, num_rows: int) -> State:
    """The zero state {"h", "c"}, [B, L, H] each.

    (`torch.nn.LSTM` has the layers first; here rows come first.)
    """
    weight = next(lstm.parameters())
    shape = (num_rows, lstm.num_layers, lstm.hidden_size)
    return {"h": weight.new_zeros(shape), "c": weight.new_zeros(shape)}


def unroll_lstm(lstm: nn.LSTM, input_TBF: Tensor, state: State, first_TB: Tensor | None = None) -> tuple[Tensor, State]:
    """Run T steps and return (hidden [T, B, H], the state after the last step).

    `first_TB`: bool, on the CPU, an episode starts with the step, so the state before it is zero;
    None where that can only be so at step 0, whose state is zero already. Without it the LSTM runs
    the whole sequence in one call. With it there is one call for each stretch between steps at
    which any episode starts. Neither waits for the GPU.
    """
    carry = (state["h"].transpose(0, 1).contiguous(), state["c"].transpose(0, 1).contiguous())
    if first_TB is None:
        hidden_TBH, carry = lstm(input_TBF, carry)
    else:
        starts = [0, *(t for t in first_TB.any(1).nonzero()[:, 0].tolist() if t > 0)]
        keep_NB1 = (~first_TB[starts])[..., None].to(input_TBF.device, input_TBF.dtype, non_blocking=True)
        stretches: list[Tensor] = []
        for n, (start, stop) in enumerate(pairwise([*starts, len(input_TBF)])):
            keep_1B1 = keep_NB1[n : n + 1]
            stretch_TBH, carry = lstm(input_TBF[start:stop], (carry[0] * keep_1B1, carry[1] * keep_1B1))
            stretches.append(stretch_TBH)
        hidden_TBH = torch.cat(stretches)
    return hidden_TBH, {"h": carry[0].transpose(0, 1), "c": carry[1].transpose(0, 1)}
