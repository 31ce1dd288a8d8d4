"""The Elo of a player by its nodes for a move, from matches with players of the committed ladder.

`python -m benchmarks.chess.strength` writes the files. `UCI_LimitStrength` uses them.
"""

from __future__ import annotations

import bisect
import math
import os
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from ranks.engine.files.regular import DamagedFile
from ranks.engine.files.strict_json import read_object
from ranks.errors import UserError

FILE, CONFIG = "strength.json", "config.json"


@dataclass(frozen=True)
class Strength:
    """Measured points, both numbers rising."""

    nodes: tuple[int, ...]
    elo: tuple[float, ...]

    def __post_init__(self) -> None:
        if len(self.nodes) != len(self.elo) or len(self.nodes) < 2:
            raise ValueError("a strength has two points or more")
        if any(a >= b for values in (self.nodes, self.elo) for a, b in pairwise(values)):
            raise ValueError("more nodes must have more Elo")
        if self.nodes[0] < 1:
            raise ValueError("a move has one node or more")

    @property
    def least(self) -> int:
        """The lowest Elo between the points."""
        return math.ceil(self.elo[0])

    @property
    def most(self) -> int:
        """The highest Elo between the points."""
        return math.floor(self.elo[-1])

    def nodes_for(self, elo: float) -> int:
        """Nodes for a move that have this Elo, a straight line between points over the logarithm of the nodes."""
        right = min(max(1, bisect.bisect_left(self.elo, elo)), len(self.elo) - 1)
        share = (elo - self.elo[right - 1]) / (self.elo[right] - self.elo[right - 1])
        low, high = math.log(self.nodes[right - 1]), math.log(self.nodes[right])
        return round(math.exp(low + min(1.0, max(0.0, share)) * (high - low)))


def read_strength(path: Path, asked: str) -> Strength | None:
    """The strength in a file; None without one. Raises UserError where it is damaged, or was measured with other
    weights than those that config.json next to it describes."""
    if not os.path.exists(path):  # also False for a name that no file can have
        return None
    try:
        content = read_object(path, follow=True)
        weights, points = content.get("weights_sha256"), content["points"]
        config = path.with_name(CONFIG)  # the engine's own tables have none
        if config.exists() and read_object(config, follow=True).get("weights_sha256") != weights:
            raise UserError(asked, f"{path} was measured with other weights", "delete it: these have no known Elo")
        return Strength(tuple(int(each["nodes"]) for each in points), tuple(float(each["elo"]) for each in points))
    except (DamagedFile, KeyError, TypeError, ValueError) as error:
        raise UserError(asked, f"{path} is no file of strengths: {error}", "delete it, or write it again") from None
