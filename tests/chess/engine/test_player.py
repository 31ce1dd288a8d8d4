"""The engine as a player: its spec, its files, its table, and UCI conversations with it."""

from __future__ import annotations

import itertools
import re
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from ranks.chess.board import Board
from ranks.chess.commands.players import make_player
from ranks.chess.engine import player as player_module
from ranks.chess.engine.nnue.inference import no_net
from ranks.chess.engine.nnue.weights import random_weights, save_weights
from ranks.chess.engine.search import deepening as deepening_module
from ranks.chess.engine.search import transpositions
from ranks.chess.engine.search.deepening import Deepening
from ranks.chess.engine.search.state import EngineState, new_state, set_root
from ranks.chess.engine.search.transpositions import ENTRY_BYTES, new_table
from ranks.chess.engine.tables import default_values, save_tables
from ranks.chess.players.player import Choice, Info, Limits
from ranks.errors import UserError
from tests.chess.fake_clock import FakeClock
from tests.chess.positions import MATES
from tests.chess.uci.uci_conversation import Conversation, check_script, random_script

SMALL = "engine:tables?Hash=1"


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("engine:nowhere", "there is no nowhere"),
        ("engine:run:mine", "run keeps float weights"),
        ("engine:tables?nodes=0", "not a number from 1"),
        ("engine:tables?depth=200", "not a number from 1 to 100"),
        ("engine:tables?node=5", "did you mean nodes"),
        ("engine:tables?pruning=no", "pruning=on or pruning=off"),
    ],
)
def test_bad_specs(spec: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        make_player(spec)


def test_weights_from_files(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="has neither nnue"):
        make_player(f"engine:{tmp_path}")
    values = default_values()
    values[0] *= 2
    save_tables(tmp_path / "tables.safetensors", values)
    first = make_player(f"engine:{tmp_path}?depth=1")
    assert first.choose(Board(), Limits()) != make_player("engine?depth=1").choose(Board(), Limits())
    save_weights(tmp_path / "nnue.safetensors", random_weights(16, seed=1))
    hashes = [
        getattr(make_player(f"engine:{tmp_path}{name}"), "weights_sha256", "") for name in ("", "/tables.safetensors")
    ]
    assert len({*hashes, ""}) == 3
    (tmp_path / "tables.safetensors").write_bytes(b"no tables")
    with pytest.raises(UserError, match="not a readable safetensors file"):
        make_player(f"engine:{tmp_path}/tables.safetensors")
    with pytest.raises(ValueError, match="more than 4000"):
        save_tables(tmp_path / "tables.safetensors", np.full((2, 6, 64), 5000, np.int32))


def test_uci_options_and_searchmoves() -> None:
    with Conversation(lambda: make_player(SMALL)) as gui:
        assert "option name Clear Hash type button" in gui.ask("uci", "uciok")
        assert "Chess960 is not supported" in gui.ask("setoption name UCI_Chess960 value true", "info string")[-1]
        assert "tablebases" in gui.ask("setoption name SyzygyPath value /tb", "info string")[-1]
        assert "Elo" in gui.ask("setoption name UCI_LimitStrength value true", "info string")[-1]
        gui.send("position startpos")
        first = gui.ask("go depth 8", "bestmove")
        kept = gui.ask("go depth 8", "bestmove")
        gui.send("setoption name Clear Hash")
        cleared = gui.ask("go depth 8", "bestmove")
        assert nodes_of(first) == nodes_of(cleared) != nodes_of(kept)
        assert gui.ask("go depth 3 searchmoves a2a3", "bestmove")[-1].startswith("bestmove a2a3")
        lines = gui.ask("go depth 2 searchmoves e2e5 d2d4", "bestmove")
        assert any("'e2e5' is not a legal move" in line for line in lines)
        assert lines[-1].startswith("bestmove d2d4")
        gui.send("go infinite")
        gui.send("setoption name Clear Hash")
        gui.expect("bestmove")
        gui.send("setoption name Threads value 2")
        gui.send("go ponder wtime 1000 btime 1000")
        gui.send("ponderhit")
        gui.expect("bestmove")


@pytest.mark.parametrize("lines", [1, 3])
def test_the_last_report_is_of_the_move_that_is_played(lines: int) -> None:
    """Also where an iteration was interrupted, and where no iteration was finished."""
    player, board = make_player(SMALL), Board("r1bqkb1r/pppp1ppp/2n2n2/4p3/2B1P3/5N2/PPPP1PPP/RNBQK2R w KQkq - 4 4")
    for nodes in (1, *range(200, 8000, 300)):
        infos: list[Info] = []
        player.new_game(0)
        choice = player.choose(board, Limits(nodes=nodes, multipv=lines, on_info=infos.append))
        last = next(info for info in reversed(infos) if info.multipv == 1)
        assert (last.pv, last.depth, last.score_cp) == (choice.pv, choice.depth, choice.score_cp), nodes


def test_several_lines_are_sorted_and_the_first_is_played() -> None:
    player = make_player(SMALL)
    for fen in [MATES[2][7], MATES[3][2], "rn3b2/p2p1kp1/2p4n/2P4P/N3pp2/1K1B3N/PP1P2bP/R1BR4 b - - 0 29"]:
        infos: list[Info] = []
        player.new_game(0)
        choice = player.choose(Board(fen), Limits(depth=7, multipv=4, on_info=infos.append))
        assert infos[-1].nodes == choice.nodes
        assert choice.pv == next(info.pv for info in reversed(infos) if info.multipv == 1)
        for first, second in itertools.pairwise(infos):
            if first.depth == second.depth:
                assert second.multipv == first.multipv + 1
                assert worth(first) >= worth(second), (fen, first, second)


def worth(info: Info) -> float:
    """Higher for the better of two lines."""
    return 1 / info.mate_in if info.mate_in else (info.score_cp or 0) / 1e6


def test_entries_of_all_threads_are_of_the_same_search(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where a thread took no part in the searches before."""
    states: list[EngineState] = []

    def kept(*arguments: Any, use_net: bool) -> EngineState:
        states.append(new_state(*arguments, use_net=use_net))
        return states[-1]

    monkeypatch.setattr(player_module, "new_state", kept)
    player = make_player(SMALL)
    for threads in (1, 1, 2, 1, 2):
        player.choose(Board(), Limits(depth=1, threads=threads))
    assert [int(state.control["generation"][0]) for state in states] == [5, 5]


def test_a_table_that_does_not_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Over UCI it is made smaller, with a message; in a spec its size is an error."""

    def new_table_of_2_mib(entries: int) -> NDArray[np.uint64]:
        if entries > 2 * 2**20 // ENTRY_BYTES:
            raise MemoryError
        return new_table(entries)

    monkeypatch.setattr(transpositions, "new_table", new_table_of_2_mib)
    with Conversation(lambda: make_player("engine:tables")) as gui:
        gui.ask("isready", "readyok")  # its first move has a table of 16 MiB, but nobody listens
        gui.send("setoption name Hash value 64")
        first = gui.ask("go depth 8", "bestmove")
        assert first[0] == "info string a table of 64 MiB does not fit into the memory: it has 2 MiB"
        second = gui.ask("go depth 8", "bestmove")
        assert not any(line.startswith("info string") for line in second)
        assert int(nodes_of(second)) < int(nodes_of(first)), "the table is kept"
        gui.send("setoption name Hash value 2")
        assert gui.ask("go depth 2", "bestmove")[0].startswith("info depth 1 ")
    with pytest.raises(UserError, match="64 MiB does not fit") as error:
        make_player("engine:tables?Hash=64").choose(Board(), Limits(depth=1))
    assert error.value.do == "give Hash=2 or less"


def test_with_fixed_nodes_a_move_depends_on_a_small_hash_alone() -> None:
    """The table of 30,000 nodes has half a MiB, that of 300,000 nodes has 8 MiB."""
    board = Board("r1bqkb1r/pppp1ppp/2n2n2/4p3/2B1P3/5N2/PPPP1PPP/RNBQK2R w KQkq - 4 4")

    def choice(nodes: int, hash_mib: int) -> Choice:
        return make_player(f"engine?nodes={nodes}&Hash={hash_mib}").choose(board, Limits())

    assert choice(30_000, 1) == choice(30_000, 64)
    assert choice(300_000, 1) != choice(300_000, 64)


def nodes_of(lines: list[str]) -> str:
    """The nodes of the last info line."""
    words = next(line for line in reversed(lines) if line.startswith("info depth")).split()
    return words[words.index("nodes") + 1]


def test_random_scripts() -> None:
    searches = 0
    with Conversation(lambda: make_player(SMALL)) as gui:
        for seed in range(8):
            searches += check_script(gui, random_script(seed))
    assert searches > 10


def test_a_move_that_failed_high_is_played_where_its_second_search_is_interrupted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The first search of depth 5 is above its window; the wider one ends before its first move has a score."""
    board = Board()
    state = new_state(default_values(), no_net(), new_table(1024), use_net=False)
    set_root(state, board.rows, board.in_check)
    deepening = Deepening([state], board.legal_moves(), 1, all_moves=True, max_nodes=10**9)
    found = [deepening.iterate(depth, lambda: False)[0][0] for depth in range(1, 5)][-1]
    other = next(move for move in board.legal_moves() if move != found.move)
    searches = iter([True, False])

    def search(state: EngineState, max_nodes: int) -> bool:
        finished = next(searches)
        root = state.frames[0:1]
        root["best"], root["best_move"], root["pv_length"] = (500, other, 1) if finished else (-9999, 0, 0)
        state.pv[0, 0] = other
        return finished

    monkeypatch.setattr(deepening_module, "run_search", search)
    lines, finished = deepening.iterate(5, lambda: True)
    assert not finished
    assert [(line.move, line.score_cp, line.is_lower_bound) for line in lines] == [(other, 500, True)]


def test_a_score_that_is_a_lower_bound_is_reported_as_one() -> None:
    """With some numbers of nodes the search ends after a score above its window, before the score is known."""
    player, board = make_player(SMALL), Board("r2q1rk1/1b2bppp/p2ppn2/1p6/3NPP2/2N1B3/PPPQ2PP/2KR1B1R w - - 0 13")
    nodes_of_kind: dict[bool, int] = {}
    for nodes in range(16_000, 22_000, 500):
        player.new_game(0)
        nodes_of_kind[player.choose(board, Limits(nodes=nodes)).is_lower_bound] = nodes
    assert set(nodes_of_kind) == {False, True}
    with Conversation(lambda: make_player(SMALL)) as gui:
        gui.send(f"position fen {board.fen()}")
        for is_bound, nodes in nodes_of_kind.items():
            gui.send("setoption name Clear Hash")
            *lines, _ = gui.ask(f"go nodes {nodes}", "bestmove")
            assert [" lowerbound " in line for line in lines] == [False] * (len(lines) - 1) + [is_bound]


def test_a_long_search_reports_its_nodes_every_second_from_the_third_on() -> None:
    """A client takes a minute without any line for an engine that hangs."""
    clock = FakeClock()
    with Conversation(lambda: make_player(SMALL), clock) as gui:
        gui.send("position startpos")
        gui.send("go infinite")
        lines = gui.expect("info depth 6 ")
        for seconds, milliseconds in ((2.75, None), (0.25, 3000), (0.75, None), (0.5, 4250), (5.0, 9250)):
            clock.advance(seconds)
            if milliseconds is not None:
                lines += gui.expect("info nodes ")
                assert re.fullmatch(rf"info nodes \d+ nps \d+ time {milliseconds}", lines[-1])
        lines += gui.ask("stop", "bestmove")
    assert sum(line.startswith("info nodes ") for line in lines) == 3


def test_reports_of_nodes_change_no_move() -> None:
    board = Board("r1bqkb1r/pppp1ppp/2n2n2/4p3/2B1P3/5N2/PPPP1PPP/RNBQK2R w KQkq - 4 4")
    seen: list[tuple[int, float]] = []
    limits = Limits(nodes=30_000, now=FakeClock(tick_s=0.5), on_progress=lambda *found: seen.append(found))
    assert make_player(SMALL).choose(board, limits) == make_player(SMALL).choose(board, Limits(nodes=30_000))
    assert seen[0][1] >= 3.0
    assert all(later[0] >= earlier[0] and later[1] >= earlier[1] + 1 for earlier, later in itertools.pairwise(seen))


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[threading.Thread]:
    """The threads that were started since."""
    threads: list[threading.Thread] = []

    class Kept(threading.Thread):
        def start(self) -> None:
            threads.append(self)
            super().start()

    monkeypatch.setattr(threading, "Thread", Kept)
    return threads


def test_helper_threads_are_started_once_for_a_move_and_end_with_it(started: list[threading.Thread]) -> None:
    player = make_player("engine:tables?Hash=1&Threads=2")
    for fen in MATES[2]:
        player.new_game(0)
        assert player.choose(Board(fen), Limits(mate=2)).mate_in == 2, fen
    assert player.choose(Board(), Limits(depth=6)).move in Board().legal_moves()
    assert len(started) == len(MATES[2]) + 1
    assert not any(thread.is_alive() for thread in started)


def test_helper_threads_end_where_a_search_fails(started: list[threading.Thread]) -> None:
    def fail(info: Info) -> None:
        if info.depth == 4:
            raise BrokenPipeError

    with pytest.raises(BrokenPipeError):
        make_player(SMALL).choose(Board(), Limits(threads=3, on_info=fail))
    assert len(started) == 2
    assert not any(thread.is_alive() for thread in started)
