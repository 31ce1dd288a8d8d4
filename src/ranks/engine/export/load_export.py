"""Loads an export folder into the model's own class. Files are verified; nothing is unpickled."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any, TypeVar

import safetensors
import safetensors.torch
import torch
from torch import nn

from ranks.engine.update.load_weights import load_weights
from ranks.errors import UserError

M = TypeVar("M", bound=nn.Module)


def load_export(weights_path: Path, cls: type[M], asked: str) -> tuple[M, str]:
    """The model of a model.safetensors file and the config.json next to it, in evaluation mode, and
    the sha256 of its weights. Raises UserError where a file is missing or damaged, or holds another
    class of model."""
    config_path = weights_path.with_name("config.json")
    try:
        raw = weights_path.read_bytes()
        config: Any = json.loads(config_path.read_text(encoding="utf-8"))
        arguments, expected = dict(config["arguments"]), str(config["weights_sha256"])
    except OSError as error:
        raise UserError(asked, f"{error.filename}: {error.strerror}", "give a complete export folder") from None
    except (ValueError, KeyError, TypeError):
        raise UserError(asked, f"{config_path} does not describe a model", "export it again") from None
    sha256 = hashlib.sha256(raw).hexdigest()
    if sha256 != expected:
        found = f"{weights_path} is damaged: sha256 {sha256[:12]}, {config_path.name} says {expected[:12]}"
        raise UserError(asked, found, "export it again")
    if config.get("class") != cls.__name__:
        raise UserError(asked, f"{weights_path} holds a {config.get('class')}", f"give a {cls.__name__}")
    try:
        model = cls(**arguments)
        weights = safetensors.torch.load(raw)
    except (TypeError, ValueError, safetensors.SafetensorError) as error:
        raise UserError(asked, f"{weights_path} cannot be read: {error}", "export it again") from None
    load_weights(model, weights)
    return model.to(torch.get_default_dtype()).eval(), sha256
