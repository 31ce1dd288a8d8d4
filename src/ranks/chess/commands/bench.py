"""`ranks chess bench`: search a fixed set of positions; the number of nodes identifies a version of the search."""

from __future__ import annotations

import sys
import time

from ranks.chess.commands.players import make_player
from ranks.errors import UserError

POSITIONS = (
    "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1",
    "r1bqkb1r/pppp1ppp/2n2n2/4p3/2B1P3/5N2/PPPP1PPP/RNBQK2R w KQkq - 4 4",
    "r1bq1rk1/pp2bppp/2n1pn2/3p4/3P4/2NBPN2/PP3PPP/R1BQ1RK1 w - - 0 9",
    "r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1",
    "2rq1rk1/pb2bppp/1pn1pn2/2pp4/3P1B2/2PBPN2/PP1NQPPP/R4RK1 b - - 3 11",
    "r2q1rk1/1b2bppp/p2ppn2/1p6/3NPP2/2N1B3/PPPQ2PP/2KR1B1R w - - 0 13",
    "3r2k1/pp3pp1/2p1b2p/4P3/2P5/1P2B3/P4PPP/3R2K1 w - - 0 24",
    "8/2p5/3p4/KP5r/1R3p1k/8/4P1P1/8 w - - 0 1",
    "8/5pk1/4p1p1/3pP2p/1p1P1P1P/1P1K2P1/8/8 w - - 0 40",
    "4r1k1/5pp1/p6p/1p1Nn3/4P3/1P3P1P/P5P1/3R2K1 b - - 2 31",
)
MAX_DEPTH = 30


def bench(*, player: str = "engine:tables", depth: int = 10) -> int:
    """Search ten positions to a depth, each from an empty table, and count the nodes.

    The last line on stdout is the number of nodes. It changes with the search and its evaluation only: it is the same
    on every machine. The speed goes to stderr.

    Args:
        player: A player that searches, as in `ranks chess match`.
        depth: Depth in plies.
    """
    from ranks.chess.board import Board
    from ranks.chess.players.player import Forfeit, Limits

    if not 1 <= depth <= MAX_DEPTH:
        raise UserError(f"bench --depth {depth}", "the depth is out of range", f"give a number from 1 to {MAX_DEPTH}")
    searcher = make_player(player)
    total, started_s = 0, time.perf_counter()
    for fen in POSITIONS:
        try:
            searcher.new_game(0)
            choice = searcher.choose(Board(fen), Limits(depth=depth))
        except Forfeit as fault:
            do = "run the engine's command by hand and read its output"
            raise UserError(f"bench of the player '{player}'", f"the engine {fault}", do) from None
        total += choice.nodes
        print(f"{choice.nodes:10} {fen}", file=sys.stderr, flush=True)
    elapsed_s = time.perf_counter() - started_s
    searcher.close()
    print(f"{total} nodes in {elapsed_s:.2f} s, {total / elapsed_s / 1e6:.2f} M nodes/s", file=sys.stderr)
    print(total)
    return 0
