"""Loads a user's own Python file as a module, under the same name in every process."""

from __future__ import annotations

import ast
import dataclasses
import importlib.util
import os
import sys
import traceback
import warnings
from pathlib import Path
from types import ModuleType

from ranks.bounded_file import open_file
from ranks.errors import UserError

PREFIX = "ranks_user_"
EXTRAS = {"gymnasium": "gymnasium"}
"""Package -> the extra of ranks that installs it."""


def load_file(path: Path, asked: str) -> ModuleType:
    """The module of a file, loaded once per process.

    Raises UserError where the file is missing, is no Python text, imports a package that is not
    installed, has a dataclass that Python refuses, or ends the process. Other exceptions of the
    file are raised as they are.
    """
    if not os.path.lexists(path):
        raise UserError(asked, "there is no such file", "give the path of a Python file; `ranks new NAME` writes one")
    check_source(path, asked)
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
    add_folder_to_path(resolved)
    try:
        spec.loader.exec_module(module)
    except ModuleNotFoundError as error:
        del sys.modules[name]
        package = (error.name or "").split(".")[0]
        do = f"pip install 'ranks[{EXTRAS[package]}]'" if package in EXTRAS else f"pip install {package}"
        raise UserError(asked, f"it imports {error.name}, which is not installed", do) from error
    except SystemExit as error:
        del sys.modules[name]
        found = f"it calls sys.exit({error.code!r}) while it is imported"
        raise UserError(asked, found, "call it only under: if __name__ == '__main__'") from error
    except BaseException as error:
        del sys.modules[name]
        frames = traceback.extract_tb(error.__traceback__)
        if frames[-1].filename == dataclasses.__file__:
            line = max(frame.lineno or 0 for frame in frames if frame.filename == str(resolved))
            do = "give every field a default that cannot change: a number, text, a tuple, or a frozen dataclass"
            raise UserError(asked, f"the dataclass in line {line} is refused: {error}", do) from error
        raise
    return module


def check_source(path: Path, asked: str) -> None:
    """Raises UserError where a file cannot be read, or is no Python source."""
    with open_file(path, asked) as file:
        source = file.read()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the import shows them
            ast.parse(source, str(path))
    except SyntaxError as error:
        where = f"line {error.lineno}: " if error.lineno else ""
        raise UserError(
            asked, f"{where}{error.msg}", "correct it; python -m py_compile FILE shows the place"
        ) from error
    except (ValueError, RecursionError, MemoryError) as error:
        raise UserError(
            asked, f"it is not Python source: {error or 'nested too deeply'}", "give a Python file"
        ) from error


def add_folder_to_path(path: Path) -> None:
    """Let a file import the modules in its own folder."""
    folder = str(path.resolve().parent)
    if folder not in sys.path:
        sys.path.insert(0, folder)


def loaded_files() -> list[Path]:
    """The user files that this process has loaded."""
    modules = [module for name, module in sys.modules.items() if name.startswith(PREFIX)]
    return [Path(module.__file__) for module in modules if module.__file__ is not None]
