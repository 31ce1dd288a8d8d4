"""A stress test of the UCI engine: random scripts of commands, and games against itself on short clocks.

    python -m benchmarks.chess.uci --games 0                           300 scripts, the players in turn: some minutes
    python -m benchmarks.chess.uci --scripts 0 --concurrency 2         1,000 games at 2+0.02: 50 minutes of two cores
    python -m benchmarks.chess.uci --scripts 0 --players 'engine:tables?threads=2' --games 100 --tc 10+0.1

Scripts: processes of `ranks chess uci` receive valid and invalid commands in random order. Each search must answer with
exactly one bestmove that is legal in its position, and the process must end with exit code 0. Games: two processes of
`ranks chess uci` with the first player play on the clock of the match, without other work on the machine.

Writes benchmarks/results/chess_uci_DATE.json, part by part; a call replaces the parts that it measures (`--date` names
the file of another day). The exit code is 1 if an engine hung, moved illegally or lost on time. Ctrl-C and SIGTERM end
it early: what was found so far is written and marked as cut short, and the exit code is 130.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from importlib.metadata import version
from itertools import accumulate
from types import FrameType
from typing import Any

from benchmarks.measure import RESULTS, environment, origin, spread, write_result
from ranks.chess.match.game import Conditions, GameRecord
from ranks.chess.match.openings import seeded_openings
from ranks.chess.match.schedule import Participant, pair_tasks, play_pairs
from ranks.chess.match.time_control import TimeControl
from ranks.chess.players.player import Player
from ranks.chess.uci.player import UciPlayer
from tests.chess.uci.uci_conversation import Listener, check_script, random_script

RESULT = "chess_uci"
SCRIPTS_PER_PROCESS = 10
GAMES_PER_LINE = 10
PLAYERS = ("engine:tables", "chess-value", "alphabeta:64?evaluation=position", "mcts:800", "minimax:2")


def command(player: str) -> list[str]:
    return [sys.executable, "-m", "ranks", "chess", "uci", "--player", player]


class EngineProcess(Listener):
    """A process of ours, spoken to as a GUI does; as a context it leaves no process behind."""

    def __init__(self, player: str) -> None:
        super().__init__(self._write)
        self._process = subprocess.Popen(
            command(player),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment(),
            text=True,
            errors="replace",
        )
        threading.Thread(target=self._listen, daemon=True).start()

    def __enter__(self) -> EngineProcess:
        return self

    def __exit__(self, *exception: object) -> None:
        self._process.kill()
        self._process.wait()

    def _write(self, line: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.buffer.write(line.encode(errors="surrogateescape") + b"\n")
        self._process.stdin.flush()

    def end(self) -> int:
        """Say quit; the exit code. Raises TimeoutExpired where it does not end."""
        self.send("quit")
        return self._process.wait(20)

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self.receive(line.rstrip("\n"))


def scripts(number: int, players: Sequence[str]) -> dict[str, Any]:
    """Random scripts, a fresh process for every few, the players in turn."""
    done, searches, faults, uciok_s, ready_s = 0, 0, list[str](), list[float](), list[float]()
    with contextlib.suppress(KeyboardInterrupt):
        for first in range(0, number, SCRIPTS_PER_PROCESS):
            player = players[first // SCRIPTS_PER_PROCESS % len(players)]
            seeds = range(first, min(first + SCRIPTS_PER_PROCESS, number))
            start = time.perf_counter()
            with EngineProcess(player) as engine:
                try:
                    engine.ask("uci", "uciok")
                    uciok_s.append(time.perf_counter() - start)
                    engine.ask("isready", "readyok")
                    ready_s.append(time.perf_counter() - start)
                    for seed in seeds:
                        searches += check_script(engine, random_script(seed))
                    code = engine.end()
                    if code:
                        faults.append(f"{player}: exit code {code} after script {seeds[-1]}")
                except (AssertionError, OSError, subprocess.TimeoutExpired) as fault:
                    faults.append(f"{player}: {fault}"[:500])
            done = seeds.stop
            print(f"{done} of {number} scripts, {searches} searches, {len(faults)} faults", flush=True)
    return {
        "scripts": done,
        "players": list(players),
        "cut_short": done < number,
        "searches": searches,
        "faults": faults,
        "start_to_uciok_s": spread_of(uciok_s, 3),
        "start_to_readyok_s": spread_of(ready_s, 3),
    }


def games(number: int, control: TimeControl, concurrency: int, player: str) -> dict[str, Any]:
    """Games of a player against itself, every opening with both colours."""

    def opened(name: str) -> Participant:
        def make() -> Player:
            return UciPlayer(name, command(player), {})

        return Participant(name, make)

    records: list[GameRecord] = []

    def keep(game: GameRecord) -> None:
        records.append(game)
        if len(records) % GAMES_PER_LINE == 0:
            forfeits = sum(game.forfeited for game in records)
            print(f"{len(records)} of {number} games, {forfeits} forfeits", flush=True)

    tasks = pair_tasks([(opened("first"), opened("second"), number // 2)], seeded_openings(1))
    with (
        contextlib.suppress(KeyboardInterrupt),
        contextlib.closing(play_pairs(tasks, Conditions(control), 1, concurrency, keep)) as pairs,
    ):
        for _ in pairs:
            pass
    slowest_s = [turn.elapsed_s for game in records for turn in game.turns]
    left_s = [left for game in records for side in (0, 1) for left in least_left_s(game, side, control)]
    return {
        "player": player,
        "games": len(records),
        "cut_short": len(records) < number // 2 * 2,
        "time_control": str(control),
        "concurrency": concurrency,
        "endings": dict(Counter(game.reason for game in records).most_common()),
        "faults": dict(Counter(game.reason for game in records if game.forfeited)),
        "plies": spread_of([len(game.turns) for game in records], 0),
        "slowest_move_s": round(max(slowest_s, default=0.0), 3),
        "least_time_left_s": {**spread_of(left_s, 3), "least": round(min(left_s, default=control.time_s), 3)},
    }


def least_left_s(game: GameRecord, side: int, control: TimeControl) -> list[float]:
    """The least that was left on a side's clock when it had moved, before the increment; empty if
    it never moved."""
    spent_s = accumulate(turn.elapsed_s - control.increment_s for turn in game.turns[side::2])
    most_s = max(spent_s, default=None)
    return [] if most_s is None else [control.time_s - control.increment_s - most_s]


def spread_of(values: Sequence[float], digits: int) -> dict[str, float]:
    """The spread of values; empty if there are none."""
    return spread(values, digits) if values else {}


def interrupt(signum: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--scripts", type=int, default=300)
    parser.add_argument("--games", type=int, default=1000)
    parser.add_argument("--tc", type=TimeControl.parse, default="2+0.02", help="seconds for a game + for each move")
    parser.add_argument("--concurrency", type=int, default=1)
    parser.add_argument(
        "--players", nargs="+", default=PLAYERS, help="of the scripts, in turn; the first plays the games"
    )
    parser.add_argument("--date", default=time.strftime("%Y-%m-%d", time.gmtime()), help="of the result file")
    asked = parser.parse_args()
    if asked.tc.moves:
        parser.error("--tc: the time is for the whole game")
    signal.signal(signal.SIGTERM, interrupt)
    player = asked.players[0]
    parts: dict[str, Callable[[], dict[str, Any]]] = {}
    if asked.scripts:
        parts["scripts"] = partial(scripts, asked.scripts, asked.players)
    if asked.games:
        parts[f"games of {player} at {asked.tc}"] = partial(games, asked.games, asked.tc, asked.concurrency, player)
    for name, measure in parts.items():
        about = origin()
        about["versions"] |= {"numba": version("numba")}
        found = measure()
        print(json.dumps(found, indent=2))
        file = f"{RESULT}_{asked.date}"
        path = RESULTS / f"{file}.json"
        before = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
        write_result(file, {**before, name: {"origin": about, **found}})
        print(f"{'WRONG' if found['faults'] else 'right'}{', cut short' if found['cut_short'] else ''}: {path}")
        if found["faults"] or found["cut_short"]:
            return 1 if found["faults"] else 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
