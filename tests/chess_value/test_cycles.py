"""What a cycle makes of few positions, of the last cycle, and of hosts with different engines."""

from __future__ import annotations

import shutil
import threading
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from ranks import Learner, RunConfig, World
from ranks.chess.board import Board
from ranks.chess.core.children import random_children
from ranks.chess.core.moves import MAX_MOVES
from ranks.chess.core.words import KEY_WORD
from ranks.engine.distributed.rendezvous.process_env import ProcessEnv
from ranks.engine.files.jsonl import read_rows
from ranks.engine.runs.run import Run
from ranks.errors import UserError
from ranks.hardware.forecast.echo_comm import EchoComm
from ranks.selfplay.snapshots import saved_iterations
from ranks.workloads.chess_value.batches import batch_of
from ranks.workloads.chess_value.config import Config, LabelConfig, PlayConfig
from ranks.workloads.chess_value.games.cycle_games import CycleGames
from ranks.workloads.chess_value.games.game import FinishedGame
from ranks.workloads.chess_value.games.positions import positions_of
from ranks.workloads.chess_value.labelling import engine_labels
from ranks.workloads.chess_value.labelling.engine_labels import EngineLabels
from ranks.workloads.chess_value.labels.label import NO_RESULT, NO_SCORE, Labelled
from ranks.workloads.chess_value.net.building import build_net
from ranks.workloads.chess_value.net.losses import ValueBatch, value_loss
from ranks.workloads.chess_value.parts import saved_parts
from ranks.workloads.chess_value.players.saved_net import from_run
from ranks.workloads.chess_value.positions.sourced import SourcedPositions
from ranks.workloads.chess_value.presets import PRESETS
from ranks.workloads.chess_value.source_config import SourceConfig
from ranks.workloads.chess_value.window import PositionWindow
from tests.chess_value.boards import random_boards
from tests.chess_value.labels.label_engine import engine_command
from tests.chess_value.tiny import CONFIG, train


def test_the_last_cycle_passes_over_the_whole_window_and_more_cycles_lose_no_updates(tmp_path: Path) -> None:
    cfg = replace(CONFIG, final_passes=2.0)

    def updates() -> list[float]:
        return [row["cycle/updates"] for row in read_rows(tmp_path / "runs" / "tiny" / "metrics.jsonl")]

    train(tmp_path, cfg=cfg)
    positions = len(saved_parts(tmp_path / "runs" / "tiny", "positions"))
    due = positions // cfg.global_batch
    assert sum(updates()) == due + 2 * positions // cfg.global_batch
    assert updates()[0] < due
    events = [event.get("text", "") for event in read_rows(tmp_path / "runs" / "tiny" / "events.jsonl")]
    assert any("give more --games" in text for text in events), "twenty updates are few"
    train(tmp_path, cfg=replace(cfg, iterations=3))
    added = len(saved_parts(tmp_path / "runs" / "tiny", "positions")) - positions
    assert updates()[2] >= added // cfg.global_batch + 2 * (positions + added) // cfg.global_batch - 1


def test_the_nets_of_earlier_cycles_stay_as_snapshots(tmp_path: Path) -> None:
    train(tmp_path, cfg=replace(CONFIG, snapshot_every=1))
    run = tmp_path / "runs" / "tiny"
    assert saved_iterations(run, "the run") == [0, 1, 2], "0 is untrained"
    first, last = (from_run(f"{run}/{cycle}", "the net").model.state_dict() for cycle in (1, 2))
    shutil.rmtree(run / "checkpoints" / "00000001")
    kept = from_run(f"{run}/1", "the net").model.state_dict()
    assert all(torch.equal(kept[name], first[name]) for name in first)
    assert not all(torch.equal(kept[name], last[name]) for name in last)


def test_the_schedule_ends_with_the_updates_of_full_cycles() -> None:
    cfg = PRESETS["cpu"]()
    trained = cfg.iterations * cfg.max_positions * 0.95
    assert cfg.full_updates == int((2 + 4) * trained / 2048)
    assert replace(cfg, window=200_000).full_updates == int((2 * trained + 4 * 200_000) / 2048)
    assert Config().full_updates > 1000
    with pytest.raises(UserError, match="--final-passes -1"):
        replace(cfg, final_passes=-1.0)


def test_children_of_games_train_and_validate_with_their_games_and_occur_once() -> None:
    games = [FinishedGame(moves_of(seed), 1, 0) for seed in range(12)]
    played = CycleGames(games, own=7, nodes=0)
    none, some = (positions_of(played, 3, 0, 0.4, children=n, most=10**6, quiet=True, mirror=False) for n in (0, 4))
    count = none.num_positions
    for column, longer in zip(none, some, strict=True):
        assert np.array_equal(longer[:count], column), "the games come first"
    children = some.take(slice(count, None))
    assert 2 * count < children.num_positions <= 4 * count
    assert (children.result_N == NO_RESULT).all()
    assert (children.cp_N == NO_SCORE).all()
    assert len(np.unique(some.boards_N13[:, KEY_WORD])) == some.num_positions
    few = positions_of(played, 3, 0, 0.4, children=4, most=count // 4, quiet=True, mirror=False)
    assert few.num_positions <= 2 * count, "one of each is enough where few will be used"
    assert few.num_positions > count
    parents = {True: set[bytes](), False: set[bytes]()}
    for validates in (True, False):
        mine = none.take(none.validates_N == validates).boards_N13
        after = random_children(mine, np.full((len(mine), MAX_MOVES), 0.5)).boards_M13
        parents[validates] = {board.tobytes() for board in after}
    for board_13, validates in zip(children.boards_N13, children.validates_N.tolist(), strict=True):
        assert board_13.tobytes() in parents[validates]


def moves_of(seed: int) -> NDArray[np.uint16]:
    """Thirty random legal moves from the start position."""
    board, generator = Board(), np.random.default_rng(seed)
    for _ in range(30):
        board.push(int(generator.choice(board.legal_moves())))
    return np.array(board.moves, np.uint16)


@pytest.mark.parametrize(
    ("change", "found"),
    [
        ({"labels": "search", "label": LabelConfig(limit="static")}, "its own evaluation"),
        ({"label": LabelConfig(limit="static"), "sources": SourceConfig(quiet=False)}, "in check"),
        ({"labels": "outcome", "play": PlayConfig(children=2)}, "their results are unknown"),
    ],
)
def test_positions_that_would_have_no_label_are_refused(change: dict[str, Any], found: str) -> None:
    with pytest.raises(UserError) as error:
        replace(Config(), **change)
    assert found in error.value.found
    with pytest.raises(UserError, match=r"--play\.children 219"):
        PlayConfig(children=219)


def test_hosts_with_different_engines_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    closed: list[bool] = []
    teacher = SimpleNamespace(about="Stockfish 15.1, depth:4", close=lambda: closed.append(True))
    monkeypatch.setattr(engine_labels, "on_every_rank", lambda world, make: teacher)

    def world(other: str) -> Any:
        def gather(mine: Any) -> list[Any]:
            return [(0, 0), (1, 0)] if isinstance(mine, tuple) else [mine, other]

        places = SimpleNamespace(local_rank=0)
        comm = SimpleNamespace(gather_objects=gather)
        host = dict(device=torch.device("cpu"), size=2, rank=0, process_env=places)
        return SimpleNamespace(comm=comm, config=RunConfig(), **host)

    assert EngineLabels(LabelConfig(), world("Stockfish 15.1, depth:4")).identity == "Stockfish 15.1, depth:4"
    with pytest.raises(UserError, match=r"they differ: Stockfish 15.1, depth:4; Stockfish 16, depth:4"):
        EngineLabels(LabelConfig(), world("Stockfish 16, depth:4"))
    assert closed == [True]


def test_a_forecast_of_two_ranks_labels_each_position_once(tmp_path: Path) -> None:
    """The second rank does not exist. It is on the host of the first one, whose engines label all positions."""
    world = World(RunConfig(), ProcessEnv("alone"), torch.device("cpu"), EchoComm(2), "chess-value")
    world.stop.install()
    labels = EngineLabels(
        LabelConfig(engine=engine_command(tmp_path), limit="nodes:30", cache=tmp_path / "cache"), world
    )
    try:
        none = np.zeros(5, np.int8)
        scores = np.full(5, NO_SCORE, np.int16)
        found = SourcedPositions(random_boards(5), scores, none, none, none.astype(np.bool_))
        (part,) = labels.label(found, 1, lambda: pytest.fail("no net plays"))
        assert part.computed == 5
    finally:
        labels.close()
        world.leave()


def test_a_rank_whose_engines_label_while_it_trains_has_one_thread(tmp_path: Path) -> None:
    world = World.join(RunConfig(runs_dir=tmp_path, name="run", threads=2), device="cpu", workload="chess-value")
    labels = EngineLabels(
        LabelConfig(engine=engine_command(tmp_path), limit="nodes:30", cache=tmp_path / "cache"), world
    )
    try:
        assert not labels.overlaps, "on the CPU the engines wait"
        labels.overlaps = True
        none, scores = np.zeros(8, np.int8), np.full(8, NO_SCORE, np.int16)
        found = SourcedPositions(random_boards(8), scores, none, none, none.astype(np.bool_))
        threads = [torch.get_num_threads() for _ in labels.label(found, 3, lambda: pytest.fail("no net plays"))]
        assert threads == [1, 1, 1]
        assert torch.get_num_threads() == 2
    finally:
        labels.close()
        world.leave()


def test_a_thread_reads_the_batches_that_are_due_and_none_later(tmp_path: Path) -> None:
    read: list[tuple[str, int]] = []

    def to_batch(labelled: Labelled) -> ValueBatch:
        read.append((threading.current_thread().name, len(labelled.boards_N13)))
        return batch_of(labelled, "nnue")

    world = World.join(RunConfig(runs_dir=tmp_path, name="run", shards=1), device="cpu", workload="chess-value")
    window = PositionWindow("positions", 1000, to_batch, world)
    net = build_net(CONFIG.net)
    learner = Learner(net, CONFIG.optim, world, global_batch=20, updates=100)
    boards_N13, zeros = random_boards(100), np.zeros(100, np.int8)
    updates: list[int] = []
    with Run.open(CONFIG, world, keep={"learner": learner, "window": window}) as run:
        for cycle in run.iterations(2, long=True):
            window.add(cycle, Labelled(boards_N13, zeros.astype(np.int16), zeros, zeros))
            for batch in window.batches(20, 1.0):
                learner.step(partial(value_loss, kind="nnue", mix=0.5), batch)
            updates.append(window.updates)
            by_thread = [count for name, count in read if name == "data worker 0"]
            assert by_thread == [20] * window.updates, "each batch is read once, and none of a later window"
    assert updates == [5, 10]
    world.leave()
