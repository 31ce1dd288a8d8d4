"""Settings of the files of positions. This module imports no torch."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal


@dataclass(frozen=True)
class SourceConfig:
    """Positions from files, which fill a cycle up to --max-positions, and which positions are used."""

    pgn: tuple[Path, ...] = ()
    """PGN files and folders of them."""
    csv: tuple[Path, ...] = ()
    """Files with lines FEN,evaluation."""
    epd: tuple[Path, ...] = ()
    """EPD files."""
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
        return (*self.pgn, *self.csv, *self.epd)
