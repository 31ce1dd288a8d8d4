"""The files of a run: some of their positions for each cycle, also after a resume."""

from __future__ import annotations

import gc
import gzip
import random
import weakref
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ranks import World
from ranks.bounded_file import VARIABLE
from ranks.chess.fen import format_fen
from ranks.errors import UserError
from ranks.workloads.chess_value import file_positions
from ranks.workloads.chess_value.file_positions import FilePositions, paths_of
from ranks.workloads.chess_value.labels.label import SOURCES, Labelled
from ranks.workloads.chess_value.positions.check_files import hash_files
from ranks.workloads.chess_value.positions.part_folder import writing_parts
from ranks.workloads.chess_value.positions.read_files import SourcePaths, by_suffix, read_files
from ranks.workloads.chess_value.positions.sourced import SourcedPositions, SourceOptions, joined, sourced
from ranks.workloads.chess_value.source_config import SourceConfig
from tests.chess_value.boards import random_boards
from tests.chess_value.tiny import CONFIG, run_config, train

BOARDS = random_boards(60, seed=3)
OPTIONS = SourceOptions(quiet=False)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    found = World.join(run_config(tmp_path, "run"), device="cpu", workload="chess-value")
    yield found
    found.leave()


@pytest.fixture
def epd(tmp_path: Path) -> SourceConfig:
    """A file of all BOARDS, of which all are used."""
    path = tmp_path / "a.epd"
    path.write_text("".join(f"{format_fen(board_13)}\n" for board_13 in BOARDS))
    return SourceConfig(epd=(path,), quiet=False)


def test_a_resumed_run_goes_on_where_it_was(epd: SourceConfig, world: World) -> None:
    straight, resumed = (FilePositions(epd, 0.5, world) for _ in range(2))
    taken = [straight.take(count) for count in (7, 20, 30, 30)]
    assert np.array_equal(np.concatenate([each.boards_N13 for each in taken])[:, 12], BOARDS[:, 12])
    resumed.load_state_dict({"taken": 27})
    for before in taken[2:]:
        now = resumed.take(30)
        assert all(np.array_equal(old, new) for old, new in zip(before, now, strict=True))


def test_each_kind_gives_as_many_positions_as_its_weight_says(epd: SourceConfig, world: World, tmp_path: Path) -> None:
    lines = [f"{format_fen(board_13)},{100 + row}\n" for row, board_13 in enumerate(BOARDS)]
    paths = [tmp_path / f"{number:02d}.{'csv' if number < 14 else 'epd'}" for number in range(20)]
    for number, path in enumerate(paths):  # three lines each, so that each is a chunk
        of_file = lines[3 * number : 3 * number + 3]
        path.write_text("".join(of_file if number < 14 else [line.partition(",")[0] + "\n" for line in of_file]))

    def first(weights: str | None) -> list[int]:
        """How many of the first 30 positions are from CSV and EPD."""
        cfg = replace(epd, csv=tuple(paths[:14]), epd=tuple(paths[14:]), weights=weights)
        found = list(read_files(paths_of(cfg), OPTIONS, cfg.weight_of, chunk=3))
        everything = joined(found)
        assert everything.num_positions == 60, "the kind that ends last gives the rest"
        return [int((everything.source_N[:24] == SOURCES.index(kind)).sum()) for kind in ("csv", "epd")]

    assert first(None) == [12, 12]
    assert first("csv:3,epd:1") == [18, 6]


@pytest.mark.parametrize("weights", ["epd", "epd:0", "epd:1,csv:1", "epd:-1", "pgn:1", ""])
def test_weights_name_the_kinds_that_there_are(epd: SourceConfig, weights: str) -> None:
    with pytest.raises(UserError, match="give epd:1, for example"):
        replace(epd, weights=weights)


def test_a_resume_holds_no_more_than_a_few_chunks(
    epd: SourceConfig, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of 300 chunks that were read before."""
    alive: list[weakref.ref[np.ndarray]] = []
    most = 0

    def chunks(*given: object) -> Iterator[SourcedPositions]:
        nonlocal most
        for _ in range(301):
            chunk = sourced(BOARDS, [None] * 60, [None] * 60, "epd", [False] * 60)
            alive.append(weakref.ref(chunk.boards_N13))
            yield chunk
            del chunk
            most = max(most, sum(ref() is not None for ref in alive))

    monkeypatch.setattr(file_positions, "read_files", chunks)
    files = FilePositions(epd, 0.0, world)
    files.load_state_dict({"taken": 300 * 60 - 5})
    gc.collect()
    assert files.take(20).num_positions == 20
    assert most <= 3


@pytest.mark.parametrize(
    ("kind", "content", "found"),
    [
        ("pgn", None, "No such file"),
        ("csv", None, "No such file"),
        ("epd", {}, "a folder, not a regular file"),
        ("pgn", {}, "no .pgn or .pgn.gz file in this folder"),
        ("csv", b"[Event x]\n", "no comma and score"),
        ("epd", b"\n4k3/8 w\n", "the board has 2 ranks"),
        ("pgn", gzip.compress(random.Random(0).randbytes(99_999))[:60_000], "a damaged gzip file"),
    ],
)
def test_files_are_looked_at_before_there_is_a_run(
    kind: str, content: bytes | dict[str, str] | None, found: str, tmp_path: Path
) -> None:
    """Also to the end of a packed one. They used to end a run that had played all games of a cycle."""
    path = tmp_path / f"a.{kind}"
    if isinstance(content, bytes):
        path.write_bytes(content)
    elif content is not None:
        path.mkdir()
    with pytest.raises(UserError) as error:
        train(tmp_path, cfg=replace(CONFIG, sources=replace(SourceConfig(), **{kind: (path,)})))
    assert found in error.value.found
    assert str(path) in str(error.value)
    assert not (tmp_path / "runs" / "tiny").exists()


def test_a_file_that_was_edited_refuses_to_continue(epd: SourceConfig, tmp_path: Path) -> None:
    cfg = replace(CONFIG, iterations=1, games=0, labels="search", sources=epd, parts=1)
    cfg = replace(cfg, rating=replace(cfg.rating, rung_games=1))
    train(tmp_path, cfg=cfg)
    with epd.epd[0].open("a") as file:
        file.write(f"{format_fen(BOARDS[0])}\n")
    with pytest.raises(UserError, match=r'data was "a.epd [0-9a-f]{16}", now "a.epd [0-9a-f]{16}"'):
        train(tmp_path, cfg=replace(cfg, iterations=2))


def test_a_folder_has_one_hash_of_names_and_contents(tmp_path: Path) -> None:
    said: list[str] = []

    def hashes() -> tuple[str, ...]:
        return hash_files(SourcePaths(pgn=[tmp_path]), lambda: said.append("beat"), said.append)

    (tmp_path / "a.pgn").write_text("1. e4 *\n")
    first = hashes()
    assert [text.split()[0] for text in first] == [tmp_path.name]
    (tmp_path / "a.pgn").rename(tmp_path / "b.pgn")
    assert hashes() != first
    (tmp_path / "b.pgn").rename(tmp_path / "a.pgn")
    assert hashes() == first
    assert set(said) == {"beat"}, "a small file is not worth a line"


def test_a_file_beyond_the_limit_of_files_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "1")
    fen, filler = format_fen(BOARDS[0]), f"{' ' * 1000}\n" * 1200
    (tmp_path / "a.epd").write_text(f"{fen}\n{filler}{format_fen(BOARDS[1])}\n")
    (tmp_path / "a.pgn").write_text(f"1. e4 *\n\n{filler}1. d4 d5 *\n")
    paths, options = by_suffix([tmp_path / "a.epd", tmp_path / "a.pgn"]), replace(OPTIONS, min_move=1)
    assert joined(read_files(paths, replace(options, full_weight_elo=None))).num_positions == 2 + 2
    assert len(hash_files(paths, lambda: None, print)) == 2


def test_what_label_writes_is_trained_on(tmp_path: Path, world: World) -> None:
    """Scores, results, sources and the split stay. Trained without an engine, so nothing is labelled again."""
    boards, rows = random_boards(90, seed=4), np.arange(90)
    columns = rows.astype(np.int16), (rows % 3 - 1).astype(np.int8), (rows % 5).astype(np.int8)
    whole = Labelled(boards, *columns)
    with writing_parts(tmp_path / "packed") as writers:
        writers["train"].add(whole.rows(0, 60))
        writers["validation"].add(whole.rows(60, 90))
    sources = SourceConfig(parts=(tmp_path / "packed",), quiet=False)
    files = FilePositions(sources, 0.5, world)
    found = files.take(100)
    assert found.num_positions == 90
    with pytest.raises(UserError, match="holds files of positions already"), writing_parts(tmp_path / "packed"):
        pass
    for labelled, expected in zip(found.split(), (whole.rows(0, 60), whole.rows(60, 90)), strict=True):
        assert all(np.array_equal(column, wanted) for column, wanted in zip(labelled, expected, strict=True))
    assert [text.split()[0] for text in files.hashes()] == ["packed"]
    damaged = next((tmp_path / "packed" / "train").iterdir())
    damaged.write_bytes(damaged.read_bytes()[:-1] + b"x")
    with pytest.raises(UserError, match="its sha256 is not the one in its name"):
        files.hashes()
    with pytest.raises(UserError, match="make them with ranks chess-value label"):
        FilePositions(SourceConfig(parts=(tmp_path,)), 0.5, world)


def test_positions_of_a_command_that_was_stopped_are_refused(tmp_path: Path, world: World) -> None:
    whole = Labelled(BOARDS[:3], np.arange(3, dtype=np.int16), np.zeros(3, np.int8), np.zeros(3, np.int8))
    stopped = writing_parts(tmp_path)
    writers = stopped.__enter__()
    writers["train"].add(whole)
    writers["train"].end()
    assert not stopped.__exit__(KeyboardInterrupt, KeyboardInterrupt(), None)
    with pytest.raises(UserError, match="the command that labelled them did not end"):
        FilePositions(SourceConfig(parts=(tmp_path,)), 0.5, world)
    with writing_parts(tmp_path) as writers:
        writers["validation"].add(whole)
        with pytest.raises(UserError, match="another command writes to it now"), writing_parts(tmp_path):
            pass
    assert FilePositions(SourceConfig(parts=(tmp_path,), quiet=False), 0.5, world).take(9).validates_N.all()
