"""The lines of UCI, read and written."""

from __future__ import annotations

import os
import threading
from dataclasses import replace

import pytest

from ranks.chess.board import Board, move_to_uci
from ranks.chess.players.player import Clock, Limits
from ranks.chess.uci.engine import read_lines
from ranks.chess.uci.go import GoCommand, go_command
from ranks.chess.uci.lines import Option, format_info, format_progress, parse_info, parse_option


@pytest.mark.parametrize(
    ("limits", "white", "line"),
    [
        (Limits(), True, "go infinite"),
        (Limits(nodes=100, depth=5), True, "go nodes 100 depth 5"),
        (Limits(depth=5, mate=3), True, "go depth 5 mate 3"),
        (Limits(movetime_s=0.25), True, "go movetime 250"),
        (Limits(clock=Clock(1.5, 2.0, 0.1, 0.2)), True, "go wtime 1500 winc 100 btime 2000 binc 200"),
        (Limits(clock=Clock(1.5, 2.0, 0.1, 0.2)), False, "go wtime 2000 winc 200 btime 1500 binc 100"),
        (Limits(clock=Clock(-1.0, 2.0, moves_to_go=3)), True, "go wtime 1 winc 0 btime 2000 binc 0 movestogo 3"),
    ],
)
def test_limits_as_a_go_line(limits: Limits, white: bool, line: str) -> None:
    assert go_command(limits, white) == line


def test_lines_are_read_and_written() -> None:
    board = Board()
    info = parse_info("depth 5 seldepth 9 multipv 2 score mate -3 nodes 77 nps 1000 time 250 pv d2d4 d7d5 xyz", board)
    assert info is not None
    assert (info.depth, info.score_cp, info.mate_in, info.nodes, info.elapsed_s) == (5, None, -3, 77, 0.25)
    assert (info.multipv, [move_to_uci(move) for move in info.pv]) == (2, ["d2d4", "d7d5"])
    text = format_info(info, ["d2d4", "d7d5"], with_multipv=True)
    assert text == "info depth 5 multipv 2 score mate -3 nodes 77 nps 308 time 250 pv d2d4 d7d5"
    assert parse_info(text.removeprefix("info "), board) == info
    assert format_progress(7, 2.5) == "info nodes 7 nps 3 time 2500"
    bound = format_info(replace(info, mate_in=None, score_cp=99, is_lower_bound=True), [], with_multipv=False)
    assert bound == "info depth 5 score cp 99 lowerbound nodes 77 nps 308 time 250"
    assert parse_info(bound.removeprefix("info "), board) is None, "no exact score"
    for nothing in [
        "",
        "depth 3",
        "nodes 7 nps 3 time 2500",
        "string score cp 3",
        "score cp",
        "score cp many",
        "depth 1 score cp 3 upperbound",
    ]:
        assert parse_info(nothing, board) is None
    option = parse_option("option name Clear Hash type button")
    assert option == Option("Clear Hash", "button")
    assert option is not None
    assert option.line() == "option name Clear Hash type button"
    combo = parse_option("option name A B type combo default x y var x y var z")
    assert combo == Option("A B", "combo", "x y", choices=("x y", "z"))
    assert parse_option("option name type spin") is None
    assert parse_option("info depth 1") is None


@pytest.mark.parametrize("word", ["depth", "nodes", "movetime", "wtime", "mate", "movestogo"])
def test_go_ignores_5000_digits(word: str) -> None:
    go = GoCommand.parse([word, "9" * 5000, "depth", "2"])
    assert go.numbers == {"depth": 2}
    assert GoCommand.parse([word, "--5"]).numbers == {}
    largest = GoCommand.parse([word, "9" * 15, "winc", "-" + "9" * 15]).limits(True, 0.0)
    assert largest.depth is None or largest.depth < 1 << 63


def test_a_line_without_end_is_cut() -> None:
    reader, writer = os.pipe()

    def write() -> None:
        with open(writer, "wb") as pipe:
            pipe.write(b"position startpos moves" + b" e2e4" * 400_000 + b"\nquit\n" + b"x" * 2_000_000)

    thread = threading.Thread(target=write)
    thread.start()
    lines = list(read_lines(reader))
    thread.join()
    os.close(reader)
    assert [len(line) for line in lines] == [1 << 20, 4, 1 << 20]
    assert lines[1] == "quit"
