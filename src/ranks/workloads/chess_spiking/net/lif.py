"""Leaky integrate-and-fire neurons over a few time steps, with a surrogate gradient.

Legend: T time steps, B positions, ... any further dimensions of a layer.

A neuron has a membrane potential v, zero before the first step. With the input current x_t:

    u_t = v_{t-1} + (x_t - v_{t-1}) / tau          charge and leak (the potential before the reset)
    s_t = 1 where u_t >= threshold, else 0          fire
    v_t = u_t (1 - s_t)                             hard reset: back to zero
    v_t = u_t - threshold s_t                       soft reset: the rest of the charge is kept

The equation of the charge is that of Fang et al. 2021, "Incorporating Learnable Membrane Time
Constant to Enhance Learning of Spiking Neural Networks" (arXiv 2007.05785), with the resting
potential 0. The hard reset is the default there and in SpikingJelly's LIFNode. The soft reset is
that of Rueckauer et al. 2017, "Conversion of Continuous-Valued Deep Networks to Efficient
Event-Driven Networks for Image Classification".

The step function has no useful derivative. The backward pass uses that of a smooth step instead
(Neftci, Mostafa and Zenke 2019, arXiv 1901.09948), here the arctangent of Fang et al. 2021:

    smooth step(x) = arctan(pi/2 alpha x) / pi + 1/2      slope(x) = (alpha/2) / (1 + (pi/2 alpha x)^2)

With g_t the gradient of s_t and h_t that of v_t (zero after the last step), from the last step to
the first:

    hard reset    a_t = g_t - h_t u_t           b_t = h_t (1 - s_t)
    soft reset    a_t = g_t - h_t threshold     b_t = h_t            (detached reset: a_t = g_t)
    du_t = b_t + a_t slope(u_t - threshold)     dx_t = du_t / tau    h_{t-1} = du_t (1 - 1 / tau)

A detached reset has no gradient of its own, which made training more reliable in Zenke and Vogels
2021, "The Remarkable Robustness of Surrogate Gradient Learning for Instilling Complex Function in
Spiking Neural Networks".

This file runs everywhere; fused_lif.py does the same in one kernel each way. Here an operation
writes into memory that is already there, because new memory costs more time than the arithmetic.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

Scan = Callable[[Tensor, float, float, str, bool, float], Tensor]
"""A function with the arguments and the result of `lif_scan`."""


def lif_scan(current_TB: Tensor, tau: float, threshold: float, reset: str, detach_reset: bool, alpha: float) -> Tensor:
    """The spikes, 0 or 1, of a layer: [T, B, ...] from input currents [T, B, ...].

    `reset`: hard or soft. `alpha`: the steepness of the surrogate. Potentials have the type of the
    currents, but float32 for half-precision ones."""
    settings = (tau, threshold, reset == "soft", detach_reset, alpha)
    return LifScan.apply(current_TB, *settings)  # pyright: ignore[reportReturnType]


class LifScan(torch.autograd.Function):
    """`lif_scan` as a differentiable function; the head of this file has the equations."""

    @staticmethod
    def forward(
        ctx: Any, current_TB: Tensor, tau: float, threshold: float, soft: bool, detach_reset: bool, alpha: float
    ) -> Tensor:
        current_TB, state = with_dense_steps(current_TB), state_type(current_TB.dtype)
        spikes_TB = like_steps(current_TB, state)
        save = bool(ctx.needs_input_grad[0])
        potential_TB = like_steps(current_TB, state) if save else None
        v_B = torch.zeros_like(spikes_TB[0])
        for step, current_B in enumerate(current_TB.unbind(0)):
            u_B = v_B if potential_TB is None else potential_TB[step]
            spike_B = spikes_TB[step]
            torch.lerp(v_B, current_B.to(state), 1 / tau, out=u_B)
            torch.ge(u_B, threshold, out=spike_B)
            if soft:
                torch.sub(u_B, spike_B, alpha=threshold, out=v_B)
            else:
                torch.addcmul(u_B, u_B, spike_B, value=-1, out=v_B)
        if potential_TB is not None:
            ctx.save_for_backward(potential_TB)
        ctx.settings = tau, threshold, soft, detach_reset, alpha
        return spikes_TB.to(current_TB.dtype)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(  # pyright: ignore[reportIncompatibleMethodOverride] - the decorator has no types
        ctx: Any, *grad_outputs: Tensor
    ) -> tuple[Tensor, None, None, None, None, None]:
        (potential_TB,) = ctx.saved_tensors
        tau, threshold, soft, detach_reset, alpha = ctx.settings
        spike_grad_TB = grad_outputs[0]
        current_grad_TB = like_steps(potential_TB, spike_grad_TB.dtype)
        h_B = torch.zeros_like(potential_TB[0])
        for step in reversed(range(len(potential_TB))):
            u_B, a_B = potential_TB[step], spike_grad_TB[step].to(potential_TB.dtype)
            if not detach_reset:
                a_B = a_B - h_B * (threshold if soft else u_B)
            over_B = u_B - threshold
            b_B = h_B if soft else h_B.masked_fill_(over_B >= 0, 0.0)
            du_B = torch.addcmul(b_B, a_B, arctan_slope(over_B, alpha))
            current_grad_TB[step] = du_B / tau
            h_B = du_B.mul_(1 - 1 / tau)
        return current_grad_TB, None, None, None, None, None


def arctan_slope(x: Tensor, alpha: float) -> Tensor:
    """The surrogate gradient: the derivative of arctan(pi/2 alpha x) / pi + 1/2."""
    return (math.pi / 2 * alpha * x).square_().add_(1).reciprocal_().mul_(alpha / 2)


def state_type(dtype: torch.dtype) -> torch.dtype:
    """The type of the potentials for currents of a type."""
    return torch.float32 if dtype in (torch.bfloat16, torch.float16) else dtype


def with_dense_steps(current_TB: Tensor) -> Tensor:
    """The same tensor if each time step lies in memory without gaps, in the usual order or in that of
    channels_last; else a contiguous copy. All steps may be the same memory (a current that does not
    change)."""
    step_B = current_TB[0]
    dense = step_B.is_contiguous() or (step_B.ndim == 4 and step_B.is_contiguous(memory_format=torch.channels_last))
    return current_TB if dense and current_TB.stride(0) in (0, step_B.numel()) else current_TB.contiguous()


def like_steps(dense_TB: Tensor, dtype: torch.dtype) -> Tensor:
    """A new tensor of the same shape and layout of each time step, the steps one after the other."""
    strides = (dense_TB[0].numel(), *dense_TB.stride()[1:])
    return torch.empty_strided(dense_TB.shape, strides, dtype=dtype, device=dense_TB.device)


class LIF(nn.Module):
    """A layer of leaky integrate-and-fire neurons; see the head of this file.

    `scan` computes the spikes: `lif_scan`, or the fused kernel after `use_fused_kernels`."""

    def __init__(self, tau: float, threshold: float, reset: str, detach_reset: bool, alpha: float) -> None:
        super().__init__()
        self.tau, self.threshold, self.reset = tau, threshold, reset
        self.detach_reset, self.alpha = detach_reset, alpha
        self.scan: Scan = lif_scan

    def forward(self, current_TB: Tensor) -> Tensor:
        return self.scan(current_TB, self.tau, self.threshold, self.reset, self.detach_reset, self.alpha)
