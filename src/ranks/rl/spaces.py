"""What observations and actions are made of, as data that JSON holds, so that a policy can be built again elsewhere.

Legend: B environments.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

Kind = Literal["box", "image", "discrete", "multi-discrete", "multi-binary"]


@dataclass(frozen=True)
class Space:
    """One tensor of an observation, or an action.

    | kind           | what it holds                        | tensor         |
    | box            | numbers of `shape`                   | float[B, ...]  |
    | image          | uint8 of `shape`, laid out as `dims` | uint8[B, ...]  |
    | discrete       | one of `sizes[0]`                    | int64[B]       |
    | multi-discrete | one of `sizes[i]` for each part i    | int64[B, parts] |
    | multi-binary   | `sizes[0]` bits                      | float[B, bits] |
    """

    kind: Kind
    shape: tuple[int, ...] = ()
    sizes: tuple[int, ...] = ()
    dims: Literal["HWC", "CHW", "HW"] = "HWC"
    """Of an image alone: channels last, channels first, or one channel that has no dimension."""
    low: tuple[float, ...] = ()
    """Of an action's box alone: its bounds, the largest number where there is none."""
    high: tuple[float, ...] = ()

    def plain(self) -> dict[str, Any]:
        """As JSON."""
        return {"kind": self.kind, "shape": list(self.shape), "sizes": list(self.sizes), "dims": self.dims} | (
            {"low": list(self.low), "high": list(self.high)} if self.low else {}
        )
