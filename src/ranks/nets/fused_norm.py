"""Group norm, an optional sum and an activation as two Triton kernels each way, for CUDA and channels_last.

Imported only where Triton and CUDA are there. The plain version is `GroupNorm` in group_norm.py; PyTorch's own kernel
copies activations to the contiguous layout and back, and autocast runs it in float32.

A sample is a matrix of S pixels (H x W, or T x H x W) with C channels, which lie next to each other. Each sample is
divided into K chunks of pixels, by its size alone: a result does not depend on the other samples of the batch. A first
kernel adds up each chunk, a second one adds up the chunks of its sample and writes the result. Arithmetic is in
float32, and nothing is added in an order that may change.

Legend: B samples, S pixels, C channels, K chunks.
"""

# Triton is in no install, and a kernel's arguments are pointers and numbers that its compiler types.
# pyright: reportMissingImports=false, reportMissingParameterType=false, reportUnknownParameterType=false
# pyright: reportUntypedFunctionDecorator=false

from __future__ import annotations

from typing import Any, NamedTuple, cast

import torch
import triton
import triton.language as tl
from torch import Tensor

from ranks.nets.group_norm import Activation

CHUNK = 1 << 14
"""Values of a chunk, about."""
MAX_CHUNKS, FEW_CHUNKS = 64, 8
"""Of a sample. Kernels are compiled for these two numbers only."""
TILE = 4096
"""Values that a program holds at once."""
ACTIVATIONS: dict[Activation, int] = {"none": 0, "relu": 1, "silu": 2}


@triton.jit
def of_groups(value_C, CHANNELS: tl.constexpr, WIDTH: tl.constexpr):
    """The sum over the WIDTH channels of a group, for each of its channels."""
    group = tl.reshape(value_C, (CHANNELS // WIDTH, WIDTH))
    total = tl.sum(group, 1)
    return tl.reshape(tl.broadcast_to(total[:, None], (CHANNELS // WIDTH, WIDTH)), (CHANNELS,))


@triton.jit
def of_chunks(sums, sample, num_chunks, C, c, CHUNKS: tl.constexpr):
    """The two sums of a sample over its chunks, for each channel."""
    k = tl.arange(0, CHUNKS)
    at = sums + (sample * num_chunks + k[:, None]) * 2 * C + c[None, :]
    inside = (k[:, None] < num_chunks) & (c[None, :] < C)
    first = tl.sum(tl.load(at, mask=inside, other=0.0), 0)
    return first, tl.sum(tl.load(at + C, mask=inside, other=0.0), 0)


@triton.jit
def through_activation(grad, z, ACTIVATION: tl.constexpr):
    """The gradient at z, which goes into the activation."""
    if ACTIVATION == 1:
        return tl.where(z > 0, grad, 0.0)
    if ACTIVATION == 2:
        sigmoid = 1.0 / (1.0 + tl.exp(-z))
        return grad * sigmoid * (1.0 + z * (1.0 - sigmoid))
    return grad


@triton.jit
def norm_sums(x, sums, S, C, rows, CHANNELS: tl.constexpr, ROWS: tl.constexpr):
    """float32[B, K, 2, C]: sums of x and of its square."""
    sample, chunk = tl.program_id(0).to(tl.int64), tl.program_id(1)
    c, r = tl.arange(0, CHANNELS), tl.arange(0, ROWS)
    sum_C = tl.zeros((CHANNELS,), tl.float32)
    square_C = tl.zeros((CHANNELS,), tl.float32)
    for first in range(0, rows, ROWS):
        s = chunk * rows + first + r
        inside = (s[:, None] < S) & (c[None, :] < C)
        value = tl.load(x + sample * S * C + s[:, None] * C + c[None, :], mask=inside, other=0.0).to(tl.float32)
        sum_C += tl.sum(value, 0)
        square_C += tl.sum(value * value, 0)
    into = sums + (sample * tl.num_programs(1) + chunk) * 2 * C + c
    tl.store(into, sum_C, mask=c < C)
    tl.store(into + C, square_C, mask=c < C)


@triton.jit
def norm_apply(
    x, add, y, sums, moments, weight, bias, S, C, rows, eps,
    CHANNELS: tl.constexpr, WIDTH: tl.constexpr, ROWS: tl.constexpr, CHUNKS: tl.constexpr,
    ACTIVATION: tl.constexpr, ADD: tl.constexpr,
):  # fmt: skip
    """y = activation(weight * (x - mean) / deviation + bias [+ add]). Writes the moments of a sample, float32[B, 2, C]:
    mean and 1 / deviation of the group of a channel."""
    sample, chunk = tl.program_id(0).to(tl.int64), tl.program_id(1)
    c, r = tl.arange(0, CHANNELS), tl.arange(0, ROWS)
    sum_C, square_C = of_chunks(sums, sample, tl.num_programs(1), C, c, CHUNKS)
    count = S * WIDTH
    mean_C = of_groups(sum_C, CHANNELS, WIDTH) / count
    variance_C = of_groups(square_C, CHANNELS, WIDTH) / count - mean_C * mean_C
    inverse_C = 1.0 / tl.sqrt(tl.maximum(variance_C, 0.0) + eps)
    if chunk == 0:
        tl.store(moments + sample * 2 * C + c, mean_C, mask=c < C)
        tl.store(moments + sample * 2 * C + C + c, inverse_C, mask=c < C)
    scale_C = inverse_C * tl.load(weight + c, mask=c < C, other=0.0)
    shift_C = tl.load(bias + c, mask=c < C, other=0.0) - mean_C * scale_C
    for first in range(0, rows, ROWS):
        s = chunk * rows + first + r
        inside = (s[:, None] < S) & (c[None, :] < C)
        at = sample * S * C + s[:, None] * C + c[None, :]
        z = tl.load(x + at, mask=inside, other=0.0).to(tl.float32) * scale_C[None, :] + shift_C[None, :]
        if ADD:
            z += tl.load(add + at, mask=inside, other=0.0).to(tl.float32)
        if ACTIVATION == 1:
            z = tl.maximum(z, 0.0)
        if ACTIVATION == 2:
            z = z / (1.0 + tl.exp(-z))
        tl.store(y + at, z.to(y.dtype.element_ty), mask=inside)


@triton.jit
def norm_grad_sums(
    grad, x, y, sums, moments, weight, bias, S, C, rows,
    CHANNELS: tl.constexpr, ROWS: tl.constexpr, ACTIVATION: tl.constexpr, ADD: tl.constexpr,
):  # fmt: skip
    """float32[B, K, 2, C]: sums of the gradient at the activation's input, and of that times x. After a sum, y tells
    which values the ReLU kept; else x does."""
    sample, chunk = tl.program_id(0).to(tl.int64), tl.program_id(1)
    c, r = tl.arange(0, CHANNELS), tl.arange(0, ROWS)
    mean_C = tl.load(moments + sample * 2 * C + c, mask=c < C, other=0.0)
    scale_C = tl.load(moments + sample * 2 * C + C + c, mask=c < C, other=0.0)
    scale_C *= tl.load(weight + c, mask=c < C, other=0.0)
    shift_C = tl.load(bias + c, mask=c < C, other=0.0) - mean_C * scale_C
    sum_C = tl.zeros((CHANNELS,), tl.float32)
    product_C = tl.zeros((CHANNELS,), tl.float32)
    for first in range(0, rows, ROWS):
        s = chunk * rows + first + r
        inside = (s[:, None] < S) & (c[None, :] < C)
        at = sample * S * C + s[:, None] * C + c[None, :]
        value = tl.load(x + at, mask=inside, other=0.0).to(tl.float32)
        z = value * scale_C[None, :] + shift_C[None, :]
        if ADD:
            z = tl.load(y + at, mask=inside, other=0.0).to(tl.float32)
        dz = through_activation(tl.load(grad + at, mask=inside, other=0.0).to(tl.float32), z, ACTIVATION)
        sum_C += tl.sum(dz, 0)
        product_C += tl.sum(dz * value, 0)
    into = sums + (sample * tl.num_programs(1) + chunk) * 2 * C + c
    tl.store(into, sum_C, mask=c < C)
    tl.store(into + C, product_C, mask=c < C)


@triton.jit
def norm_grad_apply(
    grad, x, y, x_grad, add_grad, sums, moments, affine_grad, weight, bias, S, C, rows,
    CHANNELS: tl.constexpr, WIDTH: tl.constexpr, ROWS: tl.constexpr, CHUNKS: tl.constexpr,
    ACTIVATION: tl.constexpr, ADD: tl.constexpr,
):  # fmt: skip
    """The gradients of x and of what was added; those of weight and bias for each sample, float32[B, 2, C]."""
    sample, chunk = tl.program_id(0).to(tl.int64), tl.program_id(1)
    c, r = tl.arange(0, CHANNELS), tl.arange(0, ROWS)
    sum_C, product_C = of_chunks(sums, sample, tl.num_programs(1), C, c, CHUNKS)
    mean_C = tl.load(moments + sample * 2 * C + c, mask=c < C, other=0.0)
    inverse_C = tl.load(moments + sample * 2 * C + C + c, mask=c < C, other=0.0)
    weight_C = tl.load(weight + c, mask=c < C, other=0.0)
    normed_C = (product_C - mean_C * sum_C) * inverse_C  # the sum of dz times the normed x
    if chunk == 0:
        tl.store(affine_grad + sample * 2 * C + c, normed_C, mask=c < C)
        tl.store(affine_grad + sample * 2 * C + C + c, sum_C, mask=c < C)
    count = S * WIDTH
    mean_grad_C = of_groups(sum_C * weight_C, CHANNELS, WIDTH) / count
    mean_normed_C = of_groups(normed_C * weight_C, CHANNELS, WIDTH) / count
    # dx = (weight dz - mean(weight dz) - normed x * mean(weight dz * normed x)) / deviation, as a sum of three products
    scale_C = inverse_C * weight_C
    of_x_C = -inverse_C * inverse_C * mean_normed_C
    constant_C = -inverse_C * mean_grad_C - of_x_C * mean_C
    shift_C = tl.load(bias + c, mask=c < C, other=0.0) - mean_C * scale_C
    for first in range(0, rows, ROWS):
        s = chunk * rows + first + r
        inside = (s[:, None] < S) & (c[None, :] < C)
        at = sample * S * C + s[:, None] * C + c[None, :]
        value = tl.load(x + at, mask=inside, other=0.0).to(tl.float32)
        z = value * scale_C[None, :] + shift_C[None, :]
        if ADD:
            z = tl.load(y + at, mask=inside, other=0.0).to(tl.float32)
        dz = through_activation(tl.load(grad + at, mask=inside, other=0.0).to(tl.float32), z, ACTIVATION)
        if ADD:
            tl.store(add_grad + at, dz.to(add_grad.dtype.element_ty), mask=inside)
        dx = dz * scale_C[None, :] + value * of_x_C[None, :] + constant_C[None, :]
        tl.store(x_grad + at, dx.to(x_grad.dtype.element_ty), mask=inside)


class Division(NamedTuple):
    """How a sample is divided. `channels` and `chunk_slots` are powers of two."""

    pixels: int
    rows_of_chunk: int
    chunks: int
    channels: int
    rows_of_tile: int
    chunk_slots: int

    @classmethod
    def of(cls, x_BCS: Tensor) -> Division:
        pixels, channels = x_BCS.shape[2:].numel(), x_BCS.shape[1]
        slots = triton.next_power_of_2(channels)
        tile = max(1, TILE // slots)
        chunks = min(MAX_CHUNKS, max(1, pixels * channels // CHUNK))
        rows = triton.cdiv(triton.cdiv(pixels, chunks), tile) * tile
        chunks = triton.cdiv(pixels, rows)
        return cls(pixels, rows, chunks, slots, tile, FEW_CHUNKS if chunks <= FEW_CHUNKS else MAX_CHUNKS)


def channels_last(x_BCS: Tensor) -> Tensor:
    """The tensor in the layout that the kernels read."""
    layout = torch.channels_last if x_BCS.ndim == 4 else torch.channels_last_3d
    return x_BCS.contiguous(memory_format=layout)


class FusedNorm(torch.autograd.Function):
    """The four kernels as one differentiable function."""

    @staticmethod
    def forward(
        ctx: Any, x_BCS: Tensor, add_BCS: Tensor | None, weight_C: Tensor, bias_C: Tensor, groups: int, eps: float,
        activation: int,
    ) -> Tensor:  # fmt: skip
        x_BCS = channels_last(x_BCS)
        added_BCS = x_BCS if add_BCS is None else channels_last(add_BCS)
        y_BCS = torch.empty_like(x_BCS)
        size, (samples, channels) = Division.of(x_BCS), x_BCS.shape[:2]
        sums_BK2C = x_BCS.new_empty((samples, size.chunks, 2, channels), dtype=torch.float32)
        moments_B2C = x_BCS.new_empty((samples, 2, channels), dtype=torch.float32)
        grid, width = (samples, size.chunks), channels // groups
        cast("Any", norm_sums)[grid](
            x_BCS, sums_BK2C, size.pixels, channels, size.rows_of_chunk,
            CHANNELS=size.channels, ROWS=size.rows_of_tile,
        )  # fmt: skip
        cast("Any", norm_apply)[grid](
            x_BCS, added_BCS, y_BCS, sums_BK2C, moments_B2C, weight_C, bias_C,
            size.pixels, channels, size.rows_of_chunk, eps, CHANNELS=size.channels, WIDTH=width,
            ROWS=size.rows_of_tile, CHUNKS=size.chunk_slots, ACTIVATION=activation, ADD=add_BCS is not None,
        )  # fmt: skip
        kept = None if add_BCS is None else y_BCS
        ctx.save_for_backward(x_BCS, kept, moments_B2C, weight_C, bias_C)
        ctx.settings = width, activation, None if add_BCS is None else add_BCS.dtype
        return y_BCS

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(  # pyright: ignore[reportIncompatibleMethodOverride] - the decorator has no types
        ctx: Any, *grad_outputs: Tensor
    ) -> tuple[Tensor | None, ...]:
        x_BCS, y_BCS, moments_B2C, weight_C, bias_C = ctx.saved_tensors
        width, activation, add_dtype = ctx.settings
        grad_BCS, x_grad_BCS = channels_last(grad_outputs[0]), torch.empty_like(x_BCS)
        add_grad_BCS = None if add_dtype is None else torch.empty_like(x_BCS, dtype=add_dtype)
        size, (samples, channels) = Division.of(x_BCS), x_BCS.shape[:2]
        sums_BK2C = x_BCS.new_empty((samples, size.chunks, 2, channels), dtype=torch.float32)
        affine_grad_B2C = torch.empty_like(moments_B2C)
        grid, has_sum = (samples, size.chunks), add_grad_BCS is not None
        y_BCS = y_BCS if has_sum else x_BCS
        cast("Any", norm_grad_sums)[grid](
            grad_BCS, x_BCS, y_BCS, sums_BK2C, moments_B2C, weight_C, bias_C,
            size.pixels, channels, size.rows_of_chunk,
            CHANNELS=size.channels, ROWS=size.rows_of_tile, ACTIVATION=activation, ADD=has_sum,
        )  # fmt: skip
        cast("Any", norm_grad_apply)[grid](
            grad_BCS, x_BCS, y_BCS, x_grad_BCS, add_grad_BCS if has_sum else x_grad_BCS, sums_BK2C,
            moments_B2C, affine_grad_B2C, weight_C, bias_C, size.pixels, channels, size.rows_of_chunk,
            CHANNELS=size.channels, WIDTH=width, ROWS=size.rows_of_tile, CHUNKS=size.chunk_slots,
            ACTIVATION=activation, ADD=has_sum,
        )  # fmt: skip
        weight_grad_C, bias_grad_C = affine_grad_B2C.sum(0)
        return x_grad_BCS, add_grad_BCS, weight_grad_C, bias_grad_C, None, None, None


def fused_norm(
    x_BCS: Tensor, add_BCS: Tensor | None, weight_C: Tensor, bias_C: Tensor, groups: int, eps: float,
    activation: Activation,
) -> Tensor:  # fmt: skip
    """`GroupNorm` in two kernels. The channels of a group are a power of two; after a sum the activation is none or
    relu. Raises ValueError otherwise."""
    width = x_BCS.shape[1] // groups
    if width & (width - 1):
        raise ValueError(f"groups of {width} channels: their number is a power of two")
    if add_BCS is not None and activation == "silu":
        raise ValueError("silu after a sum: its gradient needs an input that is not kept")
    arguments = x_BCS, add_BCS, weight_C, bias_C, groups, eps, ACTIVATIONS[activation]
    with torch.cuda.device_of(x_BCS):  # Triton launches on the current device, which is another one in a new thread
        return FusedNorm.apply(*arguments)  # pyright: ignore[reportReturnType]
