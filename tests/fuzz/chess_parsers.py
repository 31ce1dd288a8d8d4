"""Positions, games, the UCI protocol and the files of a ladder."""

from __future__ import annotations

import queue
from pathlib import Path

from ranks.chess.board import Board
from ranks.chess.fen import format_fen, parse_fen
from ranks.chess.match.ladder_store import LadderStore
from ranks.chess.match.opening_files import read_openings
from ranks.chess.match.time_control import TimeControl
from ranks.chess.pgn.reader import read_games
from ranks.chess.players.simple import RandomPlayer
from ranks.chess.players.spec import PlayerSpec, number
from ranks.chess.uci.engine import Engine
from ranks.chess.uci.lines import format_info, parse_info, parse_option
from tests.fuzz.registry import packed, packed_or_plain, parser, texts, written

FENS = (
    "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1",
    "r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1",
    "8/2p5/3p4/KP5r/1R3pPk/8/4P3/8 b - g3 0 1",
)
PGN = (
    '[Event "a"]\n[Site "?"]\n[White "x"]\n[Result "1-0"]\n\n1. e4 {best} e5 2. Qh5 $1 (2. Nf3) Nc6 3. Bc4 Nf6?? '
    "4. Qxf7# 1-0\n\n"
)
SET_UP = '[FEN "8/P6k/8/8/8/8/8/K7 w - - 0 1"]\n[SetUp "1"]\n\n1. a8=Q ; a comment\n1... Kg6 1/2-1/2\n'


@parser("fen", texts(*FENS))
def fen(content: bytes, folder: Path) -> None:
    text = content.decode("utf-8", "replace")
    again = format_fen(parse_fen(text)[0])
    assert format_fen(parse_fen(again)[0]) == again
    Board(text).outcome()


@parser("epd", texts("\n".join(FENS) + "\n", FENS[1][:-4] + ' hmvc 3; fmvn 20; id "kiwi"; bm Qxf6;\n'))
def epd(content: bytes, folder: Path) -> None:
    read_openings(written(folder, "openings.epd", content))


@parser("pgn", texts(PGN + PGN, PGN + SET_UP, SET_UP))
def pgn(content: bytes, folder: Path) -> None:
    for game in read_games(written(folder, "games.pgn", content), lambda skipped: None):
        game.board().outcome()


@parser("pgn-gz", lambda: packed_or_plain([(PGN + SET_UP).encode()]))
def compressed_pgn(content: bytes, folder: Path) -> None:
    list(read_games(written(folder, "games.pgn.gz", packed(content)), lambda skipped: None))


@parser("pgn-openings", texts(SET_UP, '[Event "a"]\n\n1. e4 e5 *\n\n[Event "b"]\n\n1. d4 *\n'))
def pgn_openings(content: bytes, folder: Path) -> None:
    read_openings(written(folder, "openings.pgn", content))


SCRIPT = (
    "uci\nsetoption name Hash value 32\nsetoption name MultiPV value 2\nucinewgame\nisready\n"
    f"position startpos moves e2e4 e7e5\ngo wtime 1000 btime 1000 winc 10 binc 10 movestogo 3\nposition fen {FENS[1]}\n"
    "go depth 3 nodes 100\ngo infinite\nstop\ngo ponder movetime 10\nponderhit\ngo mate 2 searchmoves e2e4\nquit\n"
)


@parser("uci-commands", texts(SCRIPT, "uci\nquit\n", f"position fen {FENS[2]} moves f4g3\ngo nodes 5\n"))
def uci_commands(content: bytes, folder: Path) -> None:
    said: queue.SimpleQueue[str] = queue.SimpleQueue()
    lines = content.decode("utf-8", "replace").split("\n")
    Engine("fuzz", RandomPlayer, said.put).run(lines)


INFO = "info depth 12 seldepth 3 multipv 1 score cp 34 nodes 1000 nps 5 time 17 pv e2e4 e7e5 g1f3"


@parser(
    "uci-replies",
    texts(
        INFO,
        "info depth 1 score mate -3 lowerbound nodes 7 string a b",
        "option name Hash type spin default 16 min 1 max 4096",
        "option name Style type combo default A var A var B C",
    ),
)
def uci_replies(content: bytes, folder: Path) -> None:
    board = Board()
    for line in content.decode("utf-8", "replace").split("\n"):
        option = parse_option(line)
        if option is not None:
            option.line()
            option.refusal(line[-8:])
        info = parse_info(line, board)
        if info is not None:
            format_info(info, [], with_multipv=True)


@parser("time-control", texts("10+0.1", "40/60+0.5", "5:00+3"))
def time_control(content: bytes, folder: Path) -> None:
    str(TimeControl.parse(content.decode("utf-8", "replace")))


@parser("player", texts("alphabeta:3", "uci:stockfish@1000?Threads=1&Hash=2%20", "random"))
def player(content: bytes, folder: Path) -> None:
    table = {"alphabeta": "a:b", "uci": "c:d", "random": "e:f"}
    spec = PlayerSpec.parse(content.decode("utf-8", "replace"), table, "usage")
    number(spec.text, spec.argument, 1, 100, "usage")


PLAN = '{"players": {"a": {"program": "p"}}, "looks": 3, "seed": 4}'
PAIR = (
    '{"first": "a", "second": "b", "number": 0, "opening": "o", "points": [1, 2], "results": ["1-0", "0-1"], '
    '"reasons": ["x", "y"], "plies": [3, 4], "forfeits": [["a", "late"]], "pgn_bytes": 0}\n'
)


@parser("ladder-plan", texts(PLAN))
def ladder_plan(content: bytes, folder: Path) -> None:
    ladder(folder / "plan", content, PAIR.encode())


@parser("ladder-pairs", texts(PAIR, PAIR + PAIR.replace('"number": 0', '"number": 1')))
def ladder_pairs(content: bytes, folder: Path) -> None:
    ladder(folder / "pairs", PLAN.encode(), content)


def ladder(folder: Path, plan: bytes, pairs: bytes) -> None:
    folder.mkdir(exist_ok=True)
    for name, content in (("plan.json", plan), ("pairs.jsonl", pairs), ("games.pgn", b"")):
        written(folder, name, content)
    LadderStore(folder, {"players": {"a": {"program": "p"}}, "seed": 4}, 3, lambda file, game: None).close()
