"""Conversations with our UCI engine, and random scripts of commands that it must survive."""

from __future__ import annotations

import queue
import random
import threading
import time
from collections.abc import Callable, Iterator

from ranks.chess.board import Board, move_to_uci
from ranks.chess.players.player import Player
from ranks.chess.players.strength import Strength
from ranks.chess.uci.engine import Engine

HANGS_S = 60.0
"""Longer than anything takes, including the compilation of all kernels."""


class Listener:
    """The side of a GUI: `send` sends one line to the engine, whose lines arrive in `received`."""

    def __init__(self, send: Callable[[str], None]) -> None:
        self.send = send
        self.received: list[str] = []
        self._news = threading.Condition()

    def receive(self, line: str) -> None:
        """Add a line of the engine; called from any thread."""
        with self._news:
            self.received.append(line)
            self._news.notify_all()

    def expect(self, prefix: str, seconds: float = HANGS_S) -> list[str]:
        """Wait for a line with this prefix. Removes and returns all lines up to it."""
        deadline_s = time.monotonic() + seconds
        with self._news:
            while True:
                for index, line in enumerate(self.received):
                    if line.startswith(prefix):
                        lines = self.received[: index + 1]
                        del self.received[: index + 1]
                        return lines
                left_s = deadline_s - time.monotonic()
                assert left_s > 0, f"no '{prefix}' within {seconds} s, but {self.received[-5:]}"
                self._news.wait(left_s)

    def ask(self, line: str, prefix: str, seconds: float = HANGS_S) -> list[str]:
        self.send(line)
        return self.expect(prefix, seconds)


class Conversation(Listener):
    """A conversation with an engine in this process.

    Leaving the context ends the engine and raises its error."""

    def __init__(
        self,
        load: Callable[[], Player],
        now: Callable[[], float] = time.perf_counter,
        strength: Strength | None = None,
    ) -> None:
        self._sent: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        super().__init__(self._sent.put)
        self.error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, args=(Engine("test", load, self.receive, now, strength),))
        self._thread.start()

    def __enter__(self) -> Conversation:
        return self

    def __exit__(self, *exception: object) -> None:
        self._sent.put(None)
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
        while (line := self._sent.get()) is not None:
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
    """Valid and invalid commands in random order. The script may end in the middle of a search."""
    rng = random.Random(seed)
    script: list[str] = []
    for _ in range(rng.randint(5, 15)):
        kind = rng.random()
        if kind < 0.3:
            script.append(rng.choice(GARBAGE))
        elif kind < 0.5:
            script.append(random_position(rng))
        elif kind < 0.85:
            script.append(random_go(rng))
            if rng.random() < 0.5:
                script.append(f"sleep {rng.choice([0, 0, 0.005, 0.02])}")
            if rng.random() < 0.5:
                script.append(rng.choice(["stop", "ponderhit", "isready"]))
        else:
            options = [("MultiPV", rng.randint(1, 4)), ("Move Overhead", rng.randint(0, 100))]
            options += [
                ("Hash", rng.randint(1, 32)),
                ("Threads", rng.randint(1, 3)),
                ("UCI_Elo", rng.randint(500, 2500)),
            ]
            options += [(name, rng.choice(["true", "false"])) for name in ("Ponder", "UCI_LimitStrength")]
            name, value = rng.choice(options)
            script += [f"setoption name {name} value {value}", rng.choice(["ucinewgame", "isready"])]
            script += ["setoption name Clear Hash"] * rng.randint(0, 1)
    return script


def random_position(rng: random.Random) -> str:
    board = Board()
    for _ in range(rng.randint(0, 150)):
        moves = board.legal_moves()
        if not moves:
            break
        board.push(rng.choice(moves))
    if rng.random() < 0.3:
        return f"position fen {board.fen()}"
    moves = " ".join(map(move_to_uci, board.moves))
    return f"position startpos moves {moves}" if moves else "position startpos"


def random_go(rng: random.Random) -> str:
    return rng.choice(
        [
            f"go wtime {rng.randint(-50, 500)} btime {rng.randint(1, 500)} winc {rng.randint(0, 20)} binc 0",
            f"go wtime {rng.randint(1, 500)} btime {rng.randint(1, 500)} movestogo {rng.randint(1, 40)}",
            f"go movetime {rng.randint(0, 30)}",
            f"go nodes {rng.randint(0, 20000)}",
            f"go depth {rng.randint(0, 4)}",
            f"go mate {rng.randint(0, 2)}",
            "go infinite",
            "go ponder wtime 100 btime 100",
            "go ponder infinite searchmoves e2e4",
            "go searchmoves e2e4 d2d4 g8f6 a7a6 a2a4 depth 3",
            "go",
            "go depth",
            "go wtime soon",
        ]
    )


def board_of(position: str) -> Board | None:
    """The board that a `position` line sets up, or None if it is invalid."""
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
    """Send a script and check that each `go` gets exactly one legal bestmove (0000 without a
    position).

    Returns the number of searches."""
    board: Board | None = Board()
    expected: list[Board | None] = []
    for line in script:
        words = line.split()
        if words[:1] == ["sleep"]:
            time.sleep(float(words[1]))
            continue
        conversation.send(line)
        if words[:1] == ["position"]:
            board = board_of(line)
        elif words[:1] == ["ucinewgame"]:
            board = Board()
        elif words[:1] == ["go"]:
            expected.append(board.copy() if board else None)
    conversation.send("stop")
    conversation.send("setoption name MultiPV value 1")
    conversation.send("setoption name Hash value 16")
    conversation.send("setoption name Threads value 1")
    conversation.send("setoption name Move Overhead value 30")
    conversation.send("setoption name UCI_LimitStrength value false")
    conversation.send("ucinewgame")
    conversation.send("xyzzy the end")
    lines = conversation.expect("info string unknown command: xyzzy the end")
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
