"""A UCI engine of a few lines whose score depends on the position, and on what it saw since `ucinewgame`.

So equal labels in any order show that it was cleared before each. It can die or hang on a position, always or in the
first process that meets it. Its `eval` says the same of white as its search would say without a past; "no eval": it has
none; "odd eval": it is in other units; "leaves": the engine ends after its first `readyok`; "answers and leaves": it
ends after the answer to the position, the first time; "cut once": it ends in the middle of that static evaluation.
"""

from __future__ import annotations

import sys
from pathlib import Path

ENGINE = """
import hashlib, os, sys, time
fault, board, marker = sys.argv[1:4]
seen, fen = 0, ""
SPIN = "option name %s type spin default 1 min 1 max 64"
OPTIONS = SPIN % "Hash", SPIN % "Threads"
for line in sys.stdin:
    words = line.split()
    if words[0] == "uci":
        print("id name Small 1.0", *OPTIONS, "uciok", sep="\\n", flush=True)
    elif words[0] == "isready":
        print("readyok", flush=True)
        if fault == "leaves": os._exit(0)
    elif words[0] == "ucinewgame":
        seen = 0
    elif words[0] == "position":
        fen = " ".join(words[2:])
    elif words[0] == "go" or words[0] == "eval" and fault != "no eval":
        if fault not in ("none", "no eval", "odd eval", "leaves") and fen.startswith(board):
            once = os.path.exists(marker)
            open(marker, "a").write(f"{os.getpid()} ")
            if not (once and fault.endswith("once")):
                if fault.startswith("dies"): sys.exit(3)
                if fault.startswith("hangs"): time.sleep(600)
        score = int(hashlib.sha256(fen.encode()).hexdigest(), 16) % 2001 - 1000
        if words[0] == "eval":
            white = "none (in check)" if board == fen else f"{score / 100:+.2f} (white side) [small]"
            if fault == "cut once" and fen.startswith(board) and not once:
                print(f"Final evaluation       {score / 100:+.1f}", end="", flush=True)
                os._exit(0)
            if fault == "odd eval": white = "(white) = 12 cp"
            print("| a table |", "", f"Final evaluation       {white}", "", sep="\\n", flush=True)
            continue
        score += 100 * seen
        seen += 1
        kind = "mate" if fault == "mates" else "cp"
        if fault != "scoreless": print(f"info depth 1 score {kind} {score} nodes {words[2]} pv e2e4")
        print("info depth 2 score cp 5 lowerbound", "bestmove e2e4", sep="\\n", flush=True)
        if fault == "answers and leaves" and fen.startswith(board) and not once: os._exit(0)
    elif words[0] == "quit":
        break
"""


def engine_command(folder: Path, fault: str = "none", board: str = "") -> str:
    """Write the engine to a file. Returns its command line. board: the FEN on which it fails begins with it."""
    path = folder / "engine.py"
    path.write_text(ENGINE)
    return f"{sys.executable} -S -E {path} {fault!r} {board!r} {folder / 'marker'}"
