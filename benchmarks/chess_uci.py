"""What the UCI side must stand: random scripts of commands, and games against itself on short clocks.

    python benchmarks/chess_uci.py                     300 scripts and 500 games at 2+0.02: about an hour of one core
    python benchmarks/chess_uci.py --games 20          a smaller match

Scripts: processes of `ranks chess uci` hear sensible and senseless commands in random order; each search must answer
with exactly one bestmove, legal in the position of that time, and the process must end with exit code 0. Games: two
processes of `ranks chess uci` on a clock that the match holds. Writes benchmarks/results/chess_uci_DATE.json and exits
1 where anything hung, moved illegally or lost on time.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from importlib.metadata import version
from itertools import accumulate
from typing import Any

from measure import ROOT, environment, origin, spread, write_result

sys.path.insert(0, str(ROOT))

from ranks.chess.match.game import Conditions, GameRecord
from ranks.chess.match.match import pair_tasks
from ranks.chess.match.openings import seeded_openings
from ranks.chess.match.schedule import Entrant, play_pairs
from ranks.chess.match.time_control import TimeControl
from ranks.chess.players.player import Player
from ranks.chess.players.program import ProgramPlayer
from tests.chess.uci_conversation import Listener, check_script, random_script

SCRIPTS_PER_PROCESS = 10
PLAYERS = ("alphabeta:64?evaluation=position", "mcts:800", "minimax:2")


def command(player: str) -> list[str]:
    return [sys.executable, "-m", "ranks", "chess", "uci", "--player", player]


class EngineProcess(Listener):
    """A process of ours, spoken to as a GUI does."""

    def __init__(self, player: str) -> None:
        super().__init__()
        self._process = subprocess.Popen(
            command(player),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment(),
            text=True,
            errors="replace",
        )
        threading.Thread(target=self._listen, daemon=True).start()

    def say(self, line: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.buffer.write(line.encode(errors="surrogateescape") + b"\n")
        self._process.stdin.flush()

    def end(self) -> int:
        """Say quit; the exit code. Raises TimeoutExpired where it does not end."""
        self.say("quit")
        try:
            return self._process.wait(20)
        finally:
            self._process.kill()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self.notice(line.rstrip("\n"))


def scripts(number: int) -> dict[str, Any]:
    """Random scripts, a fresh process for every few, the players in turn."""
    searches, faults, uciok_s, ready_s = 0, list[str](), list[float](), list[float]()
    for first in range(0, number, SCRIPTS_PER_PROCESS):
        player = PLAYERS[first // SCRIPTS_PER_PROCESS % len(PLAYERS)]
        start = time.perf_counter()
        engine = EngineProcess(player)
        try:
            engine.ask("uci", "uciok")
            uciok_s.append(time.perf_counter() - start)
            engine.ask("isready", "readyok")
            ready_s.append(time.perf_counter() - start)
            for seed in range(first, min(first + SCRIPTS_PER_PROCESS, number)):
                searches += check_script(engine, random_script(seed))
            code = engine.end()
            if code:
                faults.append(f"{player}: exit code {code} after script {seed}")
        except (AssertionError, OSError, subprocess.TimeoutExpired) as fault:
            faults.append(f"{player}: {fault}"[:500])
    found = {"scripts": number, "searches": searches, "faults": faults}
    return {**found, "start_to_uciok_s": spread(uciok_s, 3), "start_to_readyok_s": spread(ready_s, 3)}


def games(number: int, time_control: str, concurrency: int) -> dict[str, Any]:
    """Games of our default engine against itself, every opening with both colours."""

    def opened(name: str) -> Entrant:
        def make() -> Player:
            return ProgramPlayer(name, command(PLAYERS[0]), {})

        return Entrant(name, make)

    control = TimeControl.parse(time_control)
    reasons: Counter[str] = Counter()
    plies: list[float] = []
    slowest_s: list[float] = []
    least_left_s: list[float] = []

    def keep(game: GameRecord) -> None:
        reasons[game.reason] += 1
        plies.append(len(game.turns))
        slowest_s.append(max(turn.elapsed_s for turn in game.turns))
        for side in (0, 1):
            spent = accumulate(turn.elapsed_s - control.increment_s for turn in game.turns[side::2])
            least_left_s.append(control.time_s - max(spent))

    tasks = pair_tasks(opened("first"), opened("second"), seeded_openings(1), range(number // 2))
    list(play_pairs(tasks, Conditions(control), 1, concurrency, keep))
    bad = [reason for reason in reasons if "time" in reason or "illegal" in reason or "forfeits" in reason]
    return {
        "games": sum(reasons.values()),
        "time_control": time_control,
        "concurrency": concurrency,
        "endings": dict(reasons.most_common()),
        "faults": {reason: reasons[reason] for reason in bad},
        "plies": spread(plies, 0),
        "slowest_move_s": round(max(slowest_s), 3),
        "least_time_left_s": {**spread(least_left_s, 3), "least": round(min(least_left_s), 3)},
    }


def results(asked: argparse.Namespace) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each part that was asked for."""
    if asked.scripts:
        yield "scripts", scripts(asked.scripts)
    if asked.games:
        yield "games", games(asked.games, asked.tc, asked.concurrency)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--scripts", type=int, default=300)
    parser.add_argument("--games", type=int, default=500)
    parser.add_argument("--tc", default="2+0.02")
    parser.add_argument("--concurrency", type=int, default=1)
    asked = parser.parse_args()
    result: dict[str, Any] = origin()
    result["versions"] |= {"numba": version("numba")}
    found = dict(results(asked))
    print(json.dumps(found, indent=2))
    result |= found
    result["right"] = not any(part["faults"] for part in found.values())
    path = write_result(f"chess_uci_{result['date'][:10]}", result)
    print(f"{'right' if result['right'] else 'WRONG'}: {path}")
    return 0 if result["right"] else 1


if __name__ == "__main__":
    sys.exit(main())
