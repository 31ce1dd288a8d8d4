"""PGN in files and streams: compressed, truncated, missing, read game by game."""

from __future__ import annotations

import gzip
import io
import random
from pathlib import Path

import pytest

from ranks.chess.pgn import SkippedGame, read_games
from ranks.chess.pgn.raw_game import MOST_WORDS, raw_games
from ranks.errors import UserError
from tests.chess.pgn.test_pgn import GOOD, only, random_game, written


def test_files_plain_and_compressed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = GOOD + "1. e5 *\n\n" + GOOD.replace("good", "Réti")
    plain, old, packed = tmp_path / "utf.pgn", tmp_path / "latin.pgn", tmp_path / "packed.pgn.gz"
    plain.write_bytes(b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode())
    old.write_bytes(text.encode("latin-1"))
    packed.write_bytes(gzip.compress(text.encode()))
    for path in (plain, old, packed):
        games = list(read_games(path))
        assert [game.headers["Event"] for game in games] == ["good", "Réti"]
        assert capsys.readouterr().err == (
            f"ranks: skipped {path}, game 2 (line 5), move 1. e5: 'e5' is not legal: no pawn can go to e5\n"
        )
    assert list(read_games(str(plain))) == list(read_games(packed))


def test_a_truncated_compressed_file(tmp_path: Path) -> None:
    path = tmp_path / "cut.pgn.gz"
    rng = random.Random(8)
    whole = gzip.compress(written(*(random_game(rng, number) for number in range(30))).encode())
    path.write_bytes(whole[: len(whole) // 2])
    skipped: list[SkippedGame] = []
    games = list(read_games(path, skipped.append))
    assert 0 < len(games) < 30
    assert "the compressed file is damaged" in skipped[-1].reason


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    for path in (tmp_path / "none.pgn", tmp_path / "none.pgn.gz", tmp_path):
        with pytest.raises(UserError, match=str(path)):
            next(read_games(path))


def test_a_stream_is_read_game_by_game() -> None:
    """The reader reads no line beyond the end of a game."""
    lines = [*GOOD.splitlines(keepends=True), *GOOD.splitlines(keepends=True)]

    class Once(io.StringIO):
        def __iter__(self) -> Once:
            return self

        def __next__(self) -> str:
            if not lines:
                raise StopIteration
            return lines.pop(0)

    games = read_games(Once())
    assert next(games) == only(GOOD)
    assert len(lines) == 5
    assert next(games) == only(GOOD)


def test_text_that_is_no_pgn_is_not_kept(tmp_path: Path) -> None:
    path = tmp_path / "fens.pgn"
    path.write_text("rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1\n" * 10_000)
    with path.open() as lines:
        (game,) = raw_games(lines)
    assert len(game.words) == MOST_WORDS
    skipped: list[SkippedGame] = []
    assert not list(read_games(path, skipped.append))
    assert len(skipped) == 1
