"""Reads the origin's files: a CNN's weights, saved by torch with or without `module.` before each name.

Nothing is unpickled but tensors: safetensors, or torch.load with weights_only.
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import safetensors.torch
import torch
from torch import Tensor

from ranks.bounded_file import open_file
from ranks.engine.update.load_weights import load_weights
from ranks.errors import UserError
from ranks.workloads.chess_value.net.cnn import CnnNet

PREFIX = "module."
WRAPPERS = ("model_state_dict", "state_dict")
"""Keys under which a file may hold the weights."""
LAYERS = ("conv1", "conv2", "conv3", "fc1", "fc2", "fc_out")
DO = "give a file of the origin's net: torch.save(model.state_dict(), FILE), or safetensors"


def read_origin(path: Path, dropout: float, asked: str) -> CnnNet:
    """The origin's net with the weights of a file; its sizes are those of the weights.

    Raises UserError: no such file, no file of weights, weights of another net."""
    weights = {name.removeprefix(PREFIX): tensor for name, tensor in _tensors(path, asked).items()}
    shapes = [tuple(weights[f"{layer}.weight"].shape) for layer in LAYERS if f"{layer}.weight" in weights]
    if len(shapes) != len(LAYERS) or any(len(shape) != (4 if i < 3 else 2) for i, shape in enumerate(shapes)):
        raise UserError(asked, f"{path} does not hold the layers {', '.join(LAYERS)}", DO)
    sizes = [shape[0] for shape in shapes]
    model = CnnNet(sizes[:3], sizes[3:5], dropout)
    load_weights(model, {name: tensor.float() for name, tensor in weights.items()}, asked, DO)
    return model


def _tensors(path: Path, asked: str) -> Mapping[str, Tensor]:
    with open_file(path, asked, has_lines=False) as file:
        content = file.read()
    try:
        if path.suffix == ".safetensors":
            return safetensors.torch.load(content)
        found: Any = torch.load(io.BytesIO(content), map_location="cpu", weights_only=True)
    except Exception as error:  # a damaged file can raise any error in torch
        # torch's own text recommends to load the file in a way that runs its code
        found = f"{path} is damaged, or holds more than weights, which ranks never loads ({type(error).__name__})"
        raise UserError(asked, found, DO) from None
    for wrapper in WRAPPERS:
        if isinstance(found, Mapping) and wrapper in found:
            found = cast("Mapping[str, Any]", found)[wrapper]
    if not isinstance(found, Mapping):
        raise UserError(asked, f"{path} holds no weights by name", DO)
    named = cast("Mapping[Any, Any]", found)
    if not all(isinstance(name, str) and isinstance(tensor, Tensor) for name, tensor in named.items()):
        raise UserError(asked, f"{path} holds more than weights by name", DO)
    return cast("Mapping[str, Tensor]", named)
