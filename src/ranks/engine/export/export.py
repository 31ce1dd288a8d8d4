"""Exports a model: `model.safetensors`, `config.json`, and `model.py`, which imports only torch.

`model.py` contains the source of the model's class and of everything that it uses (standalone.py),
and a function `load` that builds the model and loads the weights strictly.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import os
import shutil
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import safetensors.torch
from torch import nn

from ranks.engine.export.standalone import standalone_source
from ranks.engine.files.disk import finish_replacement, remove, replace_folder, sync_folder, write_durably, writing
from ranks.engine.state import split_state
from ranks.errors import UserError

LOADER = '''

def load(folder: str) -> "{name}":
    """The net with its weights, from a folder that holds config.json and model.safetensors."""
    import json
    import struct
    from pathlib import Path

    model = {name}(**json.loads((Path(folder) / "config.json").read_text())["arguments"])
    raw = (Path(folder) / "model.safetensors").read_bytes()
    (size,) = struct.unpack("<Q", raw[:8])
    kinds = {{"F32": torch.float32, "F64": torch.float64, "BF16": torch.bfloat16, "F16": torch.float16,
             "I64": torch.int64, "I32": torch.int32, "U8": torch.uint8, "BOOL": torch.bool}}
    weights = {{}}
    for key, entry in json.loads(raw[8 : 8 + size]).items():
        if key != "__metadata__":
            start, stop = entry["data_offsets"]
            data = bytearray(raw[8 + size + start : 8 + size + stop])
            dtype = kinds[entry["dtype"]]
            flat = torch.frombuffer(data, dtype=dtype) if data else torch.empty(0, dtype=dtype)
            weights[key] = flat.reshape(entry["shape"])
    model.load_state_dict(weights)
    return model.eval()
'''


def arguments_of(model: nn.Module) -> dict[str, Any]:
    """The constructor's arguments, read from attributes of the same names. Raises UserError where
    an attribute is missing."""
    arguments: dict[str, Any] = {}
    for name in list(inspect.signature(type(model)).parameters):
        value = getattr(model, name, None)
        try:
            arguments[name] = json.loads(json.dumps(value))
        except TypeError:
            value = None
        if (value is None and not hasattr(model, name)) or isinstance(value, nn.Module):
            raise UserError(
                f"to export {type(model).__name__}",
                f"its constructor argument {name!r} is not stored as a plain attribute",
                f"write self.{name} = {name} in __init__, so that the exported file can rebuild the model",
            )
    return arguments


def describe(model: nn.Module) -> tuple[dict[str, Any], str]:
    """The contents of config.json and model.py. Raises UserError where the model cannot be rebuilt
    from them."""
    name = type(model).__name__
    config = {"class": name, "arguments": arguments_of(model)}
    return config, standalone_source(type(model)) + LOADER.format(name=name)


FILES = ("model.safetensors", "config.json", "model.py")


def export_model(model: nn.Module, folder: Path) -> Path:
    """Write the three files, all or none; other files in the folder stay. A kill leaves the older export
    whole, at the latest after the next export. Raises UserError where the model's source needs more than
    torch, or the folder cannot be written."""
    name = type(model).__name__
    config, source = describe(model)
    tensors, _ = split_state(model.state_dict())
    weights = safetensors.torch.save(tensors, {"class": name})
    config["weights_sha256"] = hashlib.sha256(weights).hexdigest()
    contents = (weights, (json.dumps(config, indent=2) + "\n").encode(), source.encode())
    temporary = folder.with_name(f".{folder.name}.tmp-{os.getpid()}")
    with writing(f"to export into {folder}", folder.parent, "an older export is intact"):
        remove(temporary)
        finish_replacement(folder)
        try:
            if folder.is_dir() and not folder.is_symlink():
                shutil.copytree(folder, temporary, symlinks=True, ignore=_not_kept)
            temporary.mkdir(parents=True, exist_ok=True)
            for file, content in zip(FILES, contents, strict=True):
                write_durably(temporary / file, content)
            sync_folder(temporary)
            replace_folder(folder, temporary)
        except OSError:
            remove(temporary)
            raise
    return folder


def _not_kept(folder: str, names: list[str]) -> list[str]:
    """Of the names in an older export: the three files, and what is neither a file nor a folder (a
    copy of a FIFO or a device could last for ever)."""
    modes = {name: os.lstat(os.path.join(folder, name)).st_mode for name in names}
    return [name for name, mode in modes.items() if name in FILES or not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))]


def warn_unless_exportable(model: nn.Module, warn: Callable[[str], None]) -> None:
    """Say before the first update, not after the last one, that a model cannot be exported."""
    try:
        describe(model)
    except UserError as error:
        warn(f"cannot be exported: {error.found}; {error.do}")


def export_or_warn(model: nn.Module, folder: Path, warn: Callable[[str], None]) -> Path | None:
    """Export at the end of a run; a model that cannot be exported does not make the run fail."""
    try:
        return export_model(model, folder)
    except UserError as error:
        warn(f"not exported: {error.found}; {error.do}")
        return None
