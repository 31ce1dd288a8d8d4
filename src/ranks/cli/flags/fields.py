"""How tyro reads the fields of a dataclass, their help text, and plain values.

tyro can do all of this itself. For a class whose fields use comments as help text it does. But it
parses the source of each class twice, and imports a type checker for hints such as `int | None`:
together a third of the CPU time of a help page.
"""

from __future__ import annotations

import ast
import functools
import inspect
import linecache
import sys
import types
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

from tyro.constructors import (
    ConstructorRegistry,
    PrimitiveConstructorSpec,
    StructConstructorSpec,
    StructFieldSpec,
    StructTypeInfo,
)

from ranks.engine.config_file import is_int64

TYPE_NAMES: dict[type, tuple[str, str]] = {
    int: ("N", "a whole number"),
    float: ("X", "a number"),
    str: ("TEXT", "text"),
    Path: ("PATH", "a path"),
}
REGISTRY = ConstructorRegistry()
REGISTRY.primitive_rule(lambda info: plain_value(info.type))


@REGISTRY.struct_rule
def dataclass_fields(info: StructTypeInfo) -> StructConstructorSpec | None:
    """The fields of a dataclass with a default instance. None, so that tyro reads the class itself,
    where its help may be in comments."""
    kind, default = info.type, info.default
    texts = help_texts(kind) if is_dataclass(kind) and isinstance(default, kind) else None
    if texts is None:
        return None
    hints = {name: with_plain_values(hint) for name, hint in get_type_hints(kind, include_extras=True).items()}
    names = [field.name for field in fields(kind) if field.init]
    specs = [StructFieldSpec(name, hints[name], getattr(default, name), texts.get(name)) for name in names]
    return StructConstructorSpec(kind, tuple(specs))


def help_texts(kind: type) -> dict[str, str] | None:
    """The string after each field of a dataclass and its bases, by the field's name.

    None where the source has comments or cannot be found.
    """
    texts: dict[str, str] = {}
    for base in reversed(kind.__mro__[:-1]):
        file = getattr(sys.modules.get(base.__module__), "__file__", None)
        lines = linecache.getlines(file) if file else []
        node = top_level_classes("".join(lines)).get(base.__name__)
        if node is None or any("#" in line for line in lines[node.lineno - 1 : node.end_lineno]):
            return None
        for statement, after in zip(node.body, node.body[1:], strict=False):
            if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
                value = after.value if isinstance(after, ast.Expr) else None
                if isinstance(value, ast.Constant) and isinstance(value.value, str):
                    texts[statement.target.id] = " ".join(inspect.cleandoc(value.value).split())
    return texts


@functools.cache
def top_level_classes(source: str) -> dict[str, ast.ClassDef]:
    """The classes of a file by name."""
    return {node.name: node for node in ast.parse(source).body if isinstance(node, ast.ClassDef)}


def with_plain_values(hint: Any) -> Any:
    """A type hint of plain values, marked with how they are read and written; any other hint as it
    is."""
    kind, *marks = get_args(hint) if get_origin(hint) is Annotated else (hint,)
    spec = plain_value(kind)
    return hint if spec is None else Annotated[(object, spec, *marks)]  # `int | None` would need the type checker


def plain_value(kind: Any) -> PrimitiveConstructorSpec[Any] | None:
    """Numbers, text and paths; tuples of them with commas (5,3); and `none` where None is
    allowed."""
    inner, optional = without_none(kind)
    is_tuple = get_origin(inner) is tuple
    if is_tuple:
        items = get_args(inner)
        many = items[-1] is Ellipsis
        kinds = items[:1] if many else items
    else:
        many, kinds = False, (inner,)
    if not all(kind in TYPE_NAMES for kind in kinds):
        return None
    shape = ",".join(TYPE_NAMES[kind][0] for kind in kinds) + (",..." if many else "")

    accepted = tuple if is_tuple else (float, int) if inner is float else inner

    def read(arguments: list[str]) -> Any:
        text = arguments[0]
        if optional and text.lower() == "none":
            return None
        if not is_tuple:
            return one(kinds[0], text)
        parts = [part.strip() for part in text.strip("()[]").split(",") if part.strip()]
        if not many and len(parts) != len(kinds):
            raise ValueError(f"{text!r} has {len(parts)} values, {len(kinds)} are needed")
        return tuple(one(kind, part) for kind, part in zip(kinds * len(parts) if many else kinds, parts, strict=False))

    def write(value: Any) -> list[str]:
        if value is None:
            return ["none"]
        return [",".join(map(str, value)) if is_tuple else str(value)]

    return PrimitiveConstructorSpec(
        nargs=1,
        metavar=shape + ("|none" if optional else ""),
        instance_from_str=read,
        is_instance=lambda value: (optional and value is None) or isinstance(value, accepted),
        str_from_instance=write,
    )


def without_none(annotation: Any) -> tuple[Any, bool]:
    """`int | None` -> (int, True)."""
    if get_origin(annotation) in (Union, types.UnionType):
        kept = [part for part in get_args(annotation) if part is not type(None)]
        if len(kept) == 1 and len(get_args(annotation)) == 2:
            return kept[0], True
    return annotation, False


def one(kind: type, text: str) -> Any:
    """One value. The ValueError's message says which type is needed."""
    try:
        value = kind(text)
    except ValueError:
        raise ValueError(f"{text!r} is not {TYPE_NAMES[kind][1]}") from None
    if isinstance(value, int) and not is_int64(value):
        raise ValueError(f"{text!r} is not {TYPE_NAMES[kind][1]} of 64 bits")
    return value
