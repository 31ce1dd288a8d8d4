"""One step of an LSTM and of a GRU and their gradients, as torch calls them on devices with fused kernels.

Legend: B rows, G gates, H hidden.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor


def lstm(from_input_BG: Tensor, from_state_BG: Tensor, c_BH: Tensor, *biases: Tensor | None) -> tuple[Tensor, ...]:
    gates_BG = sum((b for b in biases if b is not None), from_input_BG + from_state_BG)
    i, f, g, o = gates_BG.chunk(4, 1)
    i, f, g, o = i.sigmoid(), f.sigmoid(), g.tanh(), o.sigmoid()
    next_c_BH = f * c_BH + i * g
    return o * next_c_BH.tanh(), next_c_BH, torch.cat([i, f, g, o], 1)


def lstm_backward(
    grad_h_BH: Tensor | None,
    grad_c_BH: Tensor | None,
    c_BH: Tensor,
    next_c_BH: Tensor,
    gates_BG: Tensor,
    has_bias: bool,
) -> tuple[Tensor, Tensor, Tensor | None]:
    i, f, g, o = gates_BG.chunk(4, 1)
    nothing, tanh_BH = torch.zeros_like(next_c_BH), next_c_BH.tanh()
    grad_h_BH, grad_c_BH = (nothing if grad is None else grad for grad in (grad_h_BH, grad_c_BH))
    grad = grad_c_BH + grad_h_BH * o * (1 - tanh_BH * tanh_BH)
    of_gates = [
        grad * g * i * (1 - i),
        grad * c_BH * f * (1 - f),
        grad * i * (1 - g * g),
        grad_h_BH * tanh_BH * o * (1 - o),
    ]
    grad_BG = torch.cat(of_gates, 1)
    return grad_BG, grad * f, grad_BG.sum(0) if has_bias else None


def gru(from_input_BG: Tensor, from_state_BG: Tensor, h_BH: Tensor, *biases: Tensor | None) -> tuple[Tensor, Tensor]:
    of_input, of_state = (0.0 if bias is None else bias for bias in (*biases, None, None)[:2])
    (ri, zi, ni), (rh, zh, nh) = (from_input_BG + of_input).chunk(3, 1), (from_state_BG + of_state).chunk(3, 1)
    r, z = (ri + rh).sigmoid(), (zi + zh).sigmoid()
    n = (ni + r * nh).tanh()
    return n + z * (h_BH - n), torch.cat([r, z, n, h_BH, nh], 1)


def gru_backward(grad_BH: Tensor, kept_BG: Tensor, has_bias: bool) -> tuple[Tensor | None, ...]:
    r, z, n, h_BH, nh = kept_BG.chunk(5, 1)
    grad_n = grad_BH * (1 - z) * (1 - n * n)
    grad_r, grad_z = grad_n * nh * r * (1 - r), grad_BH * (h_BH - n) * z * (1 - z)
    of_input_BG, of_state_BG = (torch.cat([grad_r, grad_z, last], 1) for last in (grad_n, grad_n * r))
    biases = (of_input_BG.sum(0), of_state_BG.sum(0)) if has_bias else (None, None)
    return of_input_BG, of_state_BG, grad_BH * z, *biases


CELLS: dict[str, Callable[..., Any]] = {
    "aten::_thnn_fused_lstm_cell": lstm,
    "aten::_thnn_fused_lstm_cell_backward_impl": lstm_backward,
    "aten::_thnn_fused_gru_cell": gru,
    "aten::_thnn_fused_gru_cell_backward": gru_backward,
}
