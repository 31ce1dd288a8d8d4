"""The positions of a run's files, some for each cycle."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from ranks.data.prepared.say import say
from ranks.engine.distributed.agree import on_first_rank
from ranks.engine.distributed.world import World
from ranks.workloads.chess_value.positions.check_files import check_files, hash_files
from ranks.workloads.chess_value.positions.read_files import SourcePaths, read_files
from ranks.workloads.chess_value.positions.sourced import SourcedPositions, SourceOptions, joined, nothing
from ranks.workloads.chess_value.source_config import SourceConfig


class FilePositions:
    """A stream of positions in the order of the files. The first rank reads; every rank gets the same.

    found = files.take(count)

    A resumed run reads the files again up to where it was."""

    def __init__(self, cfg: SourceConfig, validation_share: float, world: World) -> None:
        """Look at the beginning of each file. Every rank calls it. Raises UserError, on all ranks."""
        self.taken = 0
        """Positions that were given out."""
        self._cfg, self._world = cfg, world
        self._options = SourceOptions(
            min_move=cfg.min_move,
            full_weight_elo=cfg.full_weight_elo,
            quiet=cfg.quiet,
            mirror=cfg.mirror,
            csv_side=cfg.csv_side,
            validation_share=validation_share,
            seed=world.seed,
        )
        self._chunks: Iterator[SourcedPositions] | None = None
        self._waiting = nothing()
        """Read and not given out, on the first rank."""
        on_first_rank(world, lambda: check_files(paths_of(cfg)))

    def hashes(self) -> tuple[str, ...]:
        """The names and hashes of all files, for the run's identity. Every rank calls it. Raises UserError, on all
        ranks."""
        return on_first_rank(self._world, lambda: hash_files(paths_of(self._cfg), self._world.beat, say))

    def take(self, count: int) -> SourcedPositions:
        """The next positions; fewer where the files end. Every rank calls it. Raises UserError, on all ranks, with file
        and line."""
        if count <= 0 or not self._cfg.files:
            return nothing()
        found = on_first_rank(self._world, lambda: self._read(count))
        self.taken += found.num_positions
        return found

    def _read(self, count: int) -> SourcedPositions:
        if self._chunks is None:
            self._chunks = read_files(paths_of(self._cfg), self._options, self._cfg.weight_of)
            self._skip(self.taken)
        return self._next(count)

    def _skip(self, count: int) -> None:
        """Read so many positions and keep none of them: memory holds one chunk."""
        while count > 0 and self._chunks is not None and (chunk := next(self._chunks, None)) is not None:
            self._world.beat()
            self._waiting = chunk.take(np.arange(min(count, chunk.num_positions), chunk.num_positions))
            count -= chunk.num_positions

    def _next(self, count: int) -> SourcedPositions:
        parts, missing = [self._waiting], count - self._waiting.num_positions
        while missing > 0 and self._chunks is not None and (chunk := next(self._chunks, None)) is not None:
            self._world.beat()
            parts.append(chunk)
            missing -= chunk.num_positions
        everything = joined(parts)
        self._waiting = everything.take(np.arange(min(count, everything.num_positions), everything.num_positions))
        return everything.take(np.arange(min(count, everything.num_positions)))

    def state_dict(self) -> dict[str, Any]:
        return {"taken": self.taken}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.taken, self._chunks, self._waiting = state["taken"], None, nothing()


def paths_of(cfg: SourceConfig) -> SourcePaths:
    """The files of the settings."""
    return SourcePaths(cfg.pgn, cfg.csv, cfg.epd, cfg.parts)
