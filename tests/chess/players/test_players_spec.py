"""Player specs: parsing, errors, and players of workloads and of modules on Python's path."""

from __future__ import annotations

import pytest

from ranks.chess.board import Board
from ranks.chess.commands.players import PLAYERS, make_player, parse_player
from ranks.chess.players.player import Limits
from ranks.chess.players.spec import name_and_number, nearest
from ranks.cli.main import main
from ranks.errors import UserError
from ranks.workloads import WORKLOADS


@pytest.mark.parametrize(
    ("spec", "found", "do"),
    [
        ("alphabet:3", "no player 'alphabet'", "did you mean alphabeta?"),
        ("Greedy", "no player 'Greedy'", "did you mean greedy?"),
        ("", "no player ''", "random, greedy, minimax:DEPTH"),
        ("stockfish", "no player 'stockfish'", "uci:COMMAND"),
        ("random:3", "takes no argument, so no '3'", "write random"),
        ("greedy?x=1", "no options", "write greedy"),
        ("minimax", "a number is missing", "minimax:DEPTH"),
        ("minimax:two", "'two' is not a number", "minimax:2"),
        ("alphabeta:0", "'0' is not a number from 1 to 64", "alphabeta:DEPTH"),
        ("alphabeta:3?evaluate=position", "no option 'evaluate'", "did you mean evaluation?"),
        ("alphabeta:3?evaluation=postion", "no evaluation 'postion'", "did you mean position?"),
        ("alphabeta:3?evaluation", "'evaluation' is not an option with a value", "Option=Value"),
        ("mcts:1000000", "not a number from 1 to 100000", "mcts:800"),
        ("mcts:10?x=2", "no options", "write mcts:10"),
        ("no_such_package.player", "no module 'no_such_package'", "set PYTHONPATH to the folder of no_such_package.py"),
        ("tests.chess.no_such_file.player:3", "no module 'tests.chess.no_such_file'", "PYTHONPATH"),
        ("tests.chess.faulty_players.no", "has no function 'no'", "define no(spec, argument, options)"),
    ],
)
def test_invalid_specs_are_refused(spec: str, found: str, do: str) -> None:
    with pytest.raises(UserError) as error:
        make_player(spec)
    assert f"'{spec}'" in error.value.asked
    assert found in error.value.found
    assert do in error.value.do


def test_the_number_is_behind_the_last_at_that_is_in_no_folder() -> None:
    for argument, parts in (
        ("runs/a@400", ("runs/a", 400)),
        ("@400", ("", 400)),
        ("/home/me@host/net", ("/home/me@host/net", None)),
        ("/home/me@host/net@5", ("/home/me@host/net", 5)),
        (None, ("", None)),
    ):
        assert name_and_number("x", argument, 1, 1000, "run:RUN") == parts
    with pytest.raises(UserError, match="'two' is not a number"):
        name_and_number("x", "run@two", 1, 1000, "run:RUN")


def test_specs_are_parsed() -> None:
    spec = parse_player("uci:engines/a b/engine --fast?Move%20Overhead=50&Hash=16")
    assert (spec.name, spec.argument) == ("uci", "engines/a b/engine --fast")
    assert spec.options == {"Move Overhead": "50", "Hash": "16"}
    assert set(PLAYERS) == {"random", "greedy", "minimax", "alphabeta", "engine", "mcts", "uci"}
    assert nearest("hsh", ["Hash", "Threads"], "x") == "did you mean Hash? (x)"
    assert nearest("qqqq", ["Hash", "Threads"], "x") == "x"


def test_a_name_with_a_dot_is_a_function_in_a_module_on_the_path() -> None:
    player = make_player("tests.chess.faulty_players.random_with_argument:some/file.pt")
    assert player.name == "tests.chess.faulty_players.random_with_argument:some/file.pt with some/file.pt"
    board = Board()
    assert player.choose(board, Limits()).move in board.legal_moves()
    with pytest.raises(UserError, match="no options"):
        make_player("tests.chess.faulty_players.random_with_argument?x=1")


def test_modules_add_players_but_do_not_replace_the_built_in_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UserError, match="there is no player 'second-random'"):
        make_player("second-random")
    monkeypatch.setattr("ranks.chess.commands.players.MODULES", ["json", "tests.chess.faulty_players"])
    assert make_player("second-random:7").name == "second-random:7 with 7"
    with pytest.raises(UserError, match="did you mean second-random"):
        make_player("secondrandom")
    monkeypatch.setattr("ranks.chess.commands.players.MODULES", ["no_such_module"])
    assert make_player("random").name == "random"  # a built-in name imports none of them


def test_the_command_line_adds_the_players_of_workloads(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(WORKLOADS, "some-workload", "tests.chess.faulty_players")
    monkeypatch.setattr("ranks.chess.commands.players.MODULES", [])
    command = "chess match --player random --player second-random:7 --rounds 1 --max-plies 6"
    assert main(command.split()) == 0
    assert "Score of random vs second-random:7: 0 - 0 - 2" in capsys.readouterr().out
