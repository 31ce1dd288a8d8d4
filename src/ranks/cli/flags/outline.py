"""Load a few names of a module without executing the rest, so that `--help` does not import torch.

The outline of a module has only the statements that define the wanted names, and those that they
use in turn. For `Config`:

    import torch                        not executed: Config does not use it
    from ranks import Learner, free     only `free` is imported
    @dataclass(frozen=True)             executed, with its import
    class Config: ...                   executed
    class Net(nn.Module): ...           not executed

Where this fails, for example with `from x import *`, the caller imports the whole module.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

from ranks.bounded_file import read_text

PREFIX = "ranks_outline_"


def wants_help(argv: Sequence[str]) -> bool:
    """Whether a command line asks for the help page."""
    return bool({"-h", "--help"} & set(argv))


def outline_function(place: str) -> Any:
    """The function at 'module:function' with its signature and docstring, and an empty body; None
    where it fails."""
    module, name = place.split(":")
    path = source_of(module)
    outline = load_outline(path, module, [name], signatures_only=True) if path is not None else None
    return getattr(outline, name, None)


def load_outline(
    path: Path, name: str, wanted: Sequence[str], *, required: Sequence[str] = (), signatures_only: bool = False
) -> ModuleType | None:
    """A module that has the wanted names of a file; None where it fails. A wanted name that the
    file does not define is left out.

    `required`: names that the file must define. `signatures_only`: the wanted functions get an
    empty body."""
    module = ModuleType(PREFIX + name)
    module.__file__ = str(path)
    sys.modules[module.__name__] = module  # dataclasses, type hints and inspect look the module up
    try:
        tree = ast.parse(read_text(path, f"the names in {path}"))
        module.__doc__ = ast.get_docstring(tree)
        if signatures_only:
            remove_bodies(tree, wanted)
        constants, statements = needed_statements(tree, wanted, required)
        vars(module).update(constants)
        exec(compile(ast.Module(statements, []), str(path), "exec"), vars(module))
    except Exception:  # of any kind: the caller imports the module, which raises it again where it is real
        del sys.modules[module.__name__]
        return None
    return module


def needed_statements(
    tree: ast.Module, wanted: Sequence[str], required: Sequence[str]
) -> tuple[dict[str, Any], list[ast.stmt]]:
    """What an outline executes: the values of imported constants, and statements in the order of
    the file.

    Raises ValueError at `from x import *`, and where a required name is not defined.
    """
    defined_by: dict[str, list[ast.stmt]] = {}
    for node in tree.body:
        for name in names_bound(node):
            defined_by.setdefault(name, []).append(node)
    if "*" in defined_by or not set(required) <= defined_by.keys():
        raise ValueError("the file imports *, or lacks a required name")
    names: set[str] = set()
    needed: set[ast.stmt] = set()
    queue = list(wanted)
    while queue:
        name = queue.pop()
        if name not in names:
            names.add(name)
            for node in defined_by.get(name, []):
                if node not in needed:
                    needed.add(node)
                    queue += names_used(node)
    constants: dict[str, Any] = {}
    statements: list[ast.stmt] = []
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and node.module == "__future__":
            statements.append(node)
        elif node in needed:
            if isinstance(node, ast.Import | ast.ImportFrom):
                node.names = [alias for alias in node.names if bound_by(alias) in names]
            if isinstance(node, ast.ImportFrom):
                constants |= imported_constants(node)
                node.names = [alias for alias in node.names if bound_by(alias) not in constants]
            if not isinstance(node, ast.ImportFrom) or node.names:
                statements.append(node)
    return constants, statements


def imported_constants(node: ast.ImportFrom) -> dict[str, Any]:
    """The values of imported names in capitals, read from the outline of their module."""
    constants: dict[str, Any] = {}
    for alias in node.names:
        path = source_of(node.module) if node.module and not node.level and alias.name.isupper() else None
        outline = load_outline(path, str(node.module), [alias.name]) if path is not None else None
        if hasattr(outline, alias.name):
            constants[bound_by(alias)] = getattr(outline, alias.name)
    return constants


def remove_bodies(tree: ast.Module, functions: Sequence[str]) -> None:
    """Leave these functions only their docstring."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name in functions:
            node.body = node.body[:1] if ast.get_docstring(node) else [ast.copy_location(ast.Pass(), node)]


def names_of_file(path: Path) -> set[str]:
    """The names that a Python file defines, '*' among them where it imports all of another one. Raises SyntaxError."""
    tree = ast.parse(read_text(path, f"the names in {path}"))
    return {name for node in tree.body for name in names_bound(node)}


def names_bound(node: ast.stmt) -> set[str]:
    """The names that a statement defines; '*' of `from x import *`."""
    if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        return {node.name}
    imports = [inner for inner in ast.walk(node) if isinstance(inner, ast.Import | ast.ImportFrom)]
    stored = {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    return stored | {bound_by(alias) for inner in imports for alias in inner.names}


def names_used(node: ast.stmt) -> list[str]:
    """The names that a statement reads, also inside functions."""
    return [inner.id for inner in ast.walk(node) if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Load)]


def bound_by(alias: ast.alias) -> str:
    """`a.b` -> a, `a as c` -> c."""
    return alias.asname or alias.name.split(".")[0]


def source_of(module: str) -> Path | None:
    """The file of a module, which is not imported (its parent packages are)."""
    spec = find_spec(module)
    return Path(spec.origin) if spec is not None and spec.origin is not None and spec.has_location else None
