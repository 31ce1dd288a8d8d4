"""Conversations with our UCI engine, and scripts that no engine should mind."""

from __future__ import annotations

import queue
import random
import threading
import time
from collections.abc import Callable, Iterator

from ranks.chess.board import Board, move_to_uci
from ranks.chess.players.player import Player
from ranks.chess.uci.engine import Engine

HANGS_S = 60.0
"""Longer than anything takes, the compilation of all kernels among it."""


class Listener:
    """What a GUI says (`say` passes one line on), and what it hears."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self.say = say
        self.heard: list[str] = []
        self._news = threading.Condition()

    def notice(self, line: str) -> None:
        """A line has come; from any thread."""
        with self._news:
            self.heard.append(line)
            self._news.notify_all()

    def hear(self, beginning: str, seconds: float = HANGS_S) -> list[str]:
        """All lines up to the first that begins so; they are not heard again."""
        deadline_s = time.monotonic() + seconds
        with self._news:
            while True:
                for index, line in enumerate(self.heard):
                    if line.startswith(beginning):
                        lines = self.heard[: index + 1]
                        del self.heard[: index + 1]
                        return lines
                left_s = deadline_s - time.monotonic()
                assert left_s > 0, f"no '{beginning}' within {seconds} s, but {self.heard[-5:]}"
                self._news.wait(left_s)

    def ask(self, line: str, beginning: str, seconds: float = HANGS_S) -> list[str]:
        self.say(line)
        return self.hear(beginning, seconds)


class Conversation(Listener):
    """With an engine inside this process; as a context it ends the engine and raises what ended
    it."""

    def __init__(self, load: Callable[[], Player]) -> None:
        self._said: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        super().__init__(self._said.put)
        self.error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, args=(Engine("test", load, self.notice),))
        self._thread.start()

    def __enter__(self) -> Conversation:
        return self

    def __exit__(self, *exception: object) -> None:
        self._said.put(None)
        self._thread.join(HANGS_S)
        assert not self._thread.is_alive(), "the engine hangs"
        if self.error:
            raise self.error

    @property
    def ended(self) -> bool:
        return not self._thread.is_alive()

    def _run(self, engine: Engine) -> None:
        try:
            engine.run(self._lines())
        except BaseException as error:
            self.error = error

    def _lines(self) -> Iterator[str]:
        while (line := self._said.get()) is not None:
            yield line


GARBAGE = [
    "",
    "   ",
    "position",
    "position fen",
    "position fen 8/8/8/8/8/8/8/8 w - - 0 1",
    "position startpos moves e2e5",
    "position startpos moves e2e4 e2e4",
    "position nonsense moves",
    "setoption",
    "setoption name",
    "setoption name Nonsense value 3",
    "setoption name Move Overhead value many",
    "setoption name MultiPV value 0",
    "xyzzy \x00 \udcff ♞",
    "bestmove e2e4",
    "joho debug on",
    "ponderhit",
    "stop",
    "register later",
    "uci",
]


def random_script(seed: int) -> list[str]:
    """A GUI gone mad: commands in any order, sensible and not. It may end in the middle of a
    search."""
    draw = random.Random(seed)
    script: list[str] = []
    for _ in range(draw.randint(5, 15)):
        kind = draw.random()
        if kind < 0.3:
            script.append(draw.choice(GARBAGE))
        elif kind < 0.5:
            script.append(random_position(draw))
        elif kind < 0.85:
            script.append(random_go(draw))
            if draw.random() < 0.5:
                script.append(f"sleep {draw.choice([0, 0, 0.005, 0.02])}")
            if draw.random() < 0.5:
                script.append(draw.choice(["stop", "ponderhit", "isready"]))
        else:
            name, value = draw.choice([("MultiPV", draw.randint(1, 4)), ("Move Overhead", draw.randint(0, 100))])
            script += [f"setoption name {name} value {value}", draw.choice(["ucinewgame", "isready"])]
    return script


def random_position(draw: random.Random) -> str:
    board = Board()
    for _ in range(draw.randint(0, 150)):
        moves = board.legal_moves()
        if not moves:
            break
        board.push(draw.choice(moves))
    if draw.random() < 0.3:
        return f"position fen {board.fen()}"
    moves = " ".join(map(move_to_uci, board.moves))
    return f"position startpos moves {moves}" if moves else "position startpos"


def random_go(draw: random.Random) -> str:
    return draw.choice(
        [
            f"go wtime {draw.randint(-50, 500)} btime {draw.randint(1, 500)} winc {draw.randint(0, 20)} binc 0",
            f"go wtime {draw.randint(1, 500)} btime {draw.randint(1, 500)} movestogo {draw.randint(1, 40)}",
            f"go movetime {draw.randint(0, 30)}",
            f"go nodes {draw.randint(0, 20000)}",
            f"go depth {draw.randint(0, 4)}",
            "go infinite",
            "go ponder wtime 100 btime 100",
            "go",
            "go depth",
            "go wtime soon",
        ]
    )


def board_of(position: str) -> Board | None:
    """The board that a `position` line sets up, or None where it cannot be read."""
    words = position.split()
    try:
        fen = None if words[1] == "startpos" else " ".join(words[2:8])
        board = Board(fen)
        for text in words[words.index("moves") + 1 :] if "moves" in words else []:
            board.push(board.parse_uci(text))
    except Exception:
        return None
    return board


def check_script(conversation: Listener, script: list[str]) -> int:
    """Say a script and check each answer: one bestmove for each go, legal in the position of that
    time (0000 where that was refused), and none more.

    Returns the number of searches."""
    board: Board | None = Board()
    expected: list[Board | None] = []
    for line in script:
        words = line.split()
        if words[:1] == ["sleep"]:
            time.sleep(float(words[1]))
            continue
        conversation.say(line)
        if words[:1] == ["position"]:
            board = board_of(line)
        elif words[:1] == ["ucinewgame"]:
            board = Board()
        elif words[:1] == ["go"]:
            expected.append(board.copy() if board else None)
    conversation.say("stop")
    conversation.say("setoption name MultiPV value 1")
    conversation.say("setoption name Move Overhead value 30")
    conversation.say("ucinewgame")
    conversation.say("xyzzy the end")
    lines = conversation.hear("info string unknown command: xyzzy the end")
    answers = [line.split() for line in lines if line.startswith("bestmove")]
    assert len(answers) == len(expected), f"{len(expected)} searches, {len(answers)} answers: {script}"
    for answer, board in zip(answers, expected, strict=True):
        legal = [move_to_uci(move) for move in board.legal_moves()] if board else []
        assert answer[1] in (legal or ["0000"]), f"{answer} in {board.fen() if board else 'no position'}: {script}"
        if board and len(answer) > 2:
            board.push(board.parse_uci(answer[1]))
            assert answer[2] == "ponder"
            assert answer[3] in map(move_to_uci, board.legal_moves())
    return len(answers)
