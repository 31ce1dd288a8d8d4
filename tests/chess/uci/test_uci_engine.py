"""Our players as UCI engines: commands of a GUI in any order, and the answers."""

from __future__ import annotations

import itertools
import subprocess
import sys
import threading
import time
from collections.abc import Callable

import pytest

from ranks.chess.board import Board, move_to_uci
from ranks.chess.commands.players import make_player
from ranks.chess.players.player import Choice, Limits, Player
from ranks.chess.uci.go import GoCommand
from ranks.chess.uci.options import OPTIONS
from ranks.errors import UserError
from tests.chess.fake_clock import FakeClock
from tests.chess.uci.uci_conversation import HANGS_S, Conversation, check_script, random_script

MATE_IN_ONE = "6k1/5ppp/8/8/8/8/5PPP/3R2K1 w - - 0 1"


def strong() -> Player:
    return make_player("alphabeta:64?evaluation=position")


def numbers_in(line: str) -> dict[str, str]:
    words = line.split()
    return dict(itertools.pairwise(words))


def talk_until_it_ends(load: Callable[[], Player], line: str) -> None:
    with Conversation(load) as gui:
        gui.send(line)
        while not gui.ended:
            time.sleep(0.01)


def test_introduction_comes_before_the_player() -> None:
    release = threading.Event()

    def slow() -> Player:
        release.wait(2 * HANGS_S)
        return strong()

    with Conversation(slow) as gui:
        lines = gui.ask("uci", "uciok")
        assert lines[0].startswith("id name test")
        assert [line for line in lines if line.startswith("option ")] == [option.line() for option in OPTIONS]
        gui.send("isready")
        time.sleep(0.1)
        assert gui.received == []
        release.set()
        gui.expect("readyok")


def test_a_search_reports_and_moves() -> None:
    clock = FakeClock()  # it never advances, so no time limit ends a search
    with Conversation(strong, clock) as gui:
        gui.send("position startpos moves e2e4 e7e5")
        *infos, best = gui.ask("go depth 4", "bestmove")
        assert len(infos) == 4
        for depth, line in enumerate(infos, start=1):
            numbers = numbers_in(line)
            assert int(numbers["depth"]) == depth
            assert {"score", "nodes", "nps", "time", "pv"} <= numbers.keys()
            assert "multipv" not in numbers
        board = Board()
        for text in ["e2e4", "e7e5", best.split()[1], best.split()[3]]:
            board.push(board.parse_uci(text))
        gui.send(f"position fen {MATE_IN_ONE}")
        lines = gui.ask("go movetime 2000", "bestmove")
        assert lines[-1] == "bestmove d1d8"
        assert "score mate 1 " in lines[-2]


def test_go_mate_ends_at_the_depth_of_the_mate_where_all_moves_are_searched() -> None:
    with Conversation(strong) as gui:
        gui.send("position startpos")
        assert gui.ask("go mate 2", "bestmove")[-2].startswith("info depth 3 ")


def test_stop_infinite_and_ponder() -> None:
    clock = FakeClock()
    with Conversation(strong, clock) as gui:
        gui.send("go infinite")
        gui.expect("info depth 3")
        gui.ask("stop", "bestmove")
        gui.send(f"position fen {MATE_IN_ONE}")
        gui.send("go infinite")  # the search ends at once, but must not answer yet
        gui.expect("info depth 2")
        time.sleep(0.1)
        assert not any(line.startswith("bestmove") for line in gui.received)
        gui.ask("stop", "bestmove d1d8")
        gui.send("position startpos")
        gui.send("go ponder wtime 300 btime 300")
        gui.expect("info depth 3")
        clock.advance(0.4)  # the clock of the player does not run while it ponders
        assert not any(line.startswith("bestmove") for line in gui.expect("info depth 4"))
        gui.send("ponderhit")
        gui.ask("isready", "readyok")
        clock.advance(0.3)
        gui.expect("bestmove")
        gui.send("go ponder wtime 300 btime 300")
        gui.ask("stop", "bestmove")
        gui.send("stop")
        gui.send("ponderhit")
        assert gui.ask("isready", "readyok") == ["readyok"]


@pytest.mark.parametrize(
    ("position", "score"),
    [
        (f"{MATE_IN_ONE} moves d1d8", "mate 0"),
        ("6k1/5ppp/8/8/8/8/r4PPP/1r4K1 w - - 0 1", "mate 0"),
        ("7k/5Q2/6K1/8/8/8/8/8 b - - 0 1", "cp 0"),
    ],
)
def test_a_finished_game_is_scored_and_answered_when_uci_allows_it(position: str, score: str) -> None:
    ended = [f"info depth 0 score {score}", "bestmove 0000"]
    with Conversation(strong) as gui:
        gui.send(f"position fen {position}")
        assert gui.ask("go depth 3", "bestmove") == ended
        for go, then in [("go infinite", "stop"), ("go", "stop"), ("go ponder wtime 100 btime 100", "ponderhit")]:
            gui.send(go)
            assert gui.expect("info") == ended[:1]
            time.sleep(0.05)
            assert gui.received == []
            assert gui.ask(then, "bestmove") == ended[1:]


def test_after_a_refused_position_no_move_is_made_on_the_old_board() -> None:
    with Conversation(strong) as gui:
        gui.send("position startpos moves e2e4")
        gui.ask("position startpos moves e2e4 e7e6 e4e6", "info string position refused: 'e4e6' is not a legal move")
        assert gui.ask("go depth 2", "bestmove") == [
            "info string no move: the position was refused",
            "bestmove 0000",
        ]
        gui.send("go infinite")
        gui.expect("info string no move")
        time.sleep(0.05)
        assert gui.received == []
        assert gui.ask("stop", "bestmove") == ["bestmove 0000"]
        gui.send("position startpos moves e2e4")
        answer = gui.ask("go depth 2", "bestmove")[-1].split()[1]
        assert Board("rnbqkbnr/pppppppp/8/8/4P3/8/PPPP1PPP/RNBQKBNR b KQkq - 0 1").parse_uci(answer)
        gui.ask("position", "info string position refused")
        gui.send("ucinewgame")
        assert Board().parse_uci(gui.ask("go depth 2", "bestmove")[-1].split()[1])


def test_isready_position_and_go_while_it_searches() -> None:
    with Conversation(strong) as gui:
        gui.send("go infinite")
        gui.expect("info depth 2")
        gui.ask("isready", "readyok")
        gui.send(f"position fen {MATE_IN_ONE}")  # is for the next search
        gui.send("go depth 2")
        first = gui.expect("bestmove")[-1].split()[1]
        assert first in map(move_to_uci, Board().legal_moves())
        assert gui.expect("bestmove")[-1] == "bestmove d1d8"


def test_several_lines_and_options() -> None:
    clock = FakeClock(tick_s=0.001)
    with Conversation(strong, clock) as gui:
        gui.send("setoption name multipv value 3")
        lines = gui.ask("go depth 2", "bestmove")
        assert [numbers_in(line)["multipv"] for line in lines[:-1]] == ["1", "2", "3"] * 2
        assert len({numbers_in(line)["pv"] for line in lines[:-1]}) == 3
        gui.send("setoption name MultiPV value 1")
        assert "multipv" not in gui.ask("go depth 1", "bestmove")[0]
        assert "not from 1 to 218" in gui.ask("setoption name MultiPV value 999", "info string")[-1]
        gui.send("setoption name Hash value 1")
        gui.ask("go depth 4", "bestmove")
        assert "not from 1 to 4096" in gui.ask("setoption name Hash value 0", "info string")[-1]
        assert "no option 'Hesh'" in gui.ask("setoption name Hesh value 999", "info string")[-1]
        gui.send("setoption name Move Overhead value 900")
        started_s = clock.now_s
        gui.ask("go wtime 1000 btime 1000", "bestmove")
        assert clock.now_s - started_s < 0.1


def parsed(line: str) -> GoCommand:
    return GoCommand.parse(line.split())


def test_go_uses_the_clock_of_the_side_to_move() -> None:
    go = parsed("wtime 1000 btime 7000 winc 10 binc 70 movestogo 5 depth 9")
    white, black = go.limits(True, 0.05), go.limits(False, 0.05)
    assert white.clock is not None
    assert black.clock is not None
    assert (white.clock.remaining_s, white.clock.increment_s, white.clock.other_remaining_s) == (1.0, 0.01, 7.0)
    assert (black.clock.remaining_s, black.clock.increment_s, black.clock.overhead_s) == (7.0, 0.07, 0.05)
    assert (white.clock.moves_to_go, white.depth, white.nodes) == (5, 9, None)
    assert parsed("mate 3").limits(True, 0) == Limits(mate=3)
    assert parsed("mate 0 depth 9").limits(True, 0) == Limits(mate=1, depth=9)
    assert parsed("infinite").limits(True, 0).infinite
    assert parsed("").limits(True, 0) == parsed("depth").limits(True, 0) == Limits(infinite=True)
    assert parsed("btime 100").limits(True, 0).infinite
    assert not parsed("btime 100").limits(False, 0).infinite
    assert parsed("wtime soon nodes -3 movetime").limits(True, 0) == Limits(nodes=1)


@pytest.mark.parametrize(
    ("line", "answer"),
    [
        ("xyzzy", "info string unknown command: xyzzy"),
        ("position startpos moves e2e5", "info string position refused: 'e2e5' is not a legal move"),
        ("position fen 8/8 w - - 0 1", "info string position refused: the board has 2 ranks"),
        ("position", "info string position refused: write position startpos"),
        ("go searchmoves e2e4 depth 1", "info string searchmoves is not supported"),
    ],
)
def test_invalid_commands_are_answered_with_an_info_line(line: str, answer: str) -> None:
    with Conversation(strong) as gui:
        gui.ask(line, answer)
        gui.send("stop")
        gui.ask("joho isready", "readyok")  # unknown words before a command are ignored


def test_the_end_of_the_input_and_quit_end_it_in_the_middle_of_a_search() -> None:
    with Conversation(strong) as gui:
        gui.send("go infinite")
        gui.expect("info depth 3")
    with Conversation(strong) as gui:
        gui.send("go infinite")
        gui.expect("info depth 3")
        gui.ask("quit", "bestmove")


def test_an_error_in_the_player_ends_the_engine() -> None:
    with pytest.raises(UserError, match="alphabeta:x"):
        talk_until_it_ends(lambda: make_player("alphabeta:x"), "isready")

    class Broken:
        name = "broken"

        def new_game(self, seed: int) -> None:
            pass

        def choose(self, board: Board, limits: Limits) -> Choice:
            raise RuntimeError("out of ideas")

        def close(self) -> None:
            pass

    with pytest.raises(RuntimeError, match="out of ideas"):
        talk_until_it_ends(Broken, "go depth 1")


@pytest.mark.parametrize("spec", ["random", "greedy", "minimax:2", "mcts:50"])
def test_every_player_is_an_engine(spec: str) -> None:
    with Conversation(lambda: make_player(spec)) as gui:
        board = Board()
        for _ in range(6):
            gui.send(f"position startpos moves {' '.join(map(move_to_uci, board.moves))}")
            answer = gui.ask("go wtime 1000 btime 1000 winc 10 binc 10", "bestmove")[-1]
            board.push(board.parse_uci(answer.split()[1]))
        gui.send("go infinite")
        gui.ask("stop", "bestmove")


@pytest.mark.parametrize("spec", ["alphabeta:64?evaluation=position", "mcts:100"])
def test_random_scripts(spec: str) -> None:
    """The same with more scripts, and in processes: benchmarks/chess/uci.py."""
    searches = 0
    with Conversation(lambda: make_player(spec)) as gui:
        for seed in range(12):
            searches += check_script(gui, random_script(seed))
    assert searches > 30


def test_as_a_process() -> None:
    """A session from start to quit, its exit code, and the error for an unknown player."""
    process = subprocess.Popen(
        [sys.executable, "-m", "ranks", "chess", "uci"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write("uci\n")
    process.stdin.flush()
    while process.stdout.readline() != "uciok\n":
        pass
    answer, _ = process.communicate("isready\nposition startpos moves e2e4\ngo depth 3\nisready\nquit\n", timeout=60)
    assert answer.count("readyok\n") == 2
    assert answer.count("bestmove") == 1
    assert process.returncode == 0
    unknown = subprocess.run(
        [sys.executable, "-m", "ranks", "chess", "uci", "--player", "alphabet:3"], capture_output=True, text=True
    )
    assert unknown.returncode == 2
    assert "did you mean alphabeta?" in unknown.stderr


def test_the_engine_imports_nothing_heavy() -> None:
    code = "import sys, ranks.chess.commands.uci; sys.exit(bool({'numba', 'numpy', 'torch'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
