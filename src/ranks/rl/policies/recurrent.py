"""Running an LSTM over whole sequences, with its state reset where episodes start inside them.

Legend: T steps, B environments, F inputs, L layers, H hidden, N segments (the steps of one
environment between two starts of episodes).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from ranks.rl.pytree import State

Carry = tuple[Tensor, Tensor]
"""h and c between two steps, [L, B, H] each, as `torch.nn.LSTM` has them."""


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
    None where that can only be so at step 0, whose state is zero already. On a GPU the LSTM runs
    all steps in one call (`run_packed`) and the host waits for nothing. On the CPU, where that takes
    two to three times as long, `run_stretches` is used.
    """
    carry = (state["h"].transpose(0, 1).contiguous(), state["c"].transpose(0, 1).contiguous())
    if first_TB is None:
        hidden_TBH, carry = lstm(input_TBF, carry)
    elif input_TBF.device.type == "cpu":
        hidden_TBH, carry = run_stretches(lstm, input_TBF, carry, first_TB)
    else:
        hidden_TBH, carry = run_packed(lstm, input_TBF, carry, first_TB)
    return hidden_TBH, {"h": carry[0].transpose(0, 1), "c": carry[1].transpose(0, 1)}


def run_stretches(lstm: nn.LSTM, input_TBF: Tensor, carry: Carry, first_TB: Tensor) -> tuple[Tensor, Carry]:
    """One call for each stretch of steps in which no episode starts, except at its first step."""
    starts = [0, *(t for t in first_TB.any(1).nonzero()[:, 0].tolist() if t > 0)]
    keep_NB1 = (~first_TB[starts])[..., None].to(input_TBF.dtype)
    stretches: list[Tensor] = []
    for n, (start, stop) in enumerate(pairwise([*starts, len(input_TBF)])):
        keep_1B1 = keep_NB1[n : n + 1]
        stretch_TBH, carry = lstm(input_TBF[start:stop], (carry[0] * keep_1B1, carry[1] * keep_1B1))
        stretches.append(stretch_TBH)
    return torch.cat(stretches), carry


def run_packed(lstm: nn.LSTM, input_TBF: Tensor, carry: Carry, first_TB: Tensor) -> tuple[Tensor, Carry]:
    """One call for all steps: each segment is a sequence of a `PackedSequence`."""
    segments = Segments.of(first_TB).to(input_TBF.device)
    rows_MF = input_TBF.flatten(0, 1).index_select(0, segments.step_M)
    h_LNH, c_LNH = (
        torch.cat([part_LBH, torch.zeros_like(part_LBH[:, :1])], 1).index_select(1, segments.state_N)
        for part_LBH in carry
    )
    packed, (h_LNH, c_LNH) = lstm(PackedSequence(rows_MF, segments.batch_sizes), (h_LNH, c_LNH))
    hidden_TBH = packed.data.index_select(0, segments.row_M).unflatten(0, first_TB.shape)
    return hidden_TBH, (h_LNH.index_select(1, segments.last_B), c_LNH.index_select(1, segments.last_B))


@dataclass(frozen=True)
class Segments:
    """The segments of T steps of B environments, from the longest to the shortest, as packed rows.

    The M = T * B packed rows are step 0 of all segments, then step 1 of those that have one, and so
    on. All are int64.
    """

    step_M: Tensor
    """The step t * B + b of each packed row."""
    row_M: Tensor
    """The packed row of each step t * B + b."""
    state_N: Tensor
    """The environment whose state a segment starts with; B where it starts with zeros."""
    last_B: Tensor
    """The segment that the last step of each environment belongs to."""
    batch_sizes: Tensor
    """How many segments have a step 0, a step 1, ...; always on the CPU."""

    @classmethod
    def of(cls, first_TB: Tensor) -> Segments:
        """From bool[T, B] on the CPU: an episode starts with the step."""
        num_steps, num_envs = first_TB.shape
        begins_BT = first_TB.T.clone()
        begins_BT[:, 0] = True
        env_N, begin_N = begins_BT.nonzero().unbind(1)
        is_last_N = torch.cat([env_N[1:] != env_N[:-1], torch.ones(1, dtype=torch.bool)])
        end_N = torch.where(is_last_N, num_steps, begin_N.roll(-1))
        length_N, order_N = (end_N - begin_N).sort(descending=True, stable=True)
        env_N, begin_N = env_N[order_N], begin_N[order_N]
        offset_S1 = torch.arange(int(length_N[0]))[:, None]
        exists_SN = offset_S1 < length_N
        step_M = ((begin_N + offset_S1) * num_envs + env_N)[exists_SN]
        row_M = torch.empty_like(step_M)
        row_M[step_M] = torch.arange(len(step_M))
        continues_N = (begin_N == 0) & ~first_TB[0, env_N]
        state_N = torch.where(continues_N, env_N, num_envs)
        # segments are in the order of the environments before they are sorted by length
        last_B = torch.empty_like(order_N)
        last_B[order_N] = torch.arange(len(order_N))
        return cls(step_M, row_M, state_N, last_B[is_last_N], exists_SN.sum(1))

    def to(self, device: torch.device) -> Segments:
        """The indices on a device, by one copy from pinned memory."""
        parts = [self.step_M, self.row_M, self.state_N, self.last_B]
        indices = torch.cat(parts)
        if device.type != "cpu":
            indices = indices.pin_memory().to(device, non_blocking=True)
        step_M, row_M, state_N, last_B = torch.split(indices, [len(part) for part in parts])
        return Segments(step_M, row_M, state_N, last_B, self.batch_sizes)
