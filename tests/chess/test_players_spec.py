"""Words for players, and what is said of those that mean none."""

from __future__ import annotations

import pytest

from ranks.chess.players.spec import PLAYERS, PlayerSpec, make_player, nearest
from ranks.errors import UserError


@pytest.mark.parametrize(
    ("word", "found", "do"),
    [
        ("alphabet:3", "no player 'alphabet'", "did you mean alphabeta?"),
        ("Greedy", "no player 'Greedy'", "did you mean greedy?"),
        ("", "no player ''", "random, greedy, minimax:DEPTH"),
        ("stockfish", "no player 'stockfish'", "uci:COMMAND"),
        ("random:3", "'3' behind the name", "write random"),
        ("greedy?x=1", "no options", "write greedy"),
        ("minimax", "a number is missing", "minimax:DEPTH"),
        ("minimax:two", "'two' is not a number", "minimax:2"),
        ("alphabeta:0", "'0' is not a number from 1 to 64", "alphabeta:DEPTH"),
        ("alphabeta:3?evaluate=position", "no option 'evaluate'", "did you mean evaluation?"),
        ("alphabeta:3?evaluation=postion", "no evaluation 'postion'", "did you mean position?"),
        ("alphabeta:3?evaluation", "'evaluation' is not an option with a value", "Option=Value"),
        ("mcts:1000000", "not a number from 1 to 100000", "mcts:800"),
        ("mcts:10?x=2", "no options", "write mcts:10"),
    ],
)
def test_words_that_mean_no_player(word: str, found: str, do: str) -> None:
    with pytest.raises(UserError) as error:
        make_player(word)
    assert f"'{word}'" in error.value.asked
    assert found in error.value.found
    assert do in error.value.do


def test_words_are_taken_apart() -> None:
    word = PlayerSpec.parse("uci:engines/a b/engine --fast?Move%20Overhead=50&Hash=16")
    assert (word.name, word.argument) == ("uci", "engines/a b/engine --fast")
    assert word.options == {"Move Overhead": "50", "Hash": "16"}
    assert set(PLAYERS) == {"random", "greedy", "minimax", "alphabeta", "mcts", "uci"}
    assert nearest("hsh", ["Hash", "Threads"], "x") == "did you mean Hash? (x)"
    assert nearest("qqqq", ["Hash", "Threads"], "x") == "x"
