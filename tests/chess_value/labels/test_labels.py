"""Labels: the same in any order and with any number of engines; engines that fail; none left afterwards."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from ranks.chess.commands.players import make_player
from ranks.chess.engine.search.quiet import quiet_mask
from ranks.chess.fen import format_fen, parse_fen
from ranks.chess.uci.player import UciPlayer
from ranks.chess.uci.timeouts import Timeouts
from ranks.errors import ProcessLost, UserError
from ranks.workloads.chess_value.helper_process import HelperHangs
from ranks.workloads.chess_value.labels import teacher
from ranks.workloads.chess_value.labels.engine_pool import EnginePool
from ranks.workloads.chess_value.labels.label import NO_SCORE
from ranks.workloads.chess_value.labels.pool_process import PoolProcess, PoolSettings
from ranks.workloads.chess_value.labels.position_keys import fresh_fens
from ranks.workloads.chess_value.labels.teacher import TaughtLabels, Teacher, TeacherSettings, engines_here
from ranks.workloads.chess_value.labels.teacher_engine import STATIC_AHEAD, TeacherEngine, find_teacher, label_limits
from ranks.workloads.chess_value.labels.units import MATE_CP, MOST_CP, clipped_cp, win_probability
from tests.chess.uci.fake_engine import processes_of
from tests.chess_value.boards import random_boards
from tests.chess_value.labels.label_engine import engine_command

TIMEOUTS = Timeouts(start_s=60.0, ready_s=60.0, late_s=60.0, silent_s=60.0, move_s=60.0, quit_s=0.3)
SHORT = replace(TIMEOUTS, silent_s=1.0)
BOARDS = random_boards(500)


def scores(command: str, boards_N13: NDArray[np.uint64], engines: int, limit: str = "nodes:30") -> NDArray[np.int16]:
    pool = EnginePool(find_teacher(command), label_limits(limit), engines, TIMEOUTS)
    cp_N = np.full(len(boards_N13), NO_SCORE, np.int16)
    for index, cp in pool.scores(boards_N13):
        assert cp_N[index] == NO_SCORE, "each position is labelled once"
        cp_N[index] = cp
    pool.close()
    return cp_N


def command_of(engine: str, folder: Path) -> str:
    """The small engine, or Stockfish; without it the test is skipped."""
    if engine == "small":
        return engine_command(folder)
    try:
        find_teacher("stockfish")
    except UserError:
        pytest.skip("Stockfish is not installed")
    return "stockfish"


@pytest.mark.parametrize("engine", ["small", "stockfish"])
def test_labels_do_not_depend_on_the_order_or_on_the_number_of_engines(engine: str, tmp_path: Path) -> None:
    command = command_of(engine, tmp_path)
    order = np.random.default_rng(3).permutation(len(BOARDS))
    first = scores(command, BOARDS, engines=1)
    assert (first != NO_SCORE).all()
    assert len(set(first.tolist())) > 100
    assert np.array_equal(scores(command, BOARDS[order], engines=3), first[order])
    assert np.array_equal(scores(command, BOARDS, engines=3), first)


@pytest.mark.parametrize("engine", ["small", "stockfish"])
def test_static_labels_are_those_of_the_command_eval(engine: str, tmp_path: Path) -> None:
    command = command_of(engine, tmp_path)
    quiet = BOARDS[quiet_mask(BOARDS)]
    assert len(quiet) > 2 * STATIC_AHEAD
    first = scores(command, quiet, engines=1, limit="static")
    order = np.random.default_rng(3).permutation(len(quiet))
    assert np.array_equal(scores(command, quiet[order], engines=3, limit="static"), first[order])
    asked = "".join(f"position fen {fen}\neval\n" for fen in fresh_fens(quiet))
    said = subprocess.run(find_teacher(command), input=asked, capture_output=True, text=True, check=True).stdout
    white_cp = [round(100 * float(line.split()[2])) for line in said.splitlines() if line.startswith("Final")]
    assert first.tolist() == [
        cp if "w" in fen.split()[1] else -cp for cp, fen in zip(white_cp, fresh_fens(quiet), strict=True)
    ]


def test_a_position_in_check_has_no_static_label(tmp_path: Path) -> None:
    command = engine_command(tmp_path, board=fresh_fens(BOARDS[5:6])[0])
    assert np.flatnonzero(scores(command, BOARDS[:70], 1, "static") == NO_SCORE).tolist() == [5]


@pytest.mark.parametrize(
    ("fault", "found"),
    [
        ("no eval", "has no command `eval` as Stockfish has"),
        ("odd eval", r"\(white\) = 12 cp', which has no evaluation in pawns"),
        ("leaves", "died with exit code 0"),
    ],
)
def test_an_engine_without_static_evaluations_is_refused(fault: str, found: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=found):
        scores(engine_command(tmp_path, fault), BOARDS[:3], 1, "static")


def test_many_positions_are_written_as_one_is() -> None:
    special = [
        "r3k2r/8/8/8/8/8/8/R3K2R b Kq - 0 1",
        "4k3/8/8/3pP3/8/8/8/4K3 w - d6 0 1",
        "8/8/8/8/8/7k/8/6QK w - - 0 1",
    ]
    boards = np.concatenate([BOARDS[:100], *map(parse_fen, special)])
    boards[:, 11] = np.uint64(1 << 16)
    assert fresh_fens(boards) == [format_fen(board_13) for board_13 in boards]
    assert fresh_fens(boards[:0]) == []


def test_the_clock_of_a_position_does_not_change_its_label(tmp_path: Path) -> None:
    later = BOARDS[:20].copy()
    later[:, 11] += np.uint64(7 + (3 << 16))
    command = engine_command(tmp_path)
    assert np.array_equal(scores(command, BOARDS[:20], 1), scores(command, later, 1))


@pytest.mark.parametrize("limit", ["depth:1", "static"])
@pytest.mark.parametrize(("fault", "tries"), [("dies once", 2), ("hangs once", 2), ("dies", 2), ("hangs", 2)])
def test_a_position_is_tried_twice_then_set_aside(fault: str, tries: int, limit: str, tmp_path: Path) -> None:
    board = fresh_fens(BOARDS[7:8])[0].split()[0]
    wanted = scores(engine_command(tmp_path), BOARDS[:12], 1, limit)
    said: list[str] = []
    command = find_teacher(engine_command(tmp_path, fault, board))
    pool = EnginePool(command, label_limits(limit), 2, SHORT, said.append)
    found = dict(pool.scores(BOARDS[:12]))
    pool.close()
    assert len((tmp_path / "marker").read_text().split()) == tries
    if fault.endswith("once"):
        assert [found[index] for index in range(12)] == wanted.tolist()
        assert len(said) == 1
    else:
        assert found.pop(7) == NO_SCORE
        assert [found[index] for index in range(12) if index != 7] == np.delete(wanted, 7).tolist()
        assert len(said) == 2
        assert "no label, two engines failed" in said[1]
    assert board in said[-1]
    assert processes_of(tmp_path / "engine.py") == []


def test_an_engine_that_ends_after_its_answer_loses_no_score(tmp_path: Path) -> None:
    board = fresh_fens(BOARDS[3:4])[0].split()[0]
    wanted = scores(engine_command(tmp_path), BOARDS[:12], 1)
    said: list[str] = []
    command = find_teacher(engine_command(tmp_path, "answers and leaves", board))
    pool = EnginePool(command, label_limits("nodes:30"), 1, TIMEOUTS, said.append)
    found = dict(pool.scores(BOARDS[:12]))
    pool.close()
    assert [found[index] for index in range(12)] == wanted.tolist()
    assert len(said) == 1
    assert fresh_fens(BOARDS[4:5])[0] in said[0], "the engine had the next position already"
    assert processes_of(tmp_path / "engine.py") == []


def test_a_static_evaluation_that_is_cut_off_loses_no_score(tmp_path: Path) -> None:
    board = fresh_fens(BOARDS[7:8])[0].split()[0]
    wanted = scores(engine_command(tmp_path), BOARDS[:12], 1, "static")
    said: list[str] = []
    pool = EnginePool(find_teacher(engine_command(tmp_path, "cut once", board)), None, 1, TIMEOUTS, said.append)
    found = dict(pool.scores(BOARDS[:12]))
    pool.close()
    assert [found[index] for index in range(12)] == wanted.tolist()
    assert len(said) == 1
    assert board in said[0]


def test_few_positions_are_spread_over_all_engines(tmp_path: Path) -> None:
    pool = EnginePool(find_teacher(engine_command(tmp_path)), None, 3, TIMEOUTS)
    found = pool.scores(BOARDS[:6])
    next(found)
    assert len(processes_of(tmp_path / "engine.py")) == 3
    found.close()
    pool.close()


@pytest.mark.parametrize(
    ("command", "found"),
    [
        ("no-such-engine-here", "there is no program 'no-such-engine-here'"),
        ("{python} -c pass", "the engine died with exit code 0"),
        ("{engine}", "positions in a row ended two engines each; the last engine gave no score"),
    ],
)
def test_an_engine_that_is_none_is_one_error(command: str, found: str, tmp_path: Path) -> None:
    engine = engine_command(tmp_path, "scoreless")
    text = command.format(python=sys.executable, engine=engine)
    with pytest.raises(UserError) as error:
        scores(text, BOARDS[:15], engines=1)
    assert found in error.value.found
    assert processes_of(tmp_path / "engine.py") == []


def test_without_stockfish_the_error_says_how_to_install_it_and_what_needs_none() -> None:
    with pytest.raises(UserError) as error:
        find_teacher("stockfish-that-is-missing")
    assert "install" in error.value.do
    assert "--labels search or --labels outcome" in error.value.do


def test_the_units_of_scores() -> None:
    assert clipped_cp(13, None) == 13
    assert clipped_cp(-99_999, None) == -MOST_CP
    assert clipped_cp(None, 3) == MATE_CP
    assert clipped_cp(None, 0) == clipped_cp(None, -5) == -MATE_CP
    p_N = win_probability(np.array([0, 400, -400, MATE_CP, -MATE_CP], np.int16))
    assert p_N.tolist() == pytest.approx([0.5, 1 / (1 + np.exp(-1)), 1 / (1 + np.exp(1)), 1, 0])
    assert (p_N[3], p_N[4]) == (1, 0)


def test_engines_never_exceed_the_cores_that_ranks_leave(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(teacher, "available_cores", lambda: 4)
    said: list[str] = []
    assert [engines_here(asked, 1, said.append) for asked in (None, 2, 3, 64)] == [3, 2, 3, 3]
    assert said == ["64 engines asked for, 3 started: one for each free core of this machine"]
    assert engines_here(None, 8, said.append) == 1


def test_a_second_labelling_comes_from_the_cache(tmp_path: Path) -> None:
    settings = TeacherSettings(engine_command(tmp_path), "nodes:5", 2, tmp_path / "cache", timeouts=TIMEOUTS)
    twice = np.concatenate([BOARDS[:40], BOARDS[:10]])
    taught = Teacher(settings)
    first: TaughtLabels = taught.submit(twice).result()
    assert (first.cached, first.computed) == (0, 40)
    assert np.array_equal(first.cp_N[40:], first.cp_N[:10])
    second, third = taught.submit(twice), taught.submit(BOARDS[30:60])
    assert (second.result().cached, second.result().computed) == (50, 0)
    assert np.array_equal(second.result().cp_N, first.cp_N)
    assert (third.result().cached, third.result().computed) == (10, 20)
    taught.close()
    assert processes_of(tmp_path / "engine.py") == []


def test_an_engine_that_is_killed_while_it_starts_is_started_once_more(tmp_path: Path) -> None:
    marker, script = tmp_path / "once", tmp_path / "killed.sh"
    script.write_text(f"[ -e {marker} ] || {{ touch {marker}; kill -9 $$; }}; exec {engine_command(tmp_path)}\n")
    assert (scores(f"sh {script}", BOARDS[:3], engines=1) != NO_SCORE).all()
    marker.unlink()
    player = make_player(f"uci:sh {script}@5")
    player.close()
    script.write_text("kill -9 $$\n")
    with pytest.raises(UserError, match="died by SIGKILL"):
        make_player(f"uci:sh {script}@5")


def test_an_engine_that_is_stopped_while_it_starts_is_started_once_more(tmp_path: Path) -> None:
    marker, script = tmp_path / "once", tmp_path / "stopped.sh"
    script.write_text(f"[ -e {marker} ] || {{ touch {marker}; kill -STOP $$; }}; exec {engine_command(tmp_path)}\n")
    UciPlayer("engine", ["/bin/sh", str(script)], {}, timeouts=Timeouts(start_s=3.0)).close()
    script.write_text("kill -STOP $$\n")
    with pytest.raises(UserError, match="did not say uciok"):
        UciPlayer("engine", ["/bin/sh", str(script)], {}, timeouts=Timeouts(start_s=0.2))


def test_a_killed_process_of_the_engines_is_a_lost_process(tmp_path: Path) -> None:
    """With which the launcher starts the ranks again; also where it was killed between two labels."""
    taught = Teacher(TeacherSettings(engine_command(tmp_path), "nodes:1", 1, tmp_path / "labels"))
    taught.label(BOARDS[:5])
    taught._pool._process.kill()
    time.sleep(0.2)
    with pytest.raises(ProcessLost, match="killed by signal 9"):
        taught.label(BOARDS[5:10])
    taught.close()


@pytest.mark.parametrize("count", [5, 20_000])
def test_a_stopped_process_of_the_engines_hangs_whether_it_takes_the_positions_or_not(
    count: int, tmp_path: Path
) -> None:
    """Many positions do not fit into the socket."""
    taught = Teacher(TeacherSettings(engine_command(tmp_path), "nodes:1", 1, tmp_path / "labels", silence_s=1.0))
    taught.label(BOARDS[:5])
    os.kill(taught._pool._process.pid, signal.SIGSTOP)
    with pytest.raises(HelperHangs, match=r"drives the engines .* hangs: it is stopped .*no sign of life for 1 s"):
        taught.label(random_boards(5 + count)[5:])
    taught.close()


def test_scores_that_nobody_took_never_become_those_of_the_next_positions(tmp_path: Path) -> None:
    pool = PoolProcess(PoolSettings(find_teacher(engine_command(tmp_path)), "nodes:1", 1), print)

    def full_disk(index_N: NDArray[np.int64], cp_N: NDArray[np.int16]) -> None:
        raise OSError("no space left")

    with pytest.raises(OSError, match="no space left"):
        pool.score(BOARDS[:5], full_disk)
    with pytest.raises(ProcessLost):
        pool.score(BOARDS[5:10], lambda index_N, cp_N: pytest.fail("scores of the first positions"))
    pool.close()


def test_no_engine_is_left_after_kill_9_of_the_run(tmp_path: Path) -> None:
    code = """
import sys, time
from pathlib import Path
from ranks.workloads.chess_value.labels.teacher import Teacher, TeacherSettings
from tests.chess_value.boards import random_boards
teacher = Teacher(TeacherSettings(sys.argv[1], "nodes:1", 2, Path(sys.argv[2])))
pending = teacher.submit(random_boards(20))
print("started", flush=True)
time.sleep(600)
"""
    board = fresh_fens(random_boards(1))[0].split()[0]
    command = engine_command(tmp_path, "hangs", board)
    argv = [sys.executable, "-c", code, command, str(tmp_path / "cache")]
    with subprocess.Popen(argv, stdout=subprocess.PIPE) as run:
        assert run.stdout is not None
        run.stdout.readline()
        while not (tmp_path / "marker").exists():
            time.sleep(0.02)
        assert processes_of(tmp_path / "engine.py")
        run.send_signal(signal.SIGKILL)
    for _ in range(1000):
        if not processes_of(tmp_path / "engine.py"):
            break
        time.sleep(0.02)
    assert processes_of(tmp_path / "engine.py") == []


def test_engines_of_one_name_with_other_arguments_have_labels_of_their_own(tmp_path: Path) -> None:
    """An argument can name another net."""
    identities = set[str]()
    for net in ("A", "A", "B"):
        command = [*shlex.split(engine_command(tmp_path)), f"--weights={net}"]
        engine = TeacherEngine(command, label_limits("nodes:5"), TIMEOUTS)
        identities.add(engine.identity)
        engine.client.close()
    assert len(identities) == 2
