"""Loads a user's own Python file as a module, under the same name in every process."""

from __future__ import annotations

import dataclasses
import importlib.util
import os
import sys
import traceback
from pathlib import Path
from types import ModuleType

from ranks.bounded_file import open_file
from ranks.errors import UserError

PREFIX = "ranks_user_"
EXTRAS = {"gymnasium": "gymnasium", "numba": "selfplay"}
"""Package -> the extra of ranks that installs it."""


def load_file(path: Path, asked: str) -> ModuleType:
    """The module of a file, loaded once per process.

    Raises UserError where the file is missing or no regular file, where it ends the process, and for
    every exception while it is imported.
    """
    if not os.path.lexists(path):
        raise UserError(asked, "there is no such file", "give the path of a Python file; `ranks new NAME` writes one")
    with open_file(path, asked) as file:  # Python itself would read a file without end
        file.read()
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
    except SystemExit as error:
        del sys.modules[name]
        found = f"it calls sys.exit({error.code!r}) while it is imported"
        raise UserError(asked, found, "call it only under: if __name__ == '__main__'") from error
    except BaseException as error:
        del sys.modules[name]
        if isinstance(error, UserError) or not isinstance(error, Exception):
            raise
        found, do = problem(error, resolved)
        raise UserError(asked, found, do) from error
    return module


def problem(error: Exception, path: Path) -> tuple[str, str]:
    """What went wrong while a file was imported, with file and line, and what to do."""
    whole = f"correct it; python {_shown(path)} shows the whole traceback"
    if isinstance(error, ModuleNotFoundError):
        package = (error.name or "").split(".")[0]
        do = f"pip install 'ranks[{EXTRAS[package]}]'" if package in EXTRAS else f"pip install {package}"
        return f"it imports {error.name}, which is not installed", do
    if isinstance(error, SyntaxError):
        text = f": {error.text.strip()}" if error.text else ""
        file = _shown(Path(error.filename)) if error.filename else _shown(path)
        return f"{type(error).__name__}: {error.msg}, {file}, line {error.lineno}{text}", whole
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if Path(frame.filename).is_relative_to(path.parent)]
    at = own[-1] if own else frames[-1]
    if frames[-1].filename == dataclasses.__file__:
        do = "give every field a default that cannot change: a number, text, a tuple, or a frozen dataclass"
        return f"the dataclass in line {at.lineno} is refused: {error}", do
    place = f"{_shown(Path(at.filename))}, line {at.lineno}" + (f": {at.line}" if at.line else "")
    return f"{type(error).__name__}: {error}, {place}", whole


def _shown(path: Path) -> str:
    """A path as it is from the current directory, where it lies in it."""
    here = Path.cwd()
    return str(path.relative_to(here)) if path.is_relative_to(here) else str(path)


def add_folder_to_path(path: Path) -> None:
    """Let a file import the modules in its own folder."""
    folder = str(path.resolve().parent)
    if folder not in sys.path:
        sys.path.insert(0, folder)


def loaded_files() -> list[Path]:
    """The user files that this process has loaded."""
    modules = [module for name, module in sys.modules.items() if name.startswith(PREFIX)]
    return [Path(module.__file__) for module in modules if module.__file__ is not None]
