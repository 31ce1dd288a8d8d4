"""PGN: what is written is read again equal, what others write is read, and what is damaged is named
and skipped."""

from __future__ import annotations

import io
import random

import chess
import chess.pgn
import pytest

from ranks.chess.board import Board
from ranks.chess.fen import START_FEN
from ranks.chess.pgn import PgnGame, SkippedGame, read_games, write_game
from ranks.chess.pgn.game import TERMINATIONS
from ranks.chess.san import format_line, parse_line
from tests.chess.oracle import as_ours
from tests.chess.suites import perft_suites


def read(text: str) -> tuple[list[PgnGame], list[SkippedGame]]:
    """All games of a text, and what was skipped."""
    skipped: list[SkippedGame] = []
    return list(read_games(io.StringIO(text), skipped.append)), skipped


def only(text: str) -> PgnGame:
    """The only game of a text without errors."""
    (game,), skipped = read(text)
    assert skipped == []
    return game


def written(*games: PgnGame) -> str:
    stream = io.StringIO()
    for game in games:
        write_game(stream, game)
    return stream.getvalue()


def line(text: str, fen: str | None = None) -> tuple[int, ...]:
    """Moves in algebraic notation, from the start."""
    moves = parse_line(Board(fen).rows, text.split())
    assert len(moves) == len(text.split())
    return tuple(moves)


def random_game(rng: random.Random, number: int) -> PgnGame:
    """A game of random moves, from a random position, with comments and tags that are hard to
    write."""
    fen = rng.choice([None, *(fen for fen, _ in perft_suites())])
    board, comments = Board(fen), dict[int, str]()
    for _ in range(rng.randrange(120)):
        if rng.random() < 0.3:
            words = ["+0.35/12", "0.52s", "%", "%eval", "[Event", '"quoted"', "{", "(", ";", "é", "1-0", "x" * 90]
            comments[board.ply] = " ".join(rng.choices(words, k=rng.randint(1, 12)))
        if not (moves := board.legal_moves()):
            break
        board.push(rng.choice(moves))
    headers = {"White": 'A "B" \\ C', "Round": str(number), "TimeControl": "40/60+0.5", "Opening": "Zukertort, Réti"}
    kept = {tag: headers[tag] for tag in rng.sample(list(headers), rng.randrange(5))}
    return PgnGame(kept, fen, tuple(board.moves), comments, rng.choice(TERMINATIONS))


def test_what_is_written_is_read_again_equal() -> None:
    rng = random.Random(4)
    games = [random_game(rng, number) for number in range(250)]
    text = written(*games)
    again, skipped = read(text)
    assert skipped == []
    assert again == games
    assert written(*again) == text
    for row in text.splitlines():
        while len(row) > 80 and row.split()[-1][0] in "%[":  # where a line may not be broken
            row = row.rpartition(" ")[0]
        assert len(row) <= 80 or " " not in row or row.startswith("[")


def test_python_chess_reads_what_is_written() -> None:
    rng = random.Random(5)
    games = [random_game(rng, number) for number in range(40)]
    stream = io.StringIO(written(*games))
    for game in games:
        rival = chess.pgn.read_game(stream)
        assert rival is not None
        assert rival.errors == []
        assert tuple(as_ours(move) for move in rival.mainline_moves()) == game.moves
        assert rival.headers["Result"] == game.result
        white = game.headers.get("White", "?").replace("\\", "\\\\").replace('"', '\\"')
        assert rival.headers["White"] == white, "python-chess leaves the backslashes in"
        assert rival.headers.get("FEN") == game.fen
        assert rival.end().board().fen() == game.board().fen()
        comments = {ply: node.comment for ply, node in enumerate([rival, *rival.mainline()]) if node.comment}
        assert {ply: " ".join(text.split()) for ply, text in comments.items()} == game.comments
    assert chess.pgn.read_game(stream) is None


def test_what_python_chess_writes_is_read() -> None:
    rng = random.Random(6)
    for _ in range(30):
        rival = chess.pgn.Game()
        node: chess.pgn.GameNode = rival
        while len(moves := list(node.board().legal_moves)) and node.ply() < 60:
            for move in rng.sample(moves, min(len(moves), 2 if rng.random() < 0.1 else 1)):
                node.add_variation(move, comment="so so" if rng.random() < 0.2 else "", nags=rng.choices([1, 6, 14]))
            node = node.variations[0]
        game = only(str(rival))
        assert game.moves == tuple(as_ours(move) for move in rival.mainline_moves())
        assert set(game.comments.values()) <= {"so so"}


EXAMPLE = PgnGame(
    {"Event": "Test", "White": "alphabeta:3", "Black": 'The "Turk"', "Round": "1.2", "TimeControl": "10+0.1"},
    None,
    line("e4 e5 Qh5 Ke7 Qxe5#"),
    {1: "+0.35/12 0.52s", 4: "book"},
    "1-0",
)


def test_the_text_of_a_game() -> None:
    assert written(EXAMPLE) == (
        '[Event "Test"]\n[Site "?"]\n[Date "????.??.??"]\n[Round "1.2"]\n[White "alphabeta:3"]\n'
        '[Black "The \\"Turk\\""]\n[Result "1-0"]\n[TimeControl "10+0.1"]\n\n'
        "1. e4 {+0.35/12 0.52s} 1... e5 2. Qh5 Ke7 {book} 3. Qxe5# 1-0\n\n"
    )


def test_a_game_from_a_position_with_black_to_move() -> None:
    fen = "4k3/8/8/8/8/8/4p3/4K3 b - - 3 57"
    game = PgnGame({}, fen, line("Kd7 Kxe2 Kd6", fen), {}, "1/2-1/2")
    text = written(game)
    assert f'[SetUp "1"]\n[FEN "{fen}"]\n' in text
    assert "57... Kd7 58. Kxe2 Kd6 1/2-1/2" in text
    assert only(text) == game
    assert game.board().fen() == "8/8/3k4/8/8/8/4K3/8 w - - 1 59"


E4 = line("e4 e5 Nf3")
READ = {
    "no tags": "1. e4 e5 2. Nf3 *",
    "numbers glued": "1.e4 e5 2.Nf3 *",
    "numbers without dots": "1 e4 e5 2 Nf3 *",
    "numbers glued without dots": "1e4 e5 2Nf3 *",
    "numbers of black": "1. e4 1... e5 2. Nf3 *",
    "numbers of black glued": "1.e4 1...e5 2.Nf3 *",
    "numbers of black in two dots": "1. e4 1.. e5 2. Nf3 *",
    "an ellipsis": "1. e4 1\u2026 e5 2. Nf3 *",
    "dots apart": "1 . e4 1 ... e5 2 . Nf3 *",
    "wrong numbers": "7. e4 e5 7. Nf3 *",
    "no numbers": "e4 e5 Nf3 *",
    "a line each": "1.\ne4\ne5\n2.\nNf3\n*\n",
    "blank lines": "\n\n1. e4\n\n\ne5 2. Nf3\n\n*\n\n",
    "tabs": "\t1.\te4\te5\t2.\tNf3\t*",
    "CRLF": "1. e4 e5\r\n2. Nf3 *\r\n",
    "byte order mark": "\ufeff1. e4 e5 2. Nf3 *",
    "glyphs": "1. e4 $1 e5 $14$2 2. Nf3$10 *",
    "annotation": "1. e4! e5?! 2. Nf3 !? *",
    "variation": "1. e4 (1. d4 d5) 1... e5 2. Nf3 *",
    "nested variations": "1. e4 (1. d4 d5 (1... Nf6 {x) (} 2. c4 (2. Bg5)) 2. c4) 1... e5 2. Nf3 *",
    "variation with a result": "1. e4 (1. d4 1-0) 1... e5 2. Nf3 *",
    "variation with nonsense": "1. e4 (1. Qh8 wild) 1... e5 2. Nf3 *",
    "escape line": "% 1. d4 {\n1. e4 e5\n%\n2. Nf3 *",
    "no blanks": "1.e4{}e5(1...c5)2.Nf3*",
    "too many closing braces": "1. e4 } e5 2. Nf3 *",
}


@pytest.mark.parametrize("case", READ)
def test_forms_of_movetext(case: str) -> None:
    assert only(READ[case]) == PgnGame({}, None, E4, {}, "*")


def test_comments_keep_their_places() -> None:
    text = """{first} 1. e4 {a
 long   one; with (brackets) and 1-0} {and another} 1... e5 ; to the end of the line } {
    (1... c5 {not this}) 2. Nf3 {} {last} *"""
    assert only(text).comments == {
        0: "first",
        1: "a long one; with (brackets) and 1-0 and another",
        2: "to the end of the line ) {",
        3: "last",
    }


def test_forms_of_tags() -> None:
    text = """[Event "a"] [Site "b"]
  [ White  "c \\"d\\" \\\\" ]
[Black "e "f" g"]
[Date "????.??.??"]
[WhiteElo ""]
[Result "0-1"]

1. e4 1-0
"""
    game = only(text)
    assert game.headers == {"Event": "a", "Site": "b", "White": 'c "d" \\', "Black": 'e "f" g', "WhiteElo": ""}
    assert game.result == "1-0"


def test_several_games_in_one_text() -> None:
    text = '1. e4 1-0 1. d4 0-1\n*\n[Event "x"]\n\n1/2-1/2\n[Event "y"]\n1. c4 *{bye}\n;end\n{x}\n[Event "z"]\n\n*'
    games, skipped = read(text)
    assert skipped == []
    assert [game.result for game in games] == ["1-0", "0-1", "*", "1/2-1/2", "*", "*"]
    assert [len(game.moves) for game in games] == [1, 1, 0, 0, 1, 0]
    assert [game.headers.get("Event") for game in games] == [None, None, None, "x", "y", "z"]
    assert all(game.comments == {} for game in games)


def test_a_tag_inside_a_comment_begins_no_game() -> None:
    assert only('1. e4 {\n[Event "no"]\n} e5 2. Nf3 *').comments == {1: '[Event "no"]'}


GOOD = '[Event "good"]\n\n1. e4 e5 2. Nf3 *\n\n'
WITH_ERRORS = {
    "illegal": ("1. e4 e5 2. Ke3 Nf6 *", "2. Ke3", "'Ke3' is not legal: no king can go to e3"),
    "illegal of black": ("1. e4 e4 *", "1... e4", "'e4' is not legal: no pawn can go to e4"),
    "ambiguous": ("1. Nf3 d5 2. d3 d4 3. Nd2 *", "3. Nd2", "'Nd2' is ambiguous: Nbd2 or Nfd2"),
    "nonsense": ("1. e4 hello *", "1... hello", "'hello' is not a move in algebraic notation"),
    "null move": ("1. e4 -- *", "1... --", "'--' is not a move in algebraic notation"),
    "after mate": ("1. f3 e5 2. g4 Qh4# 3. a3 *", "3. a3", "it does not end the check"),
    "wrong castling": ("1. O-O *", "1. O-O", "a piece is between king and rook"),
    "no result": ("1. e4 e5", None, "the moves end without a result"),
    "open comment": ("1. e4 {what now\n\n", None, "a comment is never closed"),
    "open variation": ("1. e4 (1. d4 d5 1-0", None, "a variation is never closed"),
    "closed variation": ("1. e4) e5 *", None, "a variation is closed that was never opened"),
    "bad tag": ("[White unknown]\n\n1. e4 *", None, "no tag can be read from [White unknown]"),
    "tags alone": ('[White "unknown"]\n', None, "the moves end without a result"),
    "bad FEN": ('[FEN "8/8"]\n\n1. e4 *', None, "the tag FEN: 1 fields"),
    "impossible FEN": ('[FEN "8/8/8/8/8/8/8/8 w - - 0 1"]\n\n1. e4 *', None, "the tag FEN: white has 0 kings"),
}


@pytest.mark.parametrize("case", WITH_ERRORS)
def test_a_game_with_an_error_is_reported_and_skipped(case: str) -> None:
    text, move, reason = WITH_ERRORS[case]
    games, (error,) = read(f'{GOOD}[Event "bad"]\n{text}\n\n{GOOD}')
    assert games == [only(GOOD)] * 2
    assert (error.path, error.game, error.line, error.move) == ("stream", 2, 5, move)
    assert reason in error.reason
    assert str(error).startswith(f"stream, game 2 (line 5){', move ' + move if move else ''}: ")


def test_random_text_is_skipped() -> None:
    rng = random.Random(7)
    for _ in range(50):
        noise = "".join(rng.choices('abcdefgh12345678NBRQKO-x+#=(){};[]"%$*.\n /0', k=400))
        games, skipped = read(f"{noise}\n\n}}\n{GOOD}")
        assert all(game.board().moves == list(game.moves) for game in games)
        assert games[-1:] == [only(GOOD)] or skipped


def test_what_cannot_be_written() -> None:
    game = only(written(PgnGame({"White": "a\nb"}, comments={0: "a {b} \n\n % c"})))
    assert (game.headers, game.comments) == ({"White": "a b"}, {0: "a {b) % c"})
    with pytest.raises(ValueError, match="move 1 of the line is not legal"):
        write_game(io.StringIO(), PgnGame(moves=(0,)))


def test_the_line_of_a_start_position_may_be_given() -> None:
    game = PgnGame({}, START_FEN, line("e4 e5"), {}, "*")
    assert only(written(game)) == game
    assert format_line(Board().rows, game.moves) == ["e4", "e5"]
