"""`torch.lstm`, `torch.gru` and `torch.rnn_*` as one operation forwards and one backwards, as cuDNN computes them.

Without this, torch takes them apart on a device that is not CUDA: into a dozen operations for each step.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor

LAYERS = ("lstm", "gru", "rnn_tanh", "rnn_relu")


def run_layer(
    func: Callable[..., Any],
    args: Any,
    kwargs: Any,
    to_device: Callable[[Tensor], Tensor],
    count: Callable[[str], None],
) -> Any:
    """Call a recurrent layer's function with tensors of the simulated device.

    `to_device`: from a tensor on the CPU to one of the device. `count`: gets the name of each operation. The sizes of a
    packed batch are on the CPU, as torch demands.
    """
    tensors: list[Tensor] = []

    def take_out(tree: Any) -> Any:
        """The same arguments with the number of each device tensor in its place."""
        if isinstance(tree, Tensor) and hasattr(tree, "cpu_tensor"):
            tensors.append(tree)
            return _Place(len(tensors) - 1)
        return type(tree)(map(take_out, tree)) if isinstance(tree, list | tuple) else tree

    return _Layer.apply(partial(func, **kwargs), take_out(args), to_device, count, *tensors)


class _Place(int):
    """The number of a tensor."""


def _put_in(tree: Any, tensors: list[Tensor]) -> Any:
    if isinstance(tree, _Place):
        return tensors[tree]
    return type(tree)(_put_in(part, tensors) for part in tree) if isinstance(tree, list | tuple) else tree


class _Layer(torch.autograd.Function):
    """Computes on the CPU values, and counts one operation."""

    @staticmethod
    def forward(ctx: Any, func: Any, args: Any, to_device: Any, count: Any, *tensors: Any) -> Any:
        ctx.name, ctx.to_device, ctx.count = func.func.__name__, to_device, count
        ctx.inputs = [t.cpu_tensor.detach().requires_grad_(ctx.needs_input_grad[4 + i]) for i, t in enumerate(tensors)]
        with torch.enable_grad():
            ctx.outputs = func(*_put_in(args, ctx.inputs))
        count(ctx.name)
        return tuple(to_device(output.detach()) for output in ctx.outputs)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        wanted = [t for t in ctx.inputs if t.requires_grad]
        found = iter(torch.autograd.grad(ctx.outputs, wanted, [g.cpu_tensor for g in gradients], allow_unused=True))
        ctx.count(f"{ctx.name} backward")
        by_input = [next(found) if t.requires_grad else None for t in ctx.inputs]
        return (None,) * 4 + tuple(None if g is None else ctx.to_device(g) for g in by_input)
