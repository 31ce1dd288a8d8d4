"""Looks at the files of a run before its first game, and hashes them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from ranks.bounded_file import FileLimits, open_file
from ranks.workloads.chess_value.positions.part_files import open_parts
from ranks.workloads.chess_value.positions.part_folder import files_of
from ranks.workloads.chess_value.positions.pgn_source import pgn_files, refuse_packed
from ranks.workloads.chess_value.positions.read_files import SourcePaths
from ranks.workloads.chess_value.positions.scored_files import first_csv_line, first_epd_line

BLOCK_BYTES = 1 << 20
LONG_BYTES = 1 << 30
"""Files of this size together take some seconds or more, which is worth a line."""


def check_files(paths: SourcePaths) -> None:
    """Look at the beginning of each file. Raises UserError where one is missing or cannot be read, where a folder has
    no games, and for CSV and EPD where the first line is none of that kind."""
    for path in pgn_files(paths.pgn):
        next(_blocks(path), None)
    for path in (*paths.csv, *paths.epd):
        refuse_packed([path], f"the positions of {path}")
    for path in paths.csv:
        first_csv_line(path)
    for path in paths.epd:
        first_epd_line(path)
    for folder in paths.parts:
        for files in files_of(folder, verify=False).values():
            open_parts(files)


def hash_files(paths: SourcePaths, beat: Callable[[], None], report: Callable[[str], None]) -> tuple[str, ...]:
    """Names with the first digits of the sha256 of the content, of each file or folder of the settings: what a run's
    identity says about them. Files are read to their ends, unpacked, so damaged .gz files raise UserError here.

    `beat`: is called now and then. `report`: gets one line where it takes long."""
    given = [(path, pgn_files([path])) for path in paths.pgn]
    given += [(path, [path]) for path in (*paths.csv, *paths.epd)]
    parts = [file for folder in paths.parts for files in files_of(folder, verify=False).values() for file in files]
    num_bytes = sum(file.stat().st_size for file in [*parts, *(file for _, files in given for file in files)])
    if num_bytes >= LONG_BYTES:
        report(f"reading {num_bytes / 1e9:.1f} GB of --sources once for their sha256")
    hashes = [(path, _sha256(path, files, beat)) for path, files in given]
    hashes += [(folder, _parts_sha256(files_of(folder, verify=True, beat=beat))) for folder in paths.parts]
    return tuple(f"{path.name} {sha256[:16]}" for path, sha256 in hashes)


def _sha256(path: Path, files: list[Path], beat: Callable[[], None]) -> str:
    """Of one file, or of the names and hashes of those in a folder."""
    if files == [path]:
        return _content_sha256(path, beat)
    lines = [f"{file.relative_to(path).as_posix()} {_content_sha256(file, beat)}\n" for file in files]
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def _parts_sha256(files: Mapping[str, list[Path]]) -> str:
    """Of the names of packed positions, which hold the sha256 of their contents."""
    names = [f"{name}/{path.name}\n" for name, paths in files.items() for path in paths]
    return hashlib.sha256("".join(names).encode()).hexdigest()


def _content_sha256(path: Path, beat: Callable[[], None]) -> str:
    digest = hashlib.sha256()
    for block in _blocks(path):
        digest.update(block)
        beat()
    return digest.hexdigest()


def _blocks(path: Path) -> Iterator[bytes]:
    with open_file(path, f"the positions of {path}", limits=FileLimits.streamed()) as content:
        while block := content.read(BLOCK_BYTES):
            yield block
