"""Descriptions of observation and action spaces as JSON, to rebuild an exported policy.

Legend: B environments.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

Kind = Literal["box", "image", "discrete", "multi-discrete", "multi-binary"]


@dataclass(frozen=True)
class Space:
    """One tensor of an observation, or an action.

    | kind           | values                               | tensor          |
    | box            | numbers of `shape`                   | float[B, ...]   |
    | image          | uint8 of `shape`, laid out as `dims` | uint8[B, ...]   |
    | discrete       | one of `sizes[0]`                    | int64[B]        |
    | multi-discrete | one of `sizes[i]` for each part i    | int64[B, parts] |
    | multi-binary   | `sizes[0]` bits                      | float[B, bits]  |
    """

    kind: Kind
    shape: tuple[int, ...] = ()
    sizes: tuple[int, ...] = ()
    dims: Literal["HWC", "CHW", "HW"] = "HWC"
    """For an image: channels last, channels first, or one channel without a dimension."""
    low: tuple[float, ...] = ()
    """For an action box: the lower bounds; the most negative float32 where there is none."""
    high: tuple[float, ...] = ()
    """For an action box: the upper bounds; the largest float32 where there is none."""

    def to_json(self) -> dict[str, Any]:
        """The description as a dict of JSON values."""
        return {"kind": self.kind, "shape": list(self.shape), "sizes": list(self.sizes), "dims": self.dims} | (
            {"low": list(self.low), "high": list(self.high)} if self.low else {}
        )
