"""Positions with scores from files: `FEN,evaluation` lines, and EPD.

A score is in centipawns, a mate is written #3 or #-3. Other units are refused: pawns (0.35), probabilities and per
cent look like numbers too, and a net that learned them would be wrong without a word.
"""

from __future__ import annotations

import csv
import io
import itertools
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ranks.bounded_file import FileLimits, open_file
from ranks.chess.epd import parse_epd
from ranks.chess.fen import parse_fen
from ranks.errors import UserError
from ranks.workloads.chess_value.labels.units import clipped_cp
from ranks.workloads.chess_value.positions.sourced import (
    RESULTS,
    SourcedPositions,
    SourceOptions,
    for_white,
    is_validation,
    sourced,
)

CHUNK = 1 << 12
"""Lines that are read at a time."""
LARGEST_CP = 20_000
"""Larger numbers are codes for mates."""
FEWEST_SCORES, SMALLEST_CP = 50, 30
"""So many scores that are all so small are no centipawns."""
_SCORE = re.compile(r"(?P<mate>#)?(?P<sign>[+-]?)(?P<number>[0-9]{1,6})")
_DECIMAL = re.compile(r"[+-]?[0-9]*\.[0-9]+")
CENTIPAWNS = "give centipawns as whole numbers (35), and mates as #3 or #-3"


class ScoredLine(NamedTuple):
    """A line of a file of scores."""

    number: int
    """From 1."""
    board_13: NDArray[np.uint64]
    cp: int | None
    """As written: for white, or for the side to move."""
    result: int | None
    """For white."""


class ScoreUnits:
    """Notices scores that are no centipawns."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._count = self._largest = 0

    def parse(self, text: str, line: int) -> int:
        """'-35' or '#3' in our units. Raises UserError."""
        asked = f"the score '{text}' in {self._path}, line {line}"
        match = _SCORE.fullmatch(text.strip())
        if match is None:
            decimal = _DECIMAL.fullmatch(text.strip())
            found = "a decimal number: pawns or a probability" if decimal else "not a score"
            raise UserError(asked, found, CENTIPAWNS)
        number = int(match["number"]) * (-1 if match["sign"] == "-" else 1)
        if match["mate"]:
            return clipped_cp(None, -1 if match["sign"] == "-" else 1)
        if abs(number) > LARGEST_CP:
            raise UserError(asked, f"more than {LARGEST_CP:,} centipawns: a code for a mate", CENTIPAWNS)
        self._count, self._largest = self._count + 1, max(self._largest, abs(number))
        return clipped_cp(number, None)

    def check(self) -> None:
        """Raises UserError where all scores so far are too small for centipawns."""
        if self._count >= FEWEST_SCORES and self._largest <= SMALLEST_CP:
            found = f"{self._count:,} scores, all from -{self._largest} to {self._largest}: these are pawns or results"
            raise UserError(f"the scores of {self._path}", found, CENTIPAWNS)


def csv_positions(path: Path, options: SourceOptions) -> Iterator[SourcedPositions]:
    """The positions of a file of `FEN,evaluation` lines, in chunks; further columns are ignored, and so is a first line
    of names. Raises UserError with the line at fault."""
    units = ScoreUnits(path)
    for chunk in _chunks(_csv_lines(path, units)):
        units.check()
        yield _positions(chunk, "csv", options, mover=options.csv_side == "mover")


def epd_positions(path: Path, options: SourceOptions) -> Iterator[SourcedPositions]:
    """The positions of an EPD file, in chunks. The operation `ce` is a score for the side to move, in centipawns; `c9`
    is the result of the game. Raises UserError with the line at fault."""
    units = ScoreUnits(path)
    for chunk in _chunks(_epd_lines(path, units)):
        units.check()
        yield _positions(chunk, "epd", options, mover=True)


def first_csv_line(path: Path) -> ScoredLine | None:
    """None of an empty file. Raises UserError where it is no line of this kind."""
    return next(_csv_lines(path, ScoreUnits(path)), None)


def first_epd_line(path: Path) -> ScoredLine | None:
    """None of an empty file. Raises UserError where it is no line of this kind."""
    return next(_epd_lines(path, ScoreUnits(path)), None)


def _csv_lines(path: Path, units: ScoreUnits) -> Iterator[ScoredLine]:
    with _text(path) as text:
        rows = csv.reader(text)
        try:
            for row in rows:
                line = rows.line_num
                if not row or (line == 1 and row[0].strip().lower() == "fen"):
                    continue
                if len(row) < 2:
                    do = "write FEN,evaluation in each line"
                    raise UserError(f"the positions of {path}, line {line}", "no comma and score after the FEN", do)
                yield ScoredLine(line, _board(row[0], path, line), units.parse(row[1], line), None)
        except csv.Error as error:
            do = "write FEN,evaluation in each line"
            raise UserError(f"the positions of {path}, line {rows.line_num}", str(error), do) from None


def _epd_lines(path: Path, units: ScoreUnits) -> Iterator[ScoredLine]:
    with _text(path) as lines:
        for number, text in enumerate(lines, 1):
            epd = parse_epd(text)
            if epd is None:
                continue
            score = epd.operations.get("ce")
            cp = None if score is None else units.parse(score, number)
            result = RESULTS.get(epd.operations.get("c9", ""))
            yield ScoredLine(number, _board(epd.fen, path, number), cp, result)


def _positions(lines: list[ScoredLine], source: str, options: SourceOptions, *, mover: bool) -> SourcedPositions:
    rows = np.array([line.board_13 for line in lines])
    sign_N = for_white(rows).tolist() if mover else [1] * len(lines)
    white_cp = [None if line.cp is None else line.cp * sign for line, sign in zip(lines, sign_N, strict=True)]
    validates = [is_validation(int(line.board_13[-1]), options.validation_share) for line in lines]
    return sourced(rows, white_cp, [line.result for line in lines], source, validates)


def _board(fen: str, path: Path, line: int) -> NDArray[np.uint64]:
    """uint64[13]. Raises UserError with the line."""
    try:
        board_13 = parse_fen(fen)[0]
    except UserError as error:
        raise UserError(f"{error.asked} in {path}, line {line}", error.found, error.do) from None
    return board_13


def _chunks(lines: Iterable[ScoredLine]) -> Iterator[list[ScoredLine]]:
    left = iter(lines)
    while chunk := list(itertools.islice(left, CHUNK)):
        yield chunk


def _text(path: Path) -> io.TextIOWrapper:
    content = open_file(path, f"the positions of {path}", limits=FileLimits.streamed())
    return io.TextIOWrapper(content, "utf-8-sig", "replace", newline="")
