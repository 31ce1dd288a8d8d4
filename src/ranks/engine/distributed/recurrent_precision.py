"""Keeps recurrent layers in float32 under bf16 autocast.

Under autocast to any type, torch's cuDNN wrapper casts the inputs and weights of LSTM, GRU and RNN
layers to float16, without a gradient scaler (aten/src/ATen/cudnn/AutocastRNN.cpp: `at::kHalf`). On
the CPU they become bfloat16, for which oneDNN has no kernel on every processor.

So the functions that `nn.LSTM` and its relatives call get kernels at autocast's dispatch key, which
turn autocast off for the call. This covers every model, also layers that a model calls by function,
packed sequences and evaluation. On a GPU the layers then compute in TF32, in exact mode in float32
(`precision.set_up`).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

LAYERS = ("lstm", "gru", "rnn_tanh", "rnn_relu")
FUNCTIONS = [f"{layer}.{sequences}" for layer in LAYERS for sequences in ("input", "data")] + [
    f"{layer}_cell" for layer in LAYERS
]
"""Operators by name and overload: of padded sequences, of packed ones, and one step of a cell."""
DISPATCH_KEYS = {"cpu": "AutocastCPU", "cuda": "AutocastCUDA"}
_registered: dict[str, torch.library.Library] = {}
"""Device type -> its kernels, which last as long as this object."""


def keep_recurrent_layers_in_float32(device_type: str) -> None:
    """From now on, recurrent layers of this process compute in float32 under autocast.

    `device_type`: "cuda" or "cpu"; nothing happens for another one.
    """
    if device_type in _registered or device_type not in DISPATCH_KEYS:
        return
    library = _registered[device_type] = torch.library.Library("aten", "IMPL")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch says that its own autocast kernel of cells is replaced
        for function in FUNCTIONS:
            library.impl(function, _without_autocast(function, device_type), DISPATCH_KEYS[device_type])


def _without_autocast(function: str, device_type: str) -> Callable[..., Any]:
    """The operator in float32, with autocast off."""
    name, _, overload = function.partition(".")
    operator: Any = getattr(getattr(torch.ops.aten, name), overload or "default")

    def run(*arguments: Any) -> Any:
        with torch.autocast(device_type, enabled=False):
            return operator(*map(_in_float32, arguments))

    return run


def _in_float32(argument: Any) -> Any:
    """Tensors of 16-bit types as float32, also those in a list; everything else as it is."""
    if isinstance(argument, list | tuple):
        return [_in_float32(part) for part in argument]  # pyright: ignore[reportUnknownVariableType]
    if isinstance(argument, Tensor) and argument.dtype in (torch.bfloat16, torch.float16):
        return argument.float()
    return argument
