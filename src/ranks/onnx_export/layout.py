"""What an ONNX file takes and returns."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

import torch
from torch import Tensor, nn

from ranks.errors import UserError

Shape = tuple[str | int, ...]
"""A name marks a size that is free."""
BATCH = "B"
ROWS_OF_COMPARISON = (1, 2, 5)
NOISE = 0.1
"""Standard deviation of what is added to the example for the comparison."""


@dataclass(frozen=True)
class OnnxLayout:
    """Names and shapes of the inputs and outputs, in the order of `forward`, and what the metadata say."""

    inputs: Mapping[str, Shape]
    outputs: Mapping[str, Shape]
    metadata: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def free_sizes(self) -> tuple[dict[int, Any], ...]:
        """The free dimensions of each input, as torch.onnx.export takes them."""
        free = torch.export.Dim.DYNAMIC
        return tuple(
            {i: free for i, size in enumerate(shape) if isinstance(size, str)} for shape in self.inputs.values()
        )


def layout_of(model: nn.Module, example: Sequence[Tensor], metadata: Mapping[str, str]) -> OnnxLayout:
    """The layout of a model whose inputs and outputs all have rows: their number is free, all other sizes are those of
    the example. Inputs have the names of forward's arguments. Raises UserError where an output is no tensor."""
    names = list(inspect.signature(model.forward).parameters)[: len(example)]
    inputs = {name: (BATCH, *tensor.shape[1:]) for name, tensor in zip(names, example, strict=True)}
    with torch.no_grad():
        returned = model(*example)
    outputs = {name: (BATCH, *tensor.shape[1:]) for name, tensor in named_outputs(returned)}
    return OnnxLayout(inputs, outputs, metadata)


def named_outputs(returned: Any) -> Iterator[tuple[str, Tensor]]:
    """(name, tensor) of what `forward` returned: a tensor, a named tuple, or a tuple (`output_0`, `output_1`, ...)."""
    if isinstance(returned, Tensor):
        returned = (returned,)
    elif not isinstance(returned, tuple):
        raise _no_tensors(returned)
    values: tuple[Any, ...] = returned
    names: Sequence[str] = getattr(values, "_fields", [f"output_{i}" for i in range(len(values))])
    for name, value in zip(names, values, strict=True):
        if not isinstance(value, Tensor):
            raise _no_tensors(value)
        yield name, value


def _no_tensors(value: Any) -> UserError:
    return UserError(
        "an ONNX export",
        f"the model returns {type(value).__name__}",
        "let forward return a tensor or a tuple of tensors",
    )


def examples_of(example: Sequence[Tensor], seed: int = 0) -> list[tuple[Tensor, ...]]:
    """The example, then other numbers of rows, with noise on the floating-point inputs."""
    random = torch.Generator().manual_seed(seed)

    def rows(tensor: Tensor, number: int) -> Tensor:
        repeated = torch.cat([tensor] * (-(-number // len(tensor))))[:number]
        if not repeated.is_floating_point():
            return repeated
        return repeated + NOISE * torch.randn(repeated.shape, generator=random)

    others = (tuple(rows(tensor, number) for tensor in example) for number in ROWS_OF_COMPARISON)
    return list(chain([tuple(example)], others))
