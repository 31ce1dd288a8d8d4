"""`ranks chess perft`: count the sequences of legal moves from a position."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager

from ranks.chess.board import move_name
from ranks.chess.core.perft import divide as counts_by_move
from ranks.chess.core.rules import START
from ranks.chess.fen import parse_fen
from ranks.errors import UserError

MAX_DEPTH = 20


def perft(depth: int, /, *, fen: str | None = None, divide: bool = False) -> int:
    """Count the sequences of DEPTH legal moves: the usual test of a move generator.

    The last line of the output is the bare number; the speed goes to stderr.

    Args:
        depth: Half moves to look ahead.
        fen: The position to start from; without it, the initial one.
        divide: Print the number behind each first move, too.
    """
    if not 0 <= depth <= MAX_DEPTH:
        raise UserError(f"perft {depth}", f"{depth} is no depth to count to", f"give a number from 0 to {MAX_DEPTH}")
    start = START if fen is None else parse_fen(fen)
    began = time.perf_counter()
    nodes = 0 if depth else 1
    with _signals_end_at_once():
        for move, count in counts_by_move(start, depth) if depth else ():
            nodes += count
            if divide:
                print(f"{move_name(move)}: {count}", flush=True)
    elapsed_s = time.perf_counter() - began
    print(f"{nodes} nodes in {elapsed_s:.2f} s, {nodes / elapsed_s / 1e6:.1f} M nodes/s", file=sys.stderr)
    print(nodes)
    return 0


@contextmanager
def _signals_end_at_once() -> Generator[None]:
    """Ctrl-C and SIGTERM end the process themselves: Python's handlers would wait until the kernel returns."""
    before = {signum: signal.signal(signum, signal.SIG_DFL) for signum in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for signum, handler in before.items():
            signal.signal(signum, handler)
