"""`ranks chess perft`: count the sequences of legal moves from a position."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager

from ranks.errors import UserError

MAX_DEPTH = 20


def perft(depth: int, /, *, fen: str | None = None, divide: bool = False) -> int:
    """Count the sequences of DEPTH legal moves, the usual test of a move generator.

    The last line on stdout is the number of nodes. The speed goes to stderr.

    Args:
        depth: Depth in plies.
        fen: The position to start from; the default is the initial position.
        divide: Also print the number for each first move.
    """
    from ranks.chess.board import move_to_uci
    from ranks.chess.core.perft import divide as counts_by_move
    from ranks.chess.core.rules import START
    from ranks.chess.fen import parse_fen

    if not 0 <= depth <= MAX_DEPTH:
        raise UserError(f"perft {depth}", f"the depth {depth} is out of range", f"give a number from 0 to {MAX_DEPTH}")
    start = START if fen is None else parse_fen(fen)
    started_s = time.perf_counter()
    nodes = 0 if depth else 1
    with _signals_end_at_once():
        for move, count in counts_by_move(start, depth) if depth else ():
            nodes += count
            if divide:
                print(f"{move_to_uci(move)}: {count}", flush=True)
    elapsed_s = time.perf_counter() - started_s
    print(f"{nodes} nodes in {elapsed_s:.2f} s, {nodes / elapsed_s / 1e6:.1f} M nodes/s", file=sys.stderr)
    print(nodes)
    return 0


@contextmanager
def _signals_end_at_once() -> Generator[None]:
    """Let Ctrl-C and SIGTERM kill the process: Python's handlers would wait for the kernel."""
    before = {signum: signal.signal(signum, signal.SIG_DFL) for signum in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for signum, handler in before.items():
            signal.signal(signum, handler)
