"""Positions with scores from files: `FEN,evaluation` lines, and EPD.

A score is in centipawns, a mate is written #3 or #-3, in EPD also 32767 minus the plies to it. Other units are refused:
pawns (0.35), probabilities and per cent look like numbers too, and a net that learned them would be wrong without a
word. A few lines of many may be bad: they are skipped, see `bad_lines`.
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
from ranks.workloads.chess_value.labels.label import RESULTS
from ranks.workloads.chess_value.labels.units import clipped_cp
from ranks.workloads.chess_value.positions.bad_lines import BadLines
from ranks.workloads.chess_value.positions.sourced import (
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
EPD_MATE_CP = 32_000
"""From here on `ce` is a mate (Edwards 1994, PGN standard 16.2.5.6)."""
FEWEST_SCORES, SMALLEST_CP = 50, 30
"""So many scores that are all so small are no centipawns."""
_SCORE = re.compile(r"(?P<mate>#)?(?P<sign>[+-]?)(?P<number>[0-9]{1,6})")
_DECIMAL = re.compile(r"[+-]?[0-9]*\.[0-9]+")
_ENDED = re.compile(r"#[+-]?0+")
"""Mate in 0: the game has ended, and there is nothing to learn."""
CSV_LINE = "write FEN,evaluation in each line"
EPD_LINE = 'write four fields, then operations as in ce 35; c9 "1-0";'
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


def csv_positions(path: Path, options: SourceOptions, bad: BadLines) -> Iterator[SourcedPositions]:
    """The positions of a file of `FEN,evaluation` lines, in chunks; further columns are ignored, and so is a first line
    of names. Raises UserError with the line at fault."""
    units = ScoreUnits(path)
    for chunk in _chunks(_csv_lines(path, units, bad)):
        units.check()
        yield _positions(chunk, "csv", options, mover=options.csv_side == "mover")


def epd_positions(path: Path, options: SourceOptions, bad: BadLines) -> Iterator[SourcedPositions]:
    """The positions of an EPD file, in chunks. The operation `ce` is a score for the side to move, in centipawns; `c9`
    is the result of the game. Raises UserError with the line at fault."""
    units = ScoreUnits(path)
    for chunk in _chunks(_epd_lines(path, units, bad)):
        units.check()
        yield _positions(chunk, "epd", options, mover=True)


def first_csv_line(path: Path) -> ScoredLine | None:
    """None of an empty file. Raises UserError where it is no line of this kind."""
    return next(_csv_lines(path, ScoreUnits(path), None), None)


def first_epd_line(path: Path) -> ScoredLine | None:
    """None of an empty file. Raises UserError where it is no line of this kind."""
    return next(_epd_lines(path, ScoreUnits(path), None), None)


def _csv_lines(path: Path, units: ScoreUnits, bad: BadLines | None) -> Iterator[ScoredLine]:
    """`bad`: skips bad lines; without it each raises UserError."""
    with _text(path) as text:
        for number, row in _csv_rows(text, path, bad):
            try:
                line = _csv_line(row, path, number, units)
            except UserError as error:
                _skip(error, bad)
                continue
            if line is not None:
                yield _good(line, bad)


def _csv_rows(text: Iterable[str], path: Path, bad: BadLines | None) -> Iterator[tuple[int, list[str]]]:
    """The rows with the numbers of their lines. A row that is no CSV counts as a bad line; what is wrong with the whole
    file raises UserError."""
    for number, line in enumerate(text, 1):  # each by itself: a stray quote would take all lines up to the next one
        try:
            row = next(csv.reader([line]), [])
        except csv.Error as error:
            _skip(UserError(f"the positions of {path}, line {number}", str(error), CSV_LINE), bad)
            continue
        yield number, row


def _csv_line(row: list[str], path: Path, line: int, units: ScoreUnits) -> ScoredLine | None:
    """None of an empty line, of the names of the columns, and of a game that has ended. Raises UserError."""
    if not row or (line == 1 and row[0].strip().lower() == "fen"):
        return None
    if len(row) < 2:
        raise UserError(f"the positions of {path}, line {line}", "no comma and score after the FEN", CSV_LINE)
    if _ENDED.fullmatch(row[1].strip()):
        return None
    return ScoredLine(line, _board(row[0], path, line), units.parse(row[1], line), None)


def _epd_lines(path: Path, units: ScoreUnits, bad: BadLines | None) -> Iterator[ScoredLine]:
    """`bad`: skips bad lines; without it each raises UserError."""
    with _text(path) as lines:
        for number, text in enumerate(lines, 1):
            try:
                line = _epd_line(text, path, number, units)
            except UserError as error:
                _skip(error, bad)
                continue
            if line is not None:
                yield _good(line, bad)


def _epd_line(text: str, path: Path, number: int, units: ScoreUnits) -> ScoredLine | None:
    """None of an empty line and of a game that has ended. Raises UserError."""
    epd = parse_epd(text)
    if epd is None:
        return None
    asked = f"the positions of {path}, line {number}"
    if odd := next((code for code in epd.operations if not code[0].isalpha()), None):
        raise UserError(asked, f"'{odd}' is no operation of EPD", EPD_LINE)
    result = epd.operations.get("c9", "*")
    if result not in RESULTS and result != "*":
        raise UserError(asked, f"the result c9 is '{result}'", 'write c9 "1-0"; or "0-1", "1/2-1/2" or "*"')
    score = epd.operations.get("ce")
    if score is not None and _ENDED.fullmatch(score):
        return None
    cp = None if score is None else units.parse(epd_mate(score), number)
    return ScoredLine(number, _board(epd.fen, path, number), cp, RESULTS.get(result))


def epd_mate(score: str) -> str:
    """'32762' -> '#3', '-32765' -> '#-1': mates as EPD writes them. Other scores as they are."""
    match = _SCORE.fullmatch(score)
    if match is None or match["mate"] or not EPD_MATE_CP < int(match["number"]) < 1 << 15:
        return score
    moves = (32_767 - int(match["number"]) + 1) // 2
    return f"#{'-' if match['sign'] == '-' else ''}{moves}"


def _skip(error: UserError, bad: BadLines | None) -> None:
    """Skip a line, or raise its error."""
    if bad is None:
        raise error from None
    bad.skip(error)


def _good(line: ScoredLine, bad: BadLines | None) -> ScoredLine:
    if bad is not None:
        bad.good += 1
    return line


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
