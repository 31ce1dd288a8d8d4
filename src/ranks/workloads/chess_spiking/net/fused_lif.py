"""`lif_scan` as one Triton kernel each way, for CUDA. Imported only where Triton and CUDA are there.

Each program has BLOCK neurons and walks through the time steps with their potentials in registers.
The forward pass reads the currents and writes the spikes once; in training it also writes the
potentials before the reset (u), from which the backward pass gets spikes and surrogate gradients.
The plain version, the equations and their sources: lif.py.

Spikes equal those of lif.py with tau = 2, bit for bit. With another tau a potential may differ in its
last bit, because torch's lerp fuses a product and a sum; so may gradients, because Triton divides
float32 with an error of up to two units in the last place.
"""

# Triton is in no install, and a kernel's arguments are pointers and numbers that its compiler types.
# pyright: reportMissingImports=false, reportMissingParameterType=false, reportUnknownParameterType=false
# pyright: reportUntypedFunctionDecorator=false

from __future__ import annotations

import math
from typing import Any, cast

import torch
import triton
import triton.language as tl
from torch import Tensor

from ranks.workloads.chess_spiking.net.lif import like_steps, state_type, with_dense_steps

BLOCK = 1024


@triton.jit
def lif_forward(
    current, spikes, potential, size, current_step, TAU: tl.constexpr, THRESHOLD: tl.constexpr,
    STEPS: tl.constexpr, SOFT: tl.constexpr, SAVE: tl.constexpr, STATE: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Spikes of `size` neurons over STEPS steps; step t of the currents begins at t * current_step."""
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = at < size
    v = tl.zeros((BLOCK,), STATE)
    for _ in range(STEPS):
        x = tl.load(current + at, mask=inside, other=0.0).to(STATE)
        # like torch.lerp, from the end that is closer
        u = v + (1 / TAU) * (x - v) if TAU > 2 else x - (1 - 1 / TAU) * (x - v)
        fired = u >= THRESHOLD
        spike = fired.to(STATE)
        tl.store(spikes + at, spike.to(spikes.dtype.element_ty), mask=inside)
        if SAVE:
            tl.store(potential + at, u, mask=inside)
        v = u - THRESHOLD * spike if SOFT else tl.where(fired, 0.0, u)
        current += current_step
        spikes += size
        potential += size


@triton.jit
def lif_backward(
    potential, spike_grad, current_grad, size, last_step, TAU: tl.constexpr, THRESHOLD: tl.constexpr,
    ALPHA: tl.constexpr, HALF_PI: tl.constexpr, STEPS: tl.constexpr, SOFT: tl.constexpr, DETACH: tl.constexpr,
    STATE: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Gradients of the currents from those of the spikes; see the head of this file. The last step
    begins at `last_step`."""
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = at < size
    at += last_step
    h = tl.zeros((BLOCK,), STATE)
    for _ in range(STEPS):
        u = tl.load(potential + at, mask=inside, other=0.0)
        a = tl.load(spike_grad + at, mask=inside, other=0.0).to(STATE)
        over = u - THRESHOLD
        b = h if SOFT else tl.where(over >= 0, 0.0, h)
        if not DETACH:
            a = a - h * THRESHOLD if SOFT else a - h * u
        scaled = HALF_PI * ALPHA * over
        du = b + a * ((ALPHA / 2) / (1 + scaled * scaled))
        tl.store(current_grad + at, ((1 / TAU) * du).to(current_grad.dtype.element_ty), mask=inside)
        h = (1 - 1 / TAU) * du
        at -= size


class FusedLif(torch.autograd.Function):
    """The two kernels as one differentiable function."""

    @staticmethod
    def forward(
        ctx: Any, current_TB: Tensor, tau: float, threshold: float, soft: bool, detach_reset: bool, alpha: float
    ) -> Tensor:
        current_TB = with_dense_steps(current_TB)
        steps, size = current_TB.shape[0], current_TB[0].numel()
        spikes_TB = like_steps(current_TB, current_TB.dtype)
        save, state = bool(ctx.needs_input_grad[0]), state_type(current_TB.dtype)
        potential_TB = like_steps(current_TB, state) if save else spikes_TB
        cast("Any", lif_forward)[(triton.cdiv(size, BLOCK),)](
            current_TB, spikes_TB, potential_TB, size, current_TB.stride(0), TAU=tau, THRESHOLD=threshold,
            STEPS=steps, SOFT=soft, SAVE=save, STATE=_triton_type(state), BLOCK=BLOCK, enable_fp_fusion=False,
        )  # fmt: skip
        if save:
            ctx.save_for_backward(potential_TB)
        ctx.settings = tau, threshold, soft, detach_reset, alpha
        return spikes_TB

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Tensor) -> tuple[Tensor, None, None, None, None, None]:
        (potential_TB,) = ctx.saved_tensors
        tau, threshold, soft, detach_reset, alpha = ctx.settings
        spike_grad_TB = grad_outputs[0]
        if spike_grad_TB.stride() != potential_TB.stride():  # the kernel reads both in the order of memory
            spike_grad_TB = like_steps(potential_TB, spike_grad_TB.dtype).copy_(spike_grad_TB)
        current_grad_TB = torch.empty_like(spike_grad_TB)
        steps, size = potential_TB.shape[0], potential_TB[0].numel()
        cast("Any", lif_backward)[(triton.cdiv(size, BLOCK),)](
            potential_TB, spike_grad_TB, current_grad_TB, size, (steps - 1) * size, TAU=tau, THRESHOLD=threshold,
            ALPHA=alpha, HALF_PI=math.pi / 2, STEPS=steps, SOFT=soft, DETACH=detach_reset,
            STATE=_triton_type(potential_TB.dtype), BLOCK=BLOCK, enable_fp_fusion=False,
        )  # fmt: skip
        return current_grad_TB, None, None, None, None, None


def _triton_type(state: torch.dtype) -> Any:
    return tl.float64 if state == torch.float64 else tl.float32


def fused_lif_scan(
    current_TB: Tensor, tau: float, threshold: float, reset: str, detach_reset: bool, alpha: float
) -> Tensor:
    """`lif_scan` with the arctangent surrogate, in one kernel."""
    with torch.cuda.device_of(current_TB):  # Triton launches on the current device, another one in a new thread
        return FusedLif.apply(  # pyright: ignore[reportReturnType]
            current_TB, tau, threshold, reset == "soft", detach_reset, alpha
        )
