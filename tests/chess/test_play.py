"""`ranks chess play` with typed lines from a script."""

from __future__ import annotations

import builtins
import io
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ranks.chess.board import Board
from ranks.chess.commands.play import play
from ranks.chess.commands.terminal_game import explain, opinion, read_move, terminal_style
from ranks.chess.diagram import draw
from ranks.chess.pgn import read_games
from ranks.chess.players.player import Choice
from ranks.errors import UserError
from tests.chess.faulty_players import Forfeits

Typed = Callable[[str], str]


@pytest.fixture
def typed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """Play with these lines typed, and return what was printed."""

    def run(lines: list[str], **flags: object) -> str:
        left = iter(lines)

        def ask(prompt: str) -> str:
            print(prompt, end="")
            try:
                return next(left)
            except StopIteration:
                raise EOFError from None

        monkeypatch.setattr(builtins, "input", ask)
        play(**flags)  # type: ignore[arg-type]
        return capsys.readouterr().out

    return run


def test_a_game_to_the_end(typed: Callable[..., str], tmp_path: Path) -> None:
    pgn = tmp_path / "games.pgn"
    fen = "r1bqkb1r/pppp1ppp/2n2n2/4p2Q/2B1P3/8/PPPP1PPP/RNB1K1NR w KQkq - 4 4"
    out = typed(["Qxf7"], player="random", fen=fen, pgnout=pgn)
    assert "Checkmate. White wins, 1-0" in out
    (game,) = read_games(pgn)
    assert (game.result, game.fen, len(game.moves)) == ("1-0", fen, 1)
    assert game.headers["White"] == "you"
    assert game.headers["Black"] == "random"


def test_moves_commands_and_errors(typed: Callable[..., str], tmp_path: Path) -> None:
    pgn = tmp_path / "games.pgn"
    lines = ["undo", "e5", "e2e4", "fen", "Nf3", "undo", "fen", "hint", "", "help", "nonsense", "resign"]
    out = typed(lines, player="greedy", pgnout=pgn, seed=3)
    assert "You have no move to take back." in out
    assert "no pawn can go to e5" in out
    first, second = re.findall(r"^.*your move: (.*/.*)$", out, re.MULTILINE)
    assert first == second  # taken back
    assert " looks good (" in out
    assert "an empty line shows the board" in out
    assert "'nonsense'" in out
    assert "You resign: 0-1" in out
    (game,) = read_games(pgn)
    assert game.result == "0-1"
    assert len(game.moves) == 2


def test_a_game_with_black_that_is_quit(typed: Callable[..., str], tmp_path: Path) -> None:
    pgn = tmp_path / "games.pgn"
    out = typed(["quit"], player="minimax:2", colour="black", pgnout=pgn)
    assert re.search(r"minimax:2 plays 1\. \S+ \([+-]\d\.\d\d, depth 2\)", out)
    assert "1... your move:" in out
    assert out.splitlines()[1].split() == list("hgfedcba")
    (game,) = read_games(pgn)
    assert (game.result, len(game.moves)) == ("*", 1)
    assert "your move" in typed([], player="random")  # the end of the input


def test_a_player_that_forfeits(typed: Callable[..., str]) -> None:
    out = typed(["e4"], player="tests.chess.faulty_players.forfeits")
    assert "forfeits died with exit code 3: you win." in out


def test_an_engine_that_dies_before_the_first_move() -> None:
    closed = Forfeits.closed
    with pytest.raises(UserError, match=r"forfeits:start\n.*the engine died with exit code 3"):
        play(player="tests.chess.faulty_players.forfeits:start")
    assert Forfeits.closed == closed + 1


def test_a_file_that_cannot_be_written_is_refused_before_the_first_move(
    typed: Callable[..., str], tmp_path: Path
) -> None:
    for path, found in [(tmp_path / "missing" / "games.pgn", "No such file"), (tmp_path, "directory")]:
        with pytest.raises(UserError, match="--pgnout") as error:
            typed(["e4", "quit"], player="random", pgnout=path)
        assert found in error.value.found
    (tmp_path / "games.pgn").write_text("kept\n")
    typed(["e4", "quit"], player="random", pgnout=tmp_path / "games.pgn")
    assert (tmp_path / "games.pgn").read_text().startswith("kept\n[Event ")


def test_every_end_is_explained() -> None:
    for fen, words in [
        ("R5k1/5ppp/8/8/8/8/8/6K1 b - - 0 1", "Checkmate. White wins, 1-0"),
        ("7k/5Q2/6K1/8/8/8/8/8 b - - 0 1", "Stalemate: the side to move has no legal move"),
        ("8/8/4k3/8/8/4K3/8/8 w - - 0 1", "Draw: neither side has enough to mate. 1/2-1/2"),
        ("4k3/8/8/8/8/8/R7/4K3 w - - 100 90", "Draw: fifty moves"),
    ]:
        outcome = Board(fen).outcome()
        assert outcome is not None
        assert words in explain(outcome)
    assert opinion(Choice(1)) == ""
    assert opinion(Choice(1, mate_in=3)) == " (mate in 3)"
    assert opinion(Choice(1, mate_in=-2)) == " (mated in 2)"


def test_bad_input() -> None:
    with pytest.raises(UserError, match="no time to think"):
        play(movetime=0)
    with pytest.raises(UserError, match="did you mean greedy"):
        play(player="greeedy")
    with pytest.raises(UserError, match="fields"):
        play(fen="nonsense")
    with pytest.raises(ValueError, match="e9"):
        read_move(Board(), "e9")
    assert read_move(Board(), "G1F3") == read_move(Board(), "Nf3")


def test_diagrams() -> None:
    board = Board()
    board.push(board.parse_uci("e2e4"))
    text = draw(board.words, style="letters", last_move=board.moves[-1])
    rows = text.splitlines()
    assert rows[0].split() == rows[-1].split() == list("abcdefgh")
    assert [row[1] for row in rows[1:-1]] == [row[-1] for row in rows[1:-1]] == list("87654321")
    assert rows[1].split() == ["8", *"rnbqkbnr", "8"]
    assert "[P]" in rows[5]
    assert "[ ]" in rows[7]
    turned = draw(board.words, style="letters", black_below=True).splitlines()
    assert turned[1].split() == ["1", *"RNBKQBNR", "1"]
    unicode = draw(board.words, style="unicode")
    assert unicode.count("♙") == 8
    assert unicode.count("♟") == 8
    assert unicode.count("♔") == 1
    colours = draw(board.words, style="colours", last_move=board.moves[-1])
    plain = re.sub(r"\x1b\[[0-9;]*m", "", colours)
    assert plain.splitlines()[1].split() == ["8", *"♜♞♝♛♚♝♞♜", "8"]
    assert len(re.findall(r"48;5;(?:186|143);", colours)) == 2
    assert all(line.endswith("\x1b[0m 8") for line in colours.splitlines()[1:2])


def test_the_style_follows_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.TextIOWrapper):
        def isatty(self) -> bool:
            return True

    def styles() -> Iterator[str]:
        for encoding in ("utf-8", "ascii"):
            monkeypatch.setattr(sys, "stdout", Terminal(io.BytesIO(), encoding=encoding))
            yield terminal_style()

    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    assert list(styles()) == ["colours", "letters"]
    monkeypatch.setenv("NO_COLOR", "1")
    assert list(styles()) == ["unicode", "letters"]
