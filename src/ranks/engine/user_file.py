"""Loads a user's own Python file as a module, under the same name in every process."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

from ranks.errors import UserError

PREFIX = "ranks_user_"
EXTRAS = {"gymnasium": "gymnasium"}
"""Package -> the extra of ours that installs it."""


def load_file(path: Path, asked: str) -> ModuleType:
    """The module of a file; a second call returns the same one. Raises UserError where the file or
    a package that it imports is missing."""
    if not path.is_file():
        raise UserError(asked, "there is no such file", "give the path of a Python file; `ranks new NAME` writes one")
    resolved = path.resolve()
    name = f"{PREFIX}{resolved.stem}"
    known = sys.modules.get(name)
    if known is not None and known.__file__ == str(resolved):
        return known
    spec = importlib.util.spec_from_file_location(name, resolved)
    if spec is None or spec.loader is None:
        raise UserError(asked, "it is not a Python file", "give the path of a file that ends in .py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look their module up there
    folder = str(resolved.parent)
    if folder not in sys.path:
        sys.path.insert(0, folder)
    try:
        spec.loader.exec_module(module)
    except ModuleNotFoundError as error:
        del sys.modules[name]
        package = (error.name or "").split(".")[0]
        do = f"pip install 'ranks[{EXTRAS[package]}]'" if package in EXTRAS else f"pip install {package}"
        raise UserError(asked, f"it imports {error.name}, which is not installed", do) from error
    except BaseException:
        del sys.modules[name]
        raise
    return module


def loaded_files() -> list[Path]:
    """The user files that this process has loaded."""
    modules = [module for name, module in sys.modules.items() if name.startswith(PREFIX)]
    return [Path(module.__file__) for module in modules if module.__file__ is not None]
