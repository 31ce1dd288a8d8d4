"""Loads an export folder into the model's own class. Files are verified; nothing is unpickled."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any, TypeVar, cast

import safetensors.torch
import torch
from torch import nn

from ranks.engine.files.regular import DamagedFile, open_regular, reason
from ranks.engine.files.strict_json import read_object
from ranks.engine.update.load_weights import load_weights
from ranks.errors import UserError

M = TypeVar("M", bound=nn.Module)


def load_export(weights_path: Path, cls: type[M], asked: str) -> tuple[M, str]:
    """The model of a model.safetensors file and the config.json next to it, in evaluation mode, and
    the sha256 of its weights. Raises UserError where a file is missing or damaged, or holds another
    class of model."""
    config_path = weights_path.with_name("config.json")
    again = "export it again"
    try:
        config = read_object(config_path, follow=True)
        arguments, sha256 = config.get("arguments"), config.get("weights_sha256")
        if not isinstance(arguments, dict) or not isinstance(sha256, str):
            raise UserError(asked, f"{config_path} does not describe a model", again)
        raw = read_verified(weights_path, sha256)
    except DamagedFile as damage:
        raise UserError(asked, str(damage), f"give a complete export folder, or {again}") from None
    if config.get("class") != cls.__name__:
        raise UserError(asked, f"{weights_path} holds a {config.get('class')}", f"give a {cls.__name__}")
    try:
        model = cls(**cast("dict[str, Any]", arguments))
        weights = safetensors.torch.load(raw)
    except Exception as error:  # whatever the arguments or the weights make the class raise
        raise UserError(asked, f"{weights_path} cannot be loaded: {type(error).__name__}: {error}", again) from error
    load_weights(model, weights)
    return model.to(torch.get_default_dtype()).eval(), sha256


def read_verified(path: Path, sha256: str) -> bytes:
    """The content of a regular file with this sha256, which is compared before the content is in
    memory. Raises DamagedFile."""
    with open_regular(path, follow=True) as file:
        try:
            found = hashlib.file_digest(file, "sha256").hexdigest()
            if found != sha256:
                raise DamagedFile(f"{path}: damaged, its sha256 is {found[:12]}, its config.json says {sha256[:12]}")
            file.seek(0)
            return file.read()
        except OSError as error:
            raise DamagedFile(f"{path}: {reason(error)}") from None
