"""Whole trainings without Stockfish: the same on one and two ranks and after kills, evaluated, played with."""

from __future__ import annotations

import hashlib
import json
import os
import signal
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from ranks import KeptFiles, Learner, OptimConfig, RunConfig, World, stream
from ranks.chess.board import Board
from ranks.chess.commands import players
from ranks.chess.commands.players import make_player
from ranks.chess.players.player import Limits
from ranks.cli.main import main
from ranks.errors import UserError
from ranks.workloads import chess_value
from ranks.workloads.chess_value import Config
from ranks.workloads.chess_value.batches import batch_of
from ranks.workloads.chess_value.config import LabelConfig, PlayConfig, RatingConfig
from ranks.workloads.chess_value.config import ValueNetConfig as NetConfig
from ranks.workloads.chess_value.cycle_report import strength_lines
from ranks.workloads.chess_value.labels.label import SOURCES, Labelled
from ranks.workloads.chess_value.net.building import build_net
from ranks.workloads.chess_value.net.losses import ValueBatch, value_loss
from ranks.workloads.chess_value.parts import saved_parts
from ranks.workloads.chess_value.players import specs
from ranks.workloads.chess_value.presets import PRESETS
from ranks.workloads.chess_value.source_config import SourceConfig
from tests.chess_value.boards import random_boards
from tests.chess_value.labels.label_engine import engine_command
from tests.chess_value.tiny import CONFIG, run_config, train
from tests.engine.group import FORKED, run_ranks

KILLED_AT = (("positions", 0), ("positions", 1), ("best", 0))
"""Kept files after which a run is killed: (folder, how many of the folder were written before)."""


DEPTH_4 = Config(labels="search", label=LabelConfig(limit="depth:4"))
"""An nnue searches to a depth; a cnn and a resnet cannot."""


def rows(folder: Path, name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "runs" / name / "metrics.jsonl").read_text().splitlines()]


def results(row: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in row.items() if key.startswith(("rollout/", "train/", "val/", "match/"))}


def fingerprints(world: World, *cfgs: Config) -> list[str]:
    """Of trainings one after the other."""
    found: list[str] = []
    for number, cfg in enumerate(cfgs):
        torch.manual_seed(0)
        name = f"{world.config.name}-{number}"
        other = World(replace(world.config, name=name), world.process_env, world.device, world.comm, "chess-value")
        found.append(chess_value.train(cfg, other).fingerprint)
    return found


def killed(folder: Path, kept: str, before: int, init_from: Path | None = None) -> None:
    """Train, and die after a kept file was written and before a checkpoint names it."""
    write, written = KeptFiles.write, 0

    def dying(self: KeptFiles, iteration: int, arrays: Any) -> Any:
        nonlocal written
        file = write(self, iteration, arrays)
        if self.name == kept:
            written += 1
            if written > before:
                os.kill(os.getpid(), signal.SIGKILL)
        return file

    KeptFiles.write = dying
    train(folder, "killed", init_from=init_from)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with runs/tiny."""
    folder = tmp_path_factory.mktemp("trained")
    torch.set_num_threads(1)
    train(folder)
    return folder


def test_two_ranks_train_the_same_net_as_one(tmp_path: Path) -> None:
    outcome = replace(CONFIG, iterations=1, labels="outcome", games=6, play=PlayConfig(nodes=30, max_plies=120))
    found = [
        run_ranks(size, fingerprints, CONFIG, outcome, config=run_config(tmp_path, f"on-{size}"), tmp_path=tmp_path)
        for size in (1, 2)
    ]
    assert found[0][0] == found[1][0] == found[1][1]
    for number in (0, 1):
        alone, two = (rows(tmp_path, f"on-{size}-{number}") for size in (1, 2))
        assert [results(row) for row in alone] == [results(row) for row in two]
    assert {"rollout/games", "train/loss", "val/loss_own", "match/rating"} <= alone[0].keys()


def test_labels_of_an_engine_train_the_same_net_on_one_and_two_ranks_cold_and_warm(tmp_path: Path) -> None:
    """The default mode. Engines of the pool search what no run has labelled before."""
    found, cached = dict[str, list[str]](), dict[str, list[float]]()
    for run, size, cache in (("cold", 1, "first"), ("warm", 1, "first"), ("two", 2, "second")):
        label = LabelConfig(limit="nodes:30", engine=engine_command(tmp_path), cache=tmp_path / cache)
        cfg = replace(CONFIG, iterations=1, labels="stockfish", label=label)
        found[run] = run_ranks(size, fingerprints, cfg, config=run_config(tmp_path, run), tmp_path=tmp_path)[0]
        cached[run] = [row["cycle/cached_share"] for row in rows(tmp_path, f"{run}-0") if "cycle/cached_share" in row]
    assert found["cold"] == found["warm"] == found["two"]
    assert cached == {"cold": [0.0], "warm": [1.0], "two": [0.0]}


def one_update(world: World, boards_N13: NDArray[np.uint64]) -> tuple[str, int]:
    """Of 8,190 positions, which 64 shards do not divide: a hash of the weights, and the positions of this rank."""
    torch.manual_seed(0)
    items = list[int]()
    rng = np.random.default_rng(0)
    cp_N, result_N = rng.integers(-300, 300, 8190).astype(np.int16), rng.integers(-1, 2, 8190).astype(np.int8)

    class Positions:
        cost = None
        sha256 = "random positions"

        def __len__(self) -> int:
            return len(boards_N13)

        def gather(self, ids: torch.Tensor) -> ValueBatch:
            items.append(len(ids))
            rows_N = ids.numpy()
            labelled = Labelled(boards_N13[rows_N], cp_N[rows_N], result_N[rows_N], np.zeros(len(ids), np.int8))
            return batch_of(labelled, "nnue")

    net = build_net(NetConfig(width=16))
    learner = Learner(net, OptimConfig(lr=1e-2), world, global_batch=8190, updates=1)
    learner.step(partial(value_loss, kind="nnue", mix=0.5), stream(Positions(), 8190, world).at(0))
    content = b"".join(tensor.numpy().tobytes() for tensor in net.state_dict().values())
    return hashlib.sha256(content).hexdigest(), sum(items)


def test_a_batch_that_does_not_divide_makes_the_same_update_on_four_ranks(tmp_path: Path) -> None:
    config = RunConfig(exact=True, threads=1, runs_dir=tmp_path / "runs")
    boards_N13 = random_boards(8190)
    (alone,) = run_ranks(1, one_update, boards_N13, config=config, tmp_path=tmp_path)
    four = run_ranks(4, one_update, boards_N13, config=config, tmp_path=tmp_path)
    assert {weights for weights, _ in four} == {alone[0]}
    assert sum(items for _, items in four) == alone[1] == 8190
    assert len({items for _, items in four}) > 1, "some ranks have one position more"


def test_a_run_without_games_whose_file_is_empty(tmp_path: Path) -> None:
    (tmp_path / "p.epd").write_text("")
    cfg = replace(CONFIG, games=0, sources=SourceConfig(epd=(tmp_path / "p.epd",)))
    with pytest.raises(UserError, match="cycle 1 has no position"):
        train(tmp_path, "empty", cfg)


def test_a_run_that_is_killed_in_any_phase_ends_with_the_same_result(tmp_path: Path, trained: Path) -> None:
    """Killed before the first update, between two parts, and in the match."""
    for kept, before in KILLED_AT:
        process = FORKED.Process(target=killed, args=(tmp_path, kept, before))
        process.start()
        process.join()
        assert process.exitcode == -signal.SIGKILL, kept
    train(tmp_path, "killed", replace(CONFIG, iterations=1))
    train(tmp_path, "killed")
    straight, after_kills = rows(trained, "tiny"), rows(tmp_path, "killed")
    assert [results(row) for row in after_kills] == [results(row) for row in straight]
    first, second = (saved_parts(folder, "positions") for folder in (trained / "runs/tiny", tmp_path / "runs/killed"))
    assert len(first) == len(second) > 0
    assert "match/test_games" in straight[1]
    assert straight[1]["train/loss"] > 0


def test_a_run_from_an_export_plays_and_labels_with_its_net_from_the_first_game_on(
    tmp_path: Path, trained: Path
) -> None:
    """Also where it is killed in its first cycle, and continues without naming the export."""
    export, one = trained / "runs" / "tiny" / "export", replace(CONFIG, iterations=1)
    train(tmp_path, "more", one, export)
    process = FORKED.Process(target=killed, args=(tmp_path, "positions", 0, export))
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL
    train(tmp_path, "killed", one)
    assert list(map(results, rows(tmp_path, "killed"))) == list(map(results, rows(tmp_path, "more")))
    runs = (trained / "runs" / "tiny", tmp_path / "runs" / "more")
    by_tables, by_net = (saved_parts(run, "positions").parts[0].boards_N13 for run in runs)
    assert by_tables.tobytes() != by_net.tobytes()


def test_evaluate_has_a_rating_and_the_loss_by_source(
    trained: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(trained)
    assert main(["evaluate", "tiny", "--games", "8", "--json"]) == 0
    metrics = json.loads(capsys.readouterr().out)["metrics"]
    assert metrics["match/rating_low"] < metrics["match/rating"] < metrics["match/rating_high"]
    assert metrics["val/positions"] == len(saved_parts(trained / "runs" / "tiny", "validation"))
    assert metrics["val/loss_own"] == pytest.approx(metrics["val/loss"])
    assert 0 <= metrics["val/calibration_error"] <= 1
    assert not {f"val/loss_{source}" for source in SOURCES[1:]} & metrics.keys()


def test_a_run_plays_and_its_weights_are_shipped(
    trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(trained)
    monkeypatch.setattr(players, "MODULES", ["ranks.workloads.chess_value", "ranks.workloads.run_players"])
    monkeypatch.setattr(specs, "SHIPPED", tmp_path / "shipped")
    with pytest.raises(UserError, match="has no trained net"):
        make_player("chess-value")
    assert main(["chess-value", "weights", "tiny", "--out", str(tmp_path / "shipped")]) == 0
    assert "tiny, cycle" in capsys.readouterr().out
    board = Board()
    choices = [
        make_player(word).choose(board, Limits(nodes=500))
        for word in ("run:tiny/best@500", "chess-value@500", f"engine:{tmp_path / 'shipped'}?nodes=500")
    ]
    assert choices[0].move in board.legal_moves()
    assert choices[0] == choices[1] == choices[2]
    for word in ("run:tiny@none", "chess-value:5", "run:tiny?x=1", "chess-value@0"):
        with pytest.raises(UserError):
            make_player(word)
    (tmp_path / "shipped" / "config.json").write_text('{"weights_sha256": "0", "source": "a test"}')
    with pytest.raises(UserError, match="describes other weights"):
        make_player("chess-value")


def test_strength_is_said_in_elo_an_hour_and_measured_hours() -> None:
    def row(rating: float, half: float) -> dict[str, float]:
        both = {"match/rating_low": rating - half, "match/rating_high": rating + half}
        return {"time/iteration_s": 1800.0, "match/rating": rating, **both}

    once, below = row(2150, 140), row(2100, 110)
    rows = [row(1000, 300), {"time/iteration_s": 1800.0}, once, below, row(2160, 140), row(2150, 75)]
    speed, reached = strength_lines(rows)
    assert speed == "rating 1000 to 2150 in 2.50 h: +460 +/- 124 Elo an hour"
    assert reached == "two ratings in a row were above 2000 with their whole intervals after 3.00 hours"
    (line,) = strength_lines([once])
    assert line == "0.50 hours: no two ratings in a row were above 2000 with their whole intervals"
    assert list(strength_lines([])) == []


def test_presets_are_those_of_the_issue() -> None:
    asked = {
        "speed": (500_000, 60, 16_384, 1.5e-3),
        "quality": (400_000, 40, 4096, 5e-4),
        "conservative": (100_000, 10, 2048, 1e-3),
        "default": (400_000, 40, 8192, 1e-3),
    }
    for name, (positions, games, batch, lr) in asked.items():
        cfg = PRESETS[name]()
        found = cfg.max_positions, cfg.games, cfg.stockfish_games, cfg.global_batch, cfg.optim.lr
        assert found == (positions, games, games, batch, lr)
    assert not PRESETS["demo"]().needs_stockfish


@pytest.mark.parametrize(
    ("make", "found"),
    [
        (lambda: Config(games=0, stockfish_games=0), "no source of positions"),
        (lambda: Config(global_batch=0), "1 or more"),
        (lambda: Config(reuse=float("nan")), "a number above 0"),
        (lambda: Config(result_mix=1.5), "a share"),
        (lambda: NetConfig(width=20), "a multiple of 16"),
        (lambda: NetConfig(channels=(0, 1, 1)), "1 or more"),
        (lambda: NetConfig(dropout=1.0), "below 1"),
        (lambda: PlayConfig(rungs=()), "1 or more"),
        (lambda: PlayConfig(random_share=1.0), "below 1"),
        (lambda: LabelConfig(limit="time:5"), "nodes:N, depth:D or static"),
        (lambda: LabelConfig(engines=0), "needs an engine"),
        (lambda: RatingConfig(elo0=50), "below elo1"),
        (lambda: RatingConfig(share=0.0), "above 0"),
        (lambda: replace(DEPTH_4, net=NetConfig(kind="cnn")), "counts simulations and has no depth"),
        (lambda: replace(DEPTH_4, net=NetConfig(kind="resnet")), "counts simulations and has no depth"),
        (lambda: Config(net=NetConfig(kind="cnn"), rating=RatingConfig(nodes=100_001)), "at most 100,000 simulations"),
    ],
)
def test_bad_settings_are_refused(make: Any, found: str) -> None:
    with pytest.raises(UserError, match=found):
        make()


def test_an_engine_that_is_none_is_refused_before_the_first_game(tmp_path: Path) -> None:
    cfg = replace(CONFIG, labels="stockfish", label=LabelConfig(engine="no-such-engine", cache=tmp_path))
    with pytest.raises(UserError, match="no-such-engine"):
        train(tmp_path, "without", cfg)
