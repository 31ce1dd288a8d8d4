"""Positions of files: which are used, their units, and what is wrong with a file."""

from __future__ import annotations

import gzip
import random
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ranks.bounded_file import VARIABLE
from ranks.chess.board import Board
from ranks.chess.engine.search.quiet import quiet_mask
from ranks.chess.fen import format_fen, parse_fen
from ranks.errors import UserError
from ranks.workloads.chess_value.labels.label import NO_RESULT, NO_SCORE, SOURCES
from ranks.workloads.chess_value.positions.check_files import check_files
from ranks.workloads.chess_value.positions.filters import SeenKeys, mirrored
from ranks.workloads.chess_value.positions.pgn_source import pgn_files
from ranks.workloads.chess_value.positions.read_files import SourcePaths, by_suffix, read_files
from ranks.workloads.chess_value.positions.sourced import SourcedPositions, SourceOptions, joined, sourced
from tests.chess_value.boards import random_boards

ALL = SourceOptions(min_move=1, full_weight_elo=None, quiet=False, validation_share=0.0)
GAME = """[White "A"]
[Black "B"]
[Result "{result}"]
{tags}
1. e4 e5 2. Nf3 Nc6 3. Bb5 a6 4. Ba4 Nf6 5. O-O {moves} {result}

"""
SPANISH = "Be7 6. Re1 b5 7. Bb3 d6 8. c3 O-O 9. h3 Nb8 10. d4 Nbd7 11. Nbd2 Bb7 12. Bc2 Re8"


def read(*paths: Path, options: SourceOptions = ALL, said: list[str] | None = None) -> SourcedPositions:
    return joined(read_files(by_suffix(paths), options, report=(said if said is not None else []).append))


def written(path: Path, *lines: str) -> Path:
    path.write_text("\n".join(lines) + "\n")
    return path


def test_a_game_gives_its_positions_from_a_move_on(tmp_path: Path) -> None:
    game = GAME.format(result="0-1", tags="", moves=SPANISH)
    found = read(written(tmp_path / "a.pgn", game), options=replace(ALL, min_move=10))
    fens = [format_fen(board_13) for board_13 in found.boards_N13]
    assert len(fens) == 6
    assert fens[0].endswith("w - - 1 10")
    assert fens[-1].endswith("b - - 4 12")
    assert found.result_N.tolist() == [-1, 1] * 3
    assert (found.cp_N == NO_SCORE).all()
    assert {SOURCES[source] for source in found.source_N} == {"pgn"}
    assert read(written(tmp_path / "b.pgn", game.replace("0-1", "*"))).result_N.tolist() == [NO_RESULT] * 24


def test_damaged_games_are_skipped_named_and_counted(tmp_path: Path) -> None:
    good = GAME.format(result="1-0", tags="", moves="d6")
    wrong = GAME.format(result="1-0", tags="", moves="Qxe5")
    (tmp_path / "deep").mkdir()
    written(tmp_path / "deep" / "b.pgn", *[wrong] * 6)
    written(tmp_path / "a.pgn", wrong, good)
    said: list[str] = []
    assert read(tmp_path, said=said).num_positions == 10
    assert f"{tmp_path / 'a.pgn'}, game 1 (line 1), move 5... Qxe5" in said[0]
    assert len(said) == 6
    assert said[-1] == "skipped 7 damaged games in all"


def test_ratings_weigh_games(tmp_path: Path) -> None:
    def positions(elo: str) -> int:
        tags = f'[WhiteElo "{elo}"]\n[BlackElo "{elo}"]\n'
        openings = [" ".join(SPANISH.split()[:count]) for count in range(10, 19, 3)]
        path = written(tmp_path / "a.pgn", *(GAME.format(result="1-0", tags=tags, moves=moves) for moves in openings))
        found = read(path, options=replace(ALL, full_weight_elo=2400.0))
        assert np.array_equal(found.boards_N13, read(path, options=replace(ALL, full_weight_elo=2400.0)).boards_N13)
        return found.num_positions

    assert positions("2600") > positions("2000") > positions("1000") >= 0
    assert positions("2600") == positions("2400")
    all_positions = read(tmp_path, options=replace(ALL, full_weight_elo=-500_000.0)).num_positions
    assert all_positions == positions("2600"), "no overflow"


def test_a_game_trains_or_validates_and_no_position_does_both(tmp_path: Path) -> None:
    ends = ["d6", "Be7", "b5", "Nxe4", "Bc5", "d5", "h6", "Bb4", "Qe7", "g6", "Rb8", "Rg8", "Ng8", "h5", "g5", "b6"]
    games = [GAME.format(result="1-0", tags="", moves=f"{end} 6. a3") for end in ends]
    options = replace(ALL, validation_share=0.4, min_move=6)
    there = read(written(tmp_path / "a.pgn", *games), options=options)
    back = read(written(tmp_path / "b.pgn", *games[::-1]), options=options)
    splits = [
        dict(zip(found.boards_N13[:, 12].tolist(), found.validates_N.tolist(), strict=True)) for found in (there, back)
    ]
    assert splits[0] == splits[1]
    assert 0 < there.validates_N.sum() < there.num_positions == len(ends)
    train, validation = there.split()
    assert not set(train.boards_N13[:, 12].tolist()) & set(validation.boards_N13[:, 12].tolist())


def test_csv_scores_are_for_white_and_mates_have_signs(tmp_path: Path) -> None:
    fens = [
        Board().fen(),
        "4k3/8/8/8/8/8/4P3/4K3 b - - 0 1",
        "4k3/8/8/8/8/4P3/8/4K3 b - - 0 1",
        "4k3/8/8/8/4P3/8/8/4K3 w - - 0 1",
    ]
    path = written(
        tmp_path / "a.csv", "FEN,Evaluation", f"{fens[0]},+56", f"{fens[1]},-10", f"{fens[2]},#+3", f"{fens[3]},#-2"
    )
    assert read(path).cp_N.tolist() == [56, 10, -10_000, -10_000]
    assert read(path, options=replace(ALL, csv_side="mover")).cp_N.tolist() == [56, -10, 10_000, -10_000]


def test_epd_scores_are_for_the_side_to_move_and_results_for_white(tmp_path: Path) -> None:
    path = written(
        tmp_path / "a.epd",
        '4k3/8/8/8/8/8/4P3/4K3 b - - ce 34; c9 "1-0"; id "x y";',
        "",
        "4k3/8/8/8/4P3/8/8/4K3 w - - 3 9",
    )
    found = read(path)
    assert (found.cp_N.tolist(), found.result_N.tolist()) == ([34, NO_SCORE], [-1, NO_RESULT])


def test_a_few_bad_lines_of_many_are_named_and_skipped(tmp_path: Path) -> None:
    good = [f"{format_fen(words)},{40 + at}" for at, words in enumerate(random_boards(400, seed=7))]
    path = written(tmp_path / "a.csv", *good[:250], "not a position,1", *good[250:300], f"{START},0.35", *good[300:])
    said: list[str] = []
    assert read(path, said=said).num_positions == read(written(tmp_path / "b.csv", *good)).num_positions
    assert said[0].startswith(f"skipped the position 'not a position' in {path}, line 251: ")
    assert said[1].startswith(f"skipped the score '0.35' in {path}, line 302: a decimal number")
    bad = ["not a position,1"] * 3
    with pytest.raises(UserError, match="line 253") as error:
        read(written(tmp_path / "c.csv", *good[:250], *bad, *good[250:]))
    assert "3 lines cannot be read so far" in error.value.found


@pytest.mark.parametrize("kind", ["csv", "epd"])
def test_what_is_wrong_with_a_whole_file_counts_as_no_bad_line(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    comma = "," if kind == "csv" else " ce "
    end = "\n" if kind == "csv" else ";\n"
    lines = [f"{format_fen(words)}{comma}{40 + at}{end}" for at, words in enumerate(random_boards(400, seed=7))]
    packed = gzip.compress("".join(random.Random(1).choices(lines, k=4000)).encode())
    cut, long = tmp_path / f"cut.{kind}.gz", tmp_path / f"long.{kind}"
    cut.write_bytes(packed[: len(packed) * 3 // 4])
    long.write_text("".join([*lines * 5, "x" * 3000, "\n", *lines]))
    monkeypatch.setenv(VARIABLE, "1")  # lines of 1 KiB
    for path, found in ((cut, "a damaged gzip file"), (long, "a line of more than")):
        said: list[str] = []
        with pytest.raises(UserError, match=found) as error:
            read(path, said=said)
        assert str(path) in error.value.found
        assert "cannot be read" not in error.value.found
        assert said == []


def test_a_row_that_is_no_csv_is_a_bad_line(tmp_path: Path) -> None:
    good = [f"{format_fen(words)},{40 + at}" for at, words in enumerate(random_boards(400, seed=7))]
    said: list[str] = []
    path = written(tmp_path / "a.csv", *good[:200], f"{'x' * 200_000},1", *good[200:])
    assert read(path, said=said).num_positions == read(written(tmp_path / "b.csv", *good)).num_positions
    assert said == [f"skipped the positions of {path}, line 201: field larger than field limit (131072)"]


def test_games_that_have_ended_give_nothing(tmp_path: Path) -> None:
    mated = "7k/6Q1/6K1/8/8/8/8/8 b - - 0 1"
    assert read(written(tmp_path / "a.csv", f"{mated},#0", f"{START},35")).cp_N.tolist() == [35]
    assert read(written(tmp_path / "a.epd", f"{mated} ce #-0;", f"{START} ce 35;")).cp_N.tolist() == [35]


@pytest.mark.parametrize(
    ("operations", "cp", "result"),
    [
        ("ce 32762;", 10_000, NO_RESULT),
        ("ce -32765;", -10_000, NO_RESULT),
        ('id "a; ce 500; b"; ce 7;', 7, NO_RESULT),
        ('c9 "*"; ce 7', 7, NO_RESULT),
        ("c9 1/2-1/2; ce 7", 7, 0),
    ],
)
def test_operations_of_epd(operations: str, cp: int, result: int, tmp_path: Path) -> None:
    found = read(written(tmp_path / "a.epd", f"4k3/8/8/8/4P3/8/8/4K3 w - - {operations}"))
    assert (found.cp_N.tolist(), found.result_N.tolist()) == ([cp], [result])


def test_games_of_variants_and_abandoned_games_teach_no_result(tmp_path: Path) -> None:
    def game(tags: str) -> Path:
        return written(tmp_path / "a.pgn", GAME.format(result="1-0", tags=tags, moves="d6 6. a3"))

    said: list[str] = []
    assert read(game('[Variant "King of the Hill"]\n'), said=said).num_positions == 0
    assert "the tag Variant: King of the Hill has other rules" in said[0]
    assert 1 in read(game('[Variant "From Position"]\n')).result_N
    for without in ("Abandoned", "Rules infraction", "alice won - game abandoned", "Game abandoned"):
        assert set(read(game(f'[Termination "{without}"]\n')).result_N.tolist()) == {NO_RESULT}, without
    for normal in ("Normal", "Time forfeit", "alice won by resignation", "abandoned_king won on time"):
        assert 1 in read(game(f'[Termination "{normal}"]\n')).result_N, normal


def test_a_folder_is_read_whole_or_refused(tmp_path: Path) -> None:
    content = GAME.format(result="1-0", tags="", moves="d6 6. a3")
    written(tmp_path / "ONE.PGN", content)
    assert read(tmp_path).num_positions > 0
    with pytest.raises(UserError, match=r"lichess\.zst: it is not packed as \.gz"):
        pgn_files([written(tmp_path / "lichess.zst", "")])
    written(tmp_path / "lichess.pgn.zst", "")
    with pytest.raises(UserError, match=r"lichess\.pgn\.zst: it is not packed as \.gz"):
        read(tmp_path)
    for paths in (SourcePaths(csv=[tmp_path / "a.csv.zst"]), SourcePaths(epd=[tmp_path / "a.epd.bz2"])):
        with pytest.raises(UserError, match=r"a\.(csv\.zst|epd\.bz2): it is not packed as \.gz"):
            check_files(paths)


@pytest.mark.parametrize(
    ("fen", "quiet"),
    [
        (Board().fen(), True),
        ("4k3/8/8/3q4/4P3/8/8/4K3 w - - 0 1", False),  # a pawn takes the queen
        ("4k3/8/2p5/3p4/4P3/8/8/4K3 w - - 0 1", True),  # exd5 cxd5 is even
        ("4k3/8/8/8/8/8/4q3/4K3 w - - 0 1", False),  # check
        ("4k3/P7/8/8/8/8/8/4K3 w - - 0 1", False),  # a promotion
        ("7k/5Q2/6K1/8/8/8/8/8 b - - 0 1", False),  # stalemate
        ("7k/6Q1/6K1/8/8/8/8/8 b - - 0 1", False),  # mate
    ],
)
def test_quiet_positions(fen: str, quiet: bool) -> None:
    assert quiet_mask(parse_fen(fen)).tolist() == [quiet]


def test_mirrored_positions_have_mirrored_moves() -> None:
    boards = random_boards(400, seed=4)
    count = len(boards)
    found = sourced(boards, [None] * count, [1] * count, "own", [False] * count)
    free = boards[boards[:, 9] == 0]
    reflection = mirrored(found)
    assert 0 < len(free) == reflection.num_positions < count
    for before_13, after_13 in zip(free[:30], reflection.boards_N13[:30], strict=True):
        before, after = (Board(format_fen(words)) for words in (before_13, after_13))
        assert int(after.words[12]) == int(after_13[12])
        assert sorted(before.legal_moves()) == sorted((move ^ 7 ^ 7 << 6) for move in after.legal_moves())
    assert np.array_equal(mirrored(reflection).boards_N13, free)


def test_each_key_is_new_once() -> None:
    rng, seen, earlier = np.random.default_rng(0), SeenKeys(), set[int]()
    for _ in range(30):
        keys = rng.integers(0, 400, 50).astype(np.uint64)
        new = keys[seen.new(keys)].tolist()
        assert new == list(dict.fromkeys(key for key in keys.tolist() if key not in earlier))
        earlier |= set(new)
    assert len(seen) == len(earlier)


START = Board().fen()


@pytest.mark.parametrize(
    ("name", "content", "asked", "found"),
    [
        ("a.csv", f"{START},12\n{START},0.35\n", "'0.35' in {path}, line 2", "a decimal number"),
        ("a.csv", f"{START},55%\n", "'55%' in {path}, line 1", "not a score"),
        ("a.csv", f"FEN,Evaluation\n{START},32000\n", "'32000' in {path}, line 2", "a code for a mate"),
        ("a.csv", "".join(f"{START},{cp % 9}\n" for cp in range(60)), "the scores of {path}", "all from -8 to 8"),
        ("a.csv", f"{START}\n", "{path}, line 1", "no comma and score"),
        ("a.csv", f"{START},1\n8/8/8 w - - 0 1,2\n", "in {path}, line 2", "the board has 3 ranks"),
        ("a.epd", f"{START}\n{START} ce +0.4;\n4k3/8 w\n", "in {path}, line 2", "a decimal number"),
        ("a.epd", f"{START} [0.5] 35\n", "{path}, line 1", "'[0.5]' is no operation of EPD"),
        ("a.epd", f'{START} c9 "White wins";\n', "{path}, line 1", "the result c9 is 'White wins'"),
        ("a.epd", f"{START}\n\n4k3/8 w\n", "in {path}, line 3", "the board has 2 ranks"),
        ("a.epd", "4k3/8/8/8/8/8/8/4K2P w - -\n", "in {path}, line 1", "a pawn on the first or last rank"),
        ("a.txt", "", "the positions of {path}", "'.txt' is no format of positions"),
    ],
)
def test_bad_files_are_refused_with_the_line(name: str, content: str, asked: str, found: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text(content)
    with pytest.raises(UserError) as error:
        read(path)
    assert asked.format(path=path) in error.value.asked
    assert found in error.value.found


def test_a_folder_without_games_and_a_missing_file_are_refused(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "missing.csv", tmp_path / "missing.pgn"):
        with pytest.raises(UserError, match=str(path)):
            read(path)


def test_a_packed_file_of_games_that_is_cut_off_is_refused_after_its_games(tmp_path: Path) -> None:
    packed = gzip.compress("".join(GAME.format(result="1-0", tags="", moves=SPANISH) for _ in range(300)).encode())
    path = tmp_path / "games.pgn.gz"
    path.write_bytes(packed[: len(packed) // 2])
    with pytest.raises(UserError, match="a damaged gzip file"):
        read(path)


def test_a_rating_of_many_digits_is_none(tmp_path: Path) -> None:
    path = tmp_path / "a.pgn"
    tags = '[WhiteElo "02400123"]\n[BlackElo "2400"]'
    path.write_text(GAME.format(result="1-0", tags=tags, moves=SPANISH))
    assert read(path, options=replace(ALL, full_weight_elo=2000.0, unrated_elo=2000.0)).num_positions > 10


def test_a_stray_quote_takes_no_other_lines(tmp_path: Path) -> None:
    good = [f"{format_fen(words)},{40 + at}" for at, words in enumerate(random_boards(400, seed=7))]
    said: list[str] = []
    path = written(tmp_path / "a.csv", *good[:200], f'"{good[200]}', *good[201:])
    others = written(tmp_path / "b.csv", *good[:200], *good[201:])
    assert read(path, said=said).num_positions == read(others).num_positions
    assert len(said) == 1
    assert "line 201" in said[0]
