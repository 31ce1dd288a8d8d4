"""All files of a run as one stream of positions, each once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from ranks.data.prepared.say import say
from ranks.errors import UserError
from ranks.workloads.chess_value.positions.bad_lines import BadLines
from ranks.workloads.chess_value.positions.filters import SeenKeys, filter_positions
from ranks.workloads.chess_value.positions.part_source import part_positions
from ranks.workloads.chess_value.positions.pgn_source import DamagedGames, pgn_files, pgn_positions
from ranks.workloads.chess_value.positions.scored_files import csv_positions, epd_positions
from ranks.workloads.chess_value.positions.sourced import SourcedPositions, SourceOptions, joined

CHUNK = 1 << 12
"""Positions of a chunk, about, before the filters."""
SUFFIXES = (".pgn", ".csv", ".epd")


class SourcePaths(NamedTuple):
    """The files and folders of each kind."""

    pgn: Sequence[Path] = ()
    csv: Sequence[Path] = ()
    epd: Sequence[Path] = ()
    parts: Sequence[Path] = ()
    """Folders that `ranks chess-value label` wrote."""


def read_files(
    paths: SourcePaths,
    options: SourceOptions,
    weights: Mapping[str, float] | None = None,
    report: Callable[[str], None] = say,
    *,
    chunk: int = CHUNK,
) -> Iterator[SourcedPositions]:
    """The positions of all files in chunks. Each kind is read in the order of its files and lines, and the next chunk
    is of the kind that has given the fewest positions for its weight. A kind that ends is left out.

    `weights`: by kind; without them all are equal. A position that occurs again is left out, so no position trains and
    validates. Raises UserError with file and line."""
    seen, damaged, bad = SeenKeys(), DamagedGames(report), BadLines(report)
    streams: dict[str, Iterator[SourcedPositions]] = {
        kind: chunks(found, chunk) for kind, found in _by_kind(paths, options, damaged, bad).items()
    }
    given = dict.fromkeys(streams, 0)
    while streams:
        kind = min(streams, key=lambda kind: given[kind] / (weights[kind] if weights else 1.0))
        found = next(streams[kind], None)
        if found is None:
            del streams[kind]
            continue
        used = filter_positions(found, seen, quiet=options.quiet, mirror=options.mirror)
        given[kind] += used.num_positions
        yield used
    damaged.end()
    bad.end()


def by_suffix(paths: Sequence[Path]) -> SourcePaths:
    """PGN files and folders, CSV files, EPD files. Raises UserError for any other file."""
    kinds: tuple[list[Path], list[Path], list[Path]] = ([], [], [])
    for path in paths:
        name = path.name.removesuffix(".gz").lower()
        place = next((index for index, suffix in enumerate(SUFFIXES) if name.endswith(suffix)), None)
        place = 0 if path.is_dir() else place
        if place is None:
            do = "give .pgn, .csv or .epd files, also with .gz, or folders of games"
            raise UserError(f"the positions of {path}", f"'{path.suffix}' is no format of positions", do)
        kinds[place].append(path)
    return SourcePaths(*kinds)


def chunks(stream: Iterable[SourcedPositions], size: int) -> Iterator[SourcedPositions]:
    """A stream in pieces of at least `size` positions; only the last one may be smaller."""
    waiting: list[SourcedPositions] = []
    count = 0
    for found in stream:
        waiting.append(found)
        count += found.num_positions
        if count >= size:
            yield joined(waiting)
            waiting, count = [], 0
    if waiting:
        yield joined(waiting)


def _by_kind(
    paths: SourcePaths, options: SourceOptions, damaged: DamagedGames, bad: BadLines
) -> dict[str, Iterator[SourcedPositions]]:
    """The positions of each kind of which there are files."""
    streams = {
        "pgn": (found for path in pgn_files(paths.pgn) for found in pgn_positions(path, options, damaged)),
        "csv": (found for path in paths.csv for found in csv_positions(path, options, bad)),
        "epd": (found for path in paths.epd for found in epd_positions(path, options, bad)),
        "parts": (found for folder in paths.parts for found in part_positions(folder)),
    }
    return {kind: stream for kind, stream in streams.items() if getattr(paths, kind)}
