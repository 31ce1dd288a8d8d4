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

    smooth step(x) = arctan(pi/2 alpha x) / pi + 1/2      derivative: (alpha/2) / (1 + (pi/2 alpha x)^2)

This file is the reference, and what runs where the fused kernel (fused_lif.py) cannot.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn


class ArctanSpike(torch.autograd.Function):
    """The step function of `x`, the potential above the threshold, with the surrogate gradient."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, alpha: float) -> Tensor:
        ctx.save_for_backward(x)
        ctx.alpha = alpha
        return (x >= 0).to(x.dtype)

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Tensor) -> tuple[Tensor, None]:
        (x,) = ctx.saved_tensors
        return grad_outputs[0] * arctan_slope(x, ctx.alpha), None


def arctan_spike(x: Tensor, alpha: float) -> Tensor:
    """1 where x >= 0, else 0; its gradient is `arctan_slope`."""
    return ArctanSpike.apply(x, alpha)  # pyright: ignore[reportReturnType]


def arctan_slope(x: Tensor, alpha: float) -> Tensor:
    """The derivative of `arctan_step`."""
    return (alpha / 2) / (1 + (math.pi / 2 * alpha * x).square())


def arctan_step(x: Tensor, alpha: float) -> Tensor:
    """The smooth step from 0 to 1 whose derivative is the surrogate gradient."""
    return torch.arctan(math.pi / 2 * alpha * x) / math.pi + 0.5


def lif_scan(
    current_TB: Tensor,
    tau: float,
    threshold: float,
    reset: str,
    detach_reset: bool,
    alpha: float,
    fire: Callable[[Tensor, float], Tensor] = arctan_spike,
) -> Tensor:
    """The spikes, 0 or 1, of a layer: [T, B, ...] from input currents [T, B, ...].

    `reset`: hard or soft. `detach_reset`: no gradient flows through the reset, which made training
    more reliable in Zenke and Vogels 2021, "The Remarkable Robustness of Surrogate Gradient Learning
    for Instilling Complex Function in Spiking Neural Networks". `fire(u - threshold, alpha)` makes
    the spikes. Potentials have the type of the currents, but float32 for half-precision ones."""
    half = current_TB.dtype in (torch.bfloat16, torch.float16)
    current_steps = (current_TB.float() if half else current_TB).unbind(0)
    keep, charge = 1 - 1 / tau, 1 / tau
    v_B = torch.zeros_like(current_steps[0])
    spikes: list[Tensor] = []
    for current_B in current_steps:
        u_B = keep * v_B + charge * current_B
        spike_B = fire(u_B - threshold, alpha)
        spikes.append(spike_B)
        fired_B = spike_B.detach() if detach_reset else spike_B
        v_B = u_B * (1 - fired_B) if reset == "hard" else u_B - threshold * fired_B
    return torch.stack(spikes).to(current_TB.dtype)


class LIF(nn.Module):
    """A layer of leaky integrate-and-fire neurons; see the head of this file.

    `scan` computes the spikes: `lif_scan`, or the fused kernel after `use_fused_kernel`."""

    def __init__(self, tau: float, threshold: float, reset: str, detach_reset: bool, alpha: float) -> None:
        super().__init__()
        self.tau, self.threshold, self.reset = tau, threshold, reset
        self.detach_reset, self.alpha = detach_reset, alpha
        self.scan: Callable[[Tensor, float, float, str, bool, float], Tensor] = lif_scan

    def forward(self, current_TB: Tensor) -> Tensor:
        return self.scan(current_TB, self.tau, self.threshold, self.reset, self.detach_reset, self.alpha)
