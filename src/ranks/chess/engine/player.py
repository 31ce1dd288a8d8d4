"""The engine as a player: iterative deepening within the limits of a move."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ranks.chess.engine.evaluator import TABLES, Evaluator, load_evaluator
from ranks.chess.engine.search.deepening import Deepening, score_of
from ranks.chess.engine.search.state import MAX_SEARCH_DEPTH, EngineState, forget, new_state, set_root
from ranks.chess.engine.search.stopping import Progress, is_settled
from ranks.chess.engine.search.transpositions import ENTRY_BYTES, largest_table, table_entries
from ranks.chess.players.player import Choice, Info, Limits
from ranks.chess.players.spec import nearest, number
from ranks.chess.players.time_plan import time_plan
from ranks.errors import UserError

if TYPE_CHECKING:
    from ranks.chess.board import Board
    from ranks.chess.core.tables import Words

ENTRIES_PER_NODE = 2
"""The size of the table where nothing is kept from move to move."""
NO_LIMIT = 1 << 62
MOST_THREADS, MOST_HASH_MIB = 256, 4096
FIRST_PROGRESS_S, PROGRESS_S = 3.0, 1.0
"""When a search first reports its nodes, and how often from then on: one iteration can take minutes."""


@dataclass(frozen=True)
class EngineSettings:
    """What the spec of an engine fixes."""

    nodes: int | None = None
    """Nodes of each move. The engine then forgets everything before each move, so that a move of one thread is a
    function of the positions of the game, the nodes, the weights and the size of the table. That is Hash, but at most
    ENTRIES_PER_NODE entries for each node."""
    depth: int | None = None
    threads: int | None = None
    hash_mib: int | None = None
    sound: bool = False
    """No pruning that can change the score."""


class EnginePlayer:
    """An alpha-beta engine; `search.py` describes the search.

    With one thread and a limit of nodes or depth, a move is a function of the game since `new_game`. The
    transposition table and the histories are kept from move to move, unless the spec fixes the nodes."""

    def __init__(self, name: str, evaluator: Evaluator, settings: EngineSettings) -> None:
        self.name, self.settings = name, settings
        self.weights_sha256 = evaluator.sha256
        self._evaluator: Evaluator | None = evaluator
        self._states: list[EngineState] = []
        self._entries = 0
        """Entries that the present table was asked to have."""

    def new_game(self, seed: int) -> None:
        self.clear_hash()

    def clear_hash(self) -> None:
        """Forget everything: the transposition table and the histories."""
        for state in self._states:
            forget(state)
        if self._states:
            self._states[0].table.fill(0)

    def choose(self, board: Board, limits: Limits) -> Choice:
        started_s = limits.now()
        plan = time_plan(limits)
        legal = board.legal_moves()
        moves = [move for move in legal if move in limits.searchmoves] or legal
        settings = self.settings
        states = self._states_for(limits)
        if self._nodes_of_one_move(limits) is not None:
            self.clear_hash()
        for state in states:
            set_root(state, board.rows, board.in_check)
            state.control["sound"] = settings.sound
            # a thread that took no part in earlier searches has counted fewer of them
            state.control["generation"] = states[0].control["generation"]
        most_nodes = min(settings.nodes or NO_LIMIT, limits.nodes or NO_LIMIT)
        all_moves = len(moves) == len(legal)
        deepening = Deepening(states, moves, limits.multipv, all_moves=all_moves, max_nodes=most_nodes)

        progress_s = started_s + FIRST_PROGRESS_S

        def stopped() -> bool:
            nonlocal progress_s
            now_s = limits.now()
            if limits.on_progress is not None and now_s >= progress_s:
                progress_s = now_s + PROGRESS_S
                limits.on_progress(deepening.nodes, now_s - started_s)
            asked = limits.should_stop is not None and limits.should_stop()
            return asked or now_s >= started_s + plan.most_s

        best, steady = Choice(moves[0], pv=(moves[0],)), 0
        reported: Choice | None = None
        most_depth = min(settings.depth or MAX_SEARCH_DEPTH, limits.depth or MAX_SEARCH_DEPTH, MAX_SEARCH_DEPTH)
        with deepening.helpers():
            for depth in range(1, most_depth + 1):
                lines, finished = deepening.iterate(depth, stopped)
                if lines:
                    steady = steady + 1 if lines[0].move == best.move else 0
                    fallen_cp = score_of(best) - score_of(lines[0])
                    best = lines[0]
                    progress = Progress(best, len(moves), steady, fallen_cp, deepening.best_share)
                    elapsed_s = limits.now() - started_s
                    if finished:
                        _report(lines, limits, elapsed_s)
                        reported = best
                    since_s, timed = (limits.ponder_hit and limits.ponder_hit()) or (started_s, limits)
                    if is_settled(progress, timed, time_plan(timed), limits.now() - since_s):
                        break
                if not finished or deepening.nodes >= most_nodes or stopped():
                    break
        choice = replace(best, nodes=deepening.nodes)
        if best is not reported:  # it is of an interrupted iteration
            _report([choice], limits, limits.now() - started_s)
        return choice

    def close(self) -> None:
        self._states, self._evaluator = [], None

    def _nodes_of_one_move(self, limits: Limits) -> int | None:
        """The nodes of a move for which nothing is kept; None if the table and the histories are kept."""
        return self.settings.nodes or (limits.nodes if limits.forget else None)

    def _states_for(self, limits: Limits) -> list[EngineState]:
        """One state for each thread; the first one gives the result. They share one table."""
        evaluator = self._evaluator
        assert evaluator is not None, f"{self.name} is closed"
        threads = self.settings.threads or limits.threads
        entries = (self.settings.hash_mib or limits.hash_mib) * 2**20 // ENTRY_BYTES
        nodes = self._nodes_of_one_move(limits)
        if nodes is not None:
            entries = min(entries, ENTRIES_PER_NODE * nodes)
        entries = table_entries(entries)
        if entries != self._entries:
            self._states = []  # the old table is freed before there is a new one
        table = self._states[0].table if self._states else self._new_table(entries, limits)
        self._entries = entries
        while len(self._states) < threads:
            use_net = evaluator.net is not None
            self._states.append(new_state(evaluator.table_values, evaluator.arrays, table, use_net=use_net))
        return self._states[:threads]

    def _new_table(self, entries: int, limits: Limits) -> Words:
        """A table, or a smaller one and a message. Raises UserError where the spec fixes a size that does not fit."""
        table = largest_table(entries)
        asked_mib, found_mib = (size * ENTRY_BYTES / 2**20 for size in (entries, len(table)))
        if found_mib < asked_mib:
            found = f"a table of {asked_mib:g} MiB does not fit into the memory"
            if self.settings.hash_mib is not None:
                raise UserError(f"the player '{self.name}'", found, f"give Hash={max(int(found_mib), 1)} or less")
            if limits.on_message:
                limits.on_message(f"{found}: it has {found_mib:g} MiB")
        return table


def _report(lines: Sequence[Choice], limits: Limits, elapsed_s: float) -> None:
    if limits.on_info:
        nodes = max(line.nodes for line in lines)
        for rank, line in enumerate(lines, start=1):
            bound = line.is_lower_bound
            limits.on_info(Info(line.depth, line.score_cp, line.mate_in, nodes, elapsed_s, line.pv, rank, bound))


def engine_player(spec: str, argument: str | None, options: Mapping[str, str]) -> EnginePlayer:
    """`engine[:tables|:FOLDER][?nodes=N|depth=D|Threads=N|Hash=MIB|pruning=on|off]`."""
    asked = f"the player '{spec}'"
    limits = {
        "nodes": (1, 10**12),
        "depth": (1, MAX_SEARCH_DEPTH),
        "Threads": (1, MOST_THREADS),
        "Hash": (1, MOST_HASH_MIB),
    }
    numbers: dict[str, int] = {}
    for option, value in options.items():
        if option in limits:
            numbers[option] = number(spec, value, *limits[option], f"engine:tables?{option}={limits[option][1] // 4}")
        elif option != "pruning":
            do = nearest(option, [*limits, "pruning"], "its options are nodes, depth, Threads, Hash and pruning=on|off")
            raise UserError(asked, f"engine has no option '{option}'", do)
    pruning = options.get("pruning", "on")
    if pruning not in ("on", "off"):
        raise UserError(asked, f"pruning is '{pruning}'", "write pruning=on or pruning=off")
    settings = EngineSettings(
        numbers.get("nodes"), numbers.get("depth"), numbers.get("Threads"), numbers.get("Hash"), pruning == "off"
    )
    return EnginePlayer(spec, load_evaluator(argument or TABLES, asked), settings)
