"""Frozen config dataclasses as strict JSON, and back."""

from __future__ import annotations

import json
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, NoReturn, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from ranks.bounded_file import read_text
from ranks.errors import UserError, nearest

T = TypeVar("T")
WANTED: dict[Any, str] = {int: "a whole number", float: "a number", bool: "true or false"}


def encode(value: Any) -> Any:
    """A config as JSON values: dataclasses are objects, tuples are lists, paths are text."""
    if is_dataclass(value):
        return {f.name: encode(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, tuple | list):
        return [encode(item) for item in cast("tuple[Any, ...]", value)]
    return str(value) if isinstance(value, Path) else value


def read_object(path: Path, asked: str) -> dict[str, Any]:
    """The JSON object in a file. Raises UserError."""
    try:
        content = json.loads(read_text(path, asked), parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        raise UserError(asked, f"{path} is not JSON: {error}", "give a file that --print-config printed") from None
    if not isinstance(content, dict):
        raise UserError(asked, f"{path} does not hold a JSON object", "give a file that --print-config printed")
    return cast("dict[str, Any]", content)


def is_int64(value: int) -> bool:
    """Whether tensors can hold a whole number."""
    return -(1 << 63) <= value < 1 << 63


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number")


def overlay(config: T, values: Any, asked: str, where: str) -> T:
    """`config` with the fields that a JSON object names. Raises UserError with the key and the
    nearest valid one."""
    if not isinstance(values, dict):
        raise UserError(asked, f"{where} is {json.dumps(values)}, not an object", f'write "{where}": {{...}}')
    hints = get_type_hints(type(config))
    changes: dict[str, Any] = {}
    for key, value in cast("dict[str, Any]", values).items():
        if key not in hints:
            do = nearest(key, list(hints), "see --print-config for the valid keys")
            raise UserError(asked, f"{where} has no key {key}", do)
        current = getattr(config, key)
        if is_dataclass(current) and not isinstance(current, type):
            changes[key] = overlay(current, value, asked, f"{where}.{key}")
        else:
            try:
                changes[key] = decode(hints[key], value)
            except ValueError as error:
                found = f"{where}.{key} is {json.dumps(value)}, not {error}"
                raise UserError(asked, found, f"correct {key}; see {type(config).__name__} for its type") from None
    return replace(cast("Any", config), **changes)


def decode(annotation: Any, value: Any) -> Any:
    """A JSON value converted to an annotated type. Raises ValueError with a description of that
    type."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin in (Union, UnionType):
        if value is None and NoneType in arguments:
            return None
        (inner,) = (argument for argument in arguments if argument is not NoneType)
        return decode(inner, value)
    if origin is Literal:
        if value not in arguments:
            raise ValueError("one of " + ", ".join(map(str, arguments)))
        return value
    if origin is tuple:
        if not isinstance(value, list):
            raise ValueError("a list")
        items = cast("list[Any]", value)
        kinds = arguments[:1] * len(items) if arguments[-1] is Ellipsis else arguments
        if len(kinds) != len(items):
            raise ValueError(f"a list of {len(kinds)}")
        return tuple(decode(kind, item) for kind, item in zip(kinds, items, strict=True))
    if type(value) is int and not is_int64(value):
        raise ValueError(f"{WANTED[int]} of 64 bits")
    if isinstance(value, str) and "\0" in value:
        raise ValueError("text without null characters")
    if annotation is Path and isinstance(value, str):
        return Path(value)
    if annotation is float and isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    if type(value) is not annotation:
        raise ValueError(WANTED.get(annotation, "text"))
    return value
