"""`ranks chess-value label`: positions of files with the scores of an engine, as files to train on (--sources.parts).

Imports torch and Numba inside the function only, so that `--help` answers at once.
"""

from __future__ import annotations

from collections import deque
from concurrent.futures import Future
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from ranks.errors import UserError
from ranks.workloads.chess_value.commands.cache import bytes_of
from ranks.workloads.chess_value.config import STATIC
from ranks.workloads.chess_value.labels.label import NO_SCORE

if TYPE_CHECKING:
    from ranks.workloads.chess_value.labels.teacher import TaughtLabels
    from ranks.workloads.chess_value.positions.sourced import SourcedPositions

CHUNK = 1 << 15
"""Positions that are labelled at a time, about, before the filters."""
AHEAD = 2
"""Chunks of positions that wait while one is labelled, so that reading files costs the engines no time."""


def label(
    files: list[Path],
    /,
    *,
    to: Path,
    limit: str = "nodes:1000",
    engine: str = "stockfish",
    engines: int | None = None,
    cache: Path | None = None,
    cache_mib: int | None = None,
    most: int | None = None,
    min_move: int = 10,
    full_weight_elo: float = 2400.0,
    noisy: bool = False,
    mirror: bool = False,
    relabel: bool = False,
    csv_side: Literal["white", "mover"] = "white",
    validation_share: float = 0.05,
) -> int:
    """Label the positions of PGN, CSV and EPD files, and write them as files of packed positions.

    Args:
        files: .pgn, .pgn.gz, folders of these, .csv with lines FEN,evaluation, and .epd.
        to: The folder of the packed positions, in train/ and validation/.
        limit: What the engine searches for each position: nodes:N or depth:D; static: Stockfish's evaluation without
            search.
        engine: The command of a UCI engine.
        engines: Engines at the same time; by default one for each CPU core, and never more.
        cache: The folder of the label cache; by default in your cache folder, shared by all runs.
        cache_mib: The most that the labels of this engine and limit may take there; the oldest are dropped. By default
            what was given last, or 1,024.
        most: Stop after so many positions.
        min_move: PGN: the first move number whose position is used.
        full_weight_elo: PGN: a game of this mean rating gives all its positions, one with 400 less half of them.
        noisy: Also use positions in check, and those in which a capture wins material.
        mirror: Also use each position mirrored, where no side may castle.
        relabel: Let the engine label positions that have a score in their file, too.
        csv_side: CSV: for whom a positive score is good.
        validation_share: Share of the games, and of the positions of CSV and EPD files, for validation.

    A position is searched with a cleared table, one thread and its clocks at 0, so its label does not depend on the
    order or the number of engines. A command that was stopped begins again, with its labels from the cache. Returns
    0.
    """
    check_flags(files, engines, most, validation_share)
    if limit == STATIC and noisy:
        found = "a position in check has no static evaluation"
        raise UserError("--limit static --noisy", found, "leave one of them out")
    cache_bytes = bytes_of(cache_mib)

    from ranks.workloads.chess_value.labels.teacher import Teacher, TeacherSettings, engines_here
    from ranks.workloads.chess_value.positions.part_files import TRAIN, VALIDATION
    from ranks.workloads.chess_value.positions.part_folder import writing_parts
    from ranks.workloads.chess_value.positions.read_files import by_suffix, read_files
    from ranks.workloads.chess_value.positions.sourced import SourceOptions

    options = SourceOptions(
        min_move=min_move,
        full_weight_elo=full_weight_elo,
        quiet=not noisy,
        mirror=mirror,
        csv_side=csv_side,
        validation_share=validation_share,
    )
    sources = by_suffix(files)
    settings = TeacherSettings(engine, limit, engines_here(engines, busy=0), cache, cache_bytes)
    progress = LabelProgress()
    with writing_parts(to) as writers, closing(Teacher(settings)) as teacher:
        print(f"labels: {teacher.about}, {settings.engines} engines", flush=True)
        waiting: deque[tuple[SourcedPositions, Future[TaughtLabels]]] = deque()

        def finish() -> None:
            found, future = waiting.popleft()
            taught = future.result()
            scored = with_scores(found, taught, relabel=relabel)
            for name, part in zip((TRAIN, VALIDATION), scored.split(), strict=True):
                writers[name].add(part)
            progress.add(found.num_positions, scored.num_positions, taught)

        for found in read_files(sources, options, chunk=CHUNK):
            found = (
                found
                if most is None
                else found.take(np.arange(min(found.num_positions, max(0, most - progress.submitted))))
            )
            progress.submitted += found.num_positions
            waiting.append((found, teacher.submit(to_label(found, relabel=relabel))))
            if len(waiting) > AHEAD:
                finish()
            if most is not None and progress.submitted >= most:
                break
        while waiting:
            finish()
    counts = {name: len(writer.files) for name, writer in writers.items()}
    if not any(counts.values()):
        found = f"no position to label in {', '.join(map(str, files))}"
        raise UserError("ranks chess-value label", found, "see the lines above; --noisy and --min-move 1 take more")
    print(progress.line())
    print(f"{to}: {', '.join(f'{count} files in {name}/' for name, count in counts.items())}")
    return 0


def to_label(found: SourcedPositions, *, relabel: bool) -> NDArray[np.uint64]:
    """The boards that the engine labels: those without a score in their file, or all."""
    return found.boards_N13 if relabel else found.boards_N13[found.cp_N == NO_SCORE]


def with_scores(found: SourcedPositions, taught: TaughtLabels, *, relabel: bool) -> SourcedPositions:
    """The positions with their scores, without those that got none."""
    cp_N = found.cp_N.copy()
    cp_N[slice(None) if relabel else found.cp_N == NO_SCORE] = taught.cp_N
    return found._replace(cp_N=cp_N).take(cp_N != NO_SCORE)


def check_flags(files: list[Path], engines: int | None, most: int | None, validation_share: float) -> None:
    """Raises UserError for what cannot be."""
    if not files:
        raise UserError("ranks chess-value label", "no file", "give .pgn, .csv or .epd files, or folders of games")
    for flag, value in (("--engines", engines), ("--most", most)):
        if value is not None and value < 1:
            raise UserError(f"{flag} {value}", "it is 1 or more", f"give {flag} 1 or more")
    if not 0 <= validation_share < 1:
        do = "give --validation-share 0.05, for example"
        raise UserError(f"--validation-share {validation_share}", "a share from 0 to below 1", do)


class LabelProgress:
    """What has been labelled so far."""

    def __init__(self) -> None:
        self.submitted = self.written = self.without = self.cached = self.computed = 0
        self.seconds = 0.0

    def add(self, found: int, written: int, taught: TaughtLabels) -> None:
        """A chunk is done."""
        self.written += written
        self.without += found - written
        self.cached += taught.cached
        self.computed += taught.computed
        self.seconds += taught.seconds
        print(self.line(), flush=True)

    def line(self) -> str:
        """'65,536 positions: 60,000 labels computed (900/s), 5,536 from the cache'."""
        speed = f" ({self.computed / self.seconds:,.0f}/s)" if self.seconds else ""
        text = f"{self.written:,} positions: {self.computed:,} labels computed{speed}, {self.cached:,} from the cache"
        return f"{text}; {self.without:,} set aside" if self.without else text
