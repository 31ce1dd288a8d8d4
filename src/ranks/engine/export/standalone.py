"""Writes a class and everything that it uses as the source of one module that imports only torch.

Functions, classes and constants are copied from the module of the class. Names that it imports
from this package, or from a module in the folder of its own file, are copied from there.
"""

from __future__ import annotations

import ast
import inspect
import symtable
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path

from ranks.errors import UserError

ALLOWED = {"torch", "math", "typing", "collections", "dataclasses", "functools", "itertools", "__future__"}
OURS = "ranks"


def standalone_source(cls: type) -> str:
    """The source of a module that defines the class. Raises UserError where it needs more than
    torch, the standard library and this package."""
    sources: dict[str, ModuleSource] = {}
    seen: set[tuple[str, str]] = set()
    _follow(cls.__module__, cls.__name__, sources, seen, cls)
    imports: dict[str, None] = {}
    definitions: list[str] = []
    owner: dict[str, str] = {}
    for module in _in_order(sources):
        source = sources[module]
        for node in source.tree.body:
            if id(node) not in source.needed:
                continue
            if isinstance(node, ast.Import | ast.ImportFrom):
                imports[ast.unparse(node)] = None
                continue
            for name in _names_bound(node):
                if owner.setdefault(name, module) != module:
                    found = f"{owner[name]} and {module} both define {name}"
                    raise UserError(f"to export {cls.__name__}", found, "give one of them another name")
            definitions += ["", source.text_of(node)]
    return "\n".join(["from __future__ import annotations", "", "import torch", *imports, *definitions]) + "\n"


@dataclass
class ModuleSource:
    """A module's text, the statement that defines each name, the statements that are needed (by
    id), and the modules of this package that they use."""

    text: str
    tree: ast.Module
    defined: dict[str, ast.stmt]
    needed: set[int] = field(default_factory=set[int])
    uses: dict[str, None] = field(default_factory=dict[str, None])

    @classmethod
    def of(cls, module: str) -> ModuleSource:
        loaded = sys.modules.get(module) or import_module(module)
        path = getattr(loaded, "__file__", None)
        text = Path(path).read_text(encoding="utf-8") if path else inspect.getsource(loaded)
        tree = ast.parse(text)
        return cls(text, tree, {name: node for node in tree.body for name in _names_bound(node)})

    def text_of(self, node: ast.stmt) -> str:
        """The source text of a statement, with its decorators."""
        first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", []))])
        return textwrap.dedent("\n".join(self.text.splitlines()[first - 1 : node.end_lineno]))


def _follow(module: str, name: str, sources: dict[str, ModuleSource], seen: set[tuple[str, str]], cls: type) -> None:
    """Mark the statement that defines a name, and everything that it uses, as needed."""
    if (module, name) in seen:
        return
    seen.add((module, name))
    if module not in sources:
        sources[module] = ModuleSource.of(module)
    source = sources[module]
    node = source.defined.get(name)
    if node is None:
        return
    if isinstance(node, ast.ImportFrom) and _is_copied(node, cls):
        alias = next(a for a in node.names if (a.asname or a.name) == name)
        assert node.module is not None
        home = _home_of(node.module, name)
        if alias.asname not in (None, alias.name) or name not in ModuleSource.of(home).defined:
            found = f"its source needs {ast.unparse(node)}"
            raise UserError(f"to export {cls.__name__}", found, "import what it uses by its own name")
        source.uses[home] = None
        _follow(home, name, sources, seen, cls)
        return
    if isinstance(node, ast.Import | ast.ImportFrom):
        _refuse_foreign(node, cls)
    source.needed.add(id(node))
    for inner in _names_used(node):
        _follow(module, inner, sources, seen, cls)


def _home_of(module: str, name: str) -> str:
    """The module that defines a name, also where a package imports it on first use (`PUBLIC` of `ranks.rl`)."""
    return getattr(import_module(module), "PUBLIC", {}).get(name, module)


def _is_copied(node: ast.ImportFrom, cls: type) -> bool:
    """Whether imported names are copied: those of this package, and those of modules in the folder
    of the class."""
    module = node.module or ""
    if node.level or module.split(".")[0] in {OURS, *ALLOWED}:
        return not node.level and module.split(".")[0] == OURS
    files = [getattr(sys.modules.get(name), "__file__", None) for name in (cls.__module__, module)]
    if None in files:
        return False
    own, imported = (Path(str(file)).resolve() for file in files)
    return own.parent in imported.parents and not {"site-packages", "dist-packages"} & set(imported.parts)


def _in_order(sources: dict[str, ModuleSource]) -> Iterator[str]:
    """The modules in order: a module comes after those that it uses."""
    done: set[str] = set()

    def visit(module: str) -> Iterator[str]:
        if module not in done:
            done.add(module)
            for used in sources[module].uses:
                yield from visit(used)
            yield module

    for module in sources:
        yield from visit(module)


def _names_used(node: ast.stmt) -> Iterator[str]:
    """The names of the module that a statement uses; its arguments and local variables are no names of the module."""

    def of(table: symtable.SymbolTable) -> Iterator[str]:
        for symbol in table.get_symbols():
            if symbol.is_referenced() and (symbol.is_global() or table.get_type() == "module"):
                yield symbol.get_name()
        for child in table.get_children():
            yield from of(child)

    return of(symtable.symtable(ast.unparse(node), "<statement>", "exec"))


def _names_bound(node: ast.stmt) -> list[str]:
    if isinstance(node, ast.ClassDef | ast.FunctionDef):
        return [node.name]
    if isinstance(node, ast.Import):
        return [(a.asname or a.name).split(".")[0] for a in node.names]
    if isinstance(node, ast.ImportFrom):
        return [a.asname or a.name for a in node.names]
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return [n.id for t in targets for n in ast.walk(t) if isinstance(n, ast.Name)]


def _refuse_foreign(node: ast.Import | ast.ImportFrom, cls: type) -> None:
    names = [a.name for a in node.names] if isinstance(node, ast.Import) else ["." * node.level + (node.module or "")]
    for name in names:
        if name.split(".")[0] not in ALLOWED:
            raise UserError(
                f"to export {cls.__name__}",
                f"its source needs {name}",
                "let the model's classes use only torch and the standard library",
            )
