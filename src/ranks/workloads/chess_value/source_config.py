"""Settings of the files of positions. This module imports no torch."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NoReturn

from ranks.errors import UserError

KINDS = ("pgn", "csv", "epd", "parts")
WEIGHT = re.compile(r"([a-z]+):([0-9]{1,6}(?:\.[0-9]{1,6})?)")


@dataclass(frozen=True)
class SourceConfig:
    """Positions from files, which fill a cycle up to --max-positions, and which positions are used."""

    pgn: tuple[Path, ...] = ()
    """PGN files and folders of them."""
    csv: tuple[Path, ...] = ()
    """Files with lines FEN,evaluation."""
    epd: tuple[Path, ...] = ()
    """EPD files."""
    parts: tuple[Path, ...] = ()
    """Folders that `ranks chess-value label` wrote. They say which positions validate."""
    weights: str | None = None
    """How many positions each kind gives next to the others: pgn:1,csv:2,epd:1. By default all give the same."""
    min_move: int = 10
    """PGN: the first move number whose position is used."""
    full_weight_elo: float | None = 2400.0
    """PGN: games whose players have this mean rating give all positions, with 400 less half of them; none: all do."""
    csv_side: Literal["white", "mover"] = "white"
    """CSV: for whom a positive evaluation is good."""
    quiet: bool = True
    """Only positions without check and without a capture that wins material; of games too."""
    mirror: bool = False
    """Also each position with the files a to h as h to a, where no side may castle; of games too."""

    @property
    def files(self) -> tuple[Path, ...]:
        """Of all kinds."""
        return tuple(path for kind in self.kinds for path in getattr(self, kind))

    @property
    def kinds(self) -> tuple[str, ...]:
        """Those of which there are files."""
        return tuple(kind for kind in KINDS if getattr(self, kind))

    @property
    def weight_of(self) -> Mapping[str, float]:
        """By kind, of those of which there are files. Raises UserError."""
        if self.weights is None:
            return dict.fromkeys(self.kinds, 1.0)
        found: dict[str, float] = {}
        for part in self.weights.split(","):
            match = WEIGHT.fullmatch(part.strip())
            if match is None or not float(match[2]):
                self._refuse(f"'{part}' is no KIND:NUMBER with a number above 0")
            found[match[1]] = float(match[2])
        if found.keys() != set(self.kinds):
            self._refuse(f"weights of {', '.join(found)}, and files of {', '.join(self.kinds) or 'no kind'}")
        return found

    def __post_init__(self) -> None:
        self.weight_of  # noqa: B018 - raises UserError

    def _refuse(self, found: str) -> NoReturn:
        example = ",".join(f"{kind}:1" for kind in self.kinds or KINDS)
        raise UserError(f"--sources.weights {self.weights}", found, f"give {example}, for example")
