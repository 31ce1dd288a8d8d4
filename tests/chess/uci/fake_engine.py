"""A small UCI engine that hangs, dies, moves illegally or does not exit, and what it leaves
behind."""

from __future__ import annotations

import contextlib
import os
import sys
from dataclasses import replace
from pathlib import Path

from ranks.chess.uci.timeouts import Timeouts

TIMEOUTS = Timeouts(start_s=60.0, ready_s=60.0, late_s=60.0, silent_s=60.0, move_s=60.0, quit_s=0.3)
"""Longer than any answer takes on a busy machine."""
SHORT_TIMEOUTS = replace(TIMEOUTS, silent_s=0.5, move_s=1.0, late_s=0.3)
"""For engines that never answer: the start is not limited, the search is."""
FAKE = """
import os, signal, sys, time
def say(line):
    print(line, flush=True)
fault = sys.argv[1]
print("noise on stderr " * 20000, file=sys.stderr)
if fault == "mute": time.sleep(60)
if fault == "dies at once": sys.exit("no license")
for line in sys.stdin:
    words = line.split()
    if words[0] == "uci":
        say("Fake engine by the tests")
        say("id name Fake 1.0")
        say("option name Skill Level type spin default 5 min 0 max 20")
        say("option name Style type combo default Solid var Solid var Risky Play")
        say("option name Own Book type check default false")
        say("option name Broken type spin default x min y max")
        say("uciok")
    elif words[0] == "isready":
        if fault == "never ready": time.sleep(60)
        say("readyok")
    elif words[0] == "setoption":
        print(line.strip(), file=open(sys.argv[2], "a"))
    elif words[0] == "ucinewgame":
        if fault == "dies at ucinewgame": sys.exit(3)
    elif words[0] == "go":
        moves = line.split()
        if fault == "hangs": open(sys.argv[2] + ".hangs", "w").close(); time.sleep(60)
        if fault == "dies": sys.exit(3)
        if fault == "crashes": os.kill(os.getpid(), signal.SIGSEGV)
        if fault == "closes its output": os.close(1); time.sleep(60)
        if fault == "closes its input": os.close(0); time.sleep(60)
        if fault == "is late":  # very late in the first process, late in the second
            marker = sys.argv[2] + ".started"
            time.sleep(0.5 if os.path.exists(marker) else (open(marker, "w").close() or 60))
        if fault == "talks":
            for _ in range(15): say("info depth 1 currmove e2e4"); say("info nodes 7 nps 3 time 2500")
        if fault == "floods":
            while True: say("# thinking hard about nothing " * 10)
        if fault == "one long line":
            while True: sys.stdout.write("x" * 100000)
        say("info depth 1 score cp 13 pv e2e4 e7e5 e7e5")
        say("info string \\udcff\\udcfe".encode("utf-8", "surrogateescape").decode("latin-1"))
        say("info depth 2 score cp 99 lowerbound pv d2d4")
        say("info depth two score cp lots")
        if fault == "moves illegally": say("bestmove e2e5"); continue
        if fault == "resigns": say("bestmove (none)"); continue
        if fault == "says nothing": say("bestmove"); continue
        if fault == "waits for stop":
            while "stop" not in sys.stdin.readline(): pass
        if fault == "has a child":
            if os.fork() == 0: time.sleep(60)
            open(sys.argv[2], "a").close()
        say("bestmove e2e4 ponder e7e5")
    elif words[0] == "quit" and fault != "ignores quit":
        break
while fault == "ignores quit": time.sleep(1)
"""


def written(folder: Path) -> Path:
    """Write the engine to a file."""
    path = folder / "fake.py"
    path.write_text(FAKE)
    return path


def command(fake: Path, fault: str) -> list[str]:
    return [sys.executable, "-S", "-E", str(fake), fault, str(fake.with_name("options.txt"))]


def processes_of(fake: Path) -> list[int]:
    """The processes that run an engine, including zombies and orphans."""
    found: list[int] = []
    for entry in Path("/proc").iterdir() if Path("/proc").exists() else ():
        with contextlib.suppress(OSError):
            if entry.name.isdigit() and str(fake).encode() in (entry / "cmdline").read_bytes():
                found.append(int(entry.name))
    return found


def zombies() -> list[str]:
    """Children of this process that have ended and are not reaped."""
    found: list[str] = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            state, parent = stat.read_text().rpartition(")")[2].split()[:2]
            if state == "Z" and int(parent) == os.getpid():
                found.append(stat.parent.name)
    return found
