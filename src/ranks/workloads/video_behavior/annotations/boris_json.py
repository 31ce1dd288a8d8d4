"""What is in a JSON document of BORIS, checked before it is used."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, TypeGuard

from ranks.errors import UserError

RESAVE = "open the project in BORIS and save it again"


def object_of(value: Any, what: str, asked: str) -> Mapping[str, Any]:
    """The value. Raises UserError where it is no JSON object. `what`: its place in the document."""
    if not is_object(value):
        raise UserError(asked, f"{what} is not a JSON object", RESAVE)
    return value


def text_of(value: Mapping[str, Any], key: str, asked: str) -> str:
    """The text of a behaviour. Raises UserError where it has none."""
    found = value.get(key)
    if not isinstance(found, str):
        raise UserError(asked, f"a behaviour without the text '{key}'", RESAVE)
    return found


def is_object(value: Any) -> TypeGuard[dict[str, Any]]:
    return isinstance(value, dict)


def is_array(value: Any) -> TypeGuard[list[Any]]:
    return isinstance(value, list)


def is_number(value: Any) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e15 and math.isfinite(value)
