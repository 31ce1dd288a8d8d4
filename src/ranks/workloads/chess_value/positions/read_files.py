"""All files of a run as one stream of positions, each once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from ranks.data.prepared.say import say
from ranks.errors import UserError
from ranks.workloads.chess_value.positions.filters import SeenKeys, chosen
from ranks.workloads.chess_value.positions.pgn_source import DamagedGames, pgn_files, pgn_positions
from ranks.workloads.chess_value.positions.scored_files import csv_positions, epd_positions
from ranks.workloads.chess_value.positions.sourced import SourcedPositions, SourceOptions, joined

CHUNK = 1 << 15
"""Positions of a chunk, about."""


def read_files(
    pgn: Sequence[Path],
    csv: Sequence[Path],
    epd: Sequence[Path],
    options: SourceOptions,
    report: Callable[[str], None] = say,
) -> Iterator[SourcedPositions]:
    """The positions of all files in chunks, in the order of files and lines. A position that occurs again is left out,
    so no position trains and validates. Raises UserError with file and line."""
    seen, damaged = SeenKeys(), DamagedGames(report)
    waiting: list[SourcedPositions] = []
    for found in _all(pgn, csv, epd, options, damaged):
        waiting.append(found)
        if sum(part.num_positions for part in waiting) >= CHUNK:
            yield chosen(joined(waiting), seen, quiet=options.quiet, mirror=options.mirror)
            waiting = []
    if waiting:
        yield chosen(joined(waiting), seen, quiet=options.quiet, mirror=options.mirror)
    damaged.end()


def by_suffix(paths: Sequence[Path]) -> tuple[list[Path], list[Path], list[Path]]:
    """PGN files and folders, CSV files, EPD files. Raises UserError for any other file."""
    kinds: tuple[list[Path], list[Path], list[Path]] = ([], [], [])
    for path in paths:
        name = path.name.removesuffix(".gz").lower()
        place = next((index for index, suffix in enumerate((".pgn", ".csv", ".epd")) if name.endswith(suffix)), None)
        place = 0 if path.is_dir() else place
        if place is None:
            do = "give .pgn, .csv or .epd files, also with .gz, or folders of games"
            raise UserError(f"the positions of {path}", f"'{path.suffix}' is no format of positions", do)
        kinds[place].append(path)
    return kinds


def _all(
    pgn: Sequence[Path], csv: Sequence[Path], epd: Sequence[Path], options: SourceOptions, damaged: DamagedGames
) -> Iterator[SourcedPositions]:
    for path in pgn_files(tuple(pgn)):
        yield from pgn_positions(path, options, damaged)
    for path in csv:
        yield from csv_positions(path, options)
    for path in epd:
        yield from epd_positions(path, options)
