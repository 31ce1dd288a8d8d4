"""Whole trainings with a tiny net: equal on one and two ranks, exported, and refused without Numba."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from ranks import Run, RunConfig, UserError, World
from ranks.chess.core.rules import CHESS
from ranks.selfplay import ReplayConfig, ReplayWindow, SelfPlay, SelfPlayConfig, Targets
from ranks.workloads import chess_spiking
from ranks.workloads.chess_spiking import PRESETS, Config, build
from ranks.workloads.chess_spiking.config import NetConfig
from ranks.workloads.chess_spiking.encoding import encoding_of
from ranks.workloads.chess_spiking.matches.matches import Matches
from ranks.workloads.chess_spiking.training import match_config, spikes
from tests.engine.group import run_ranks
from tests.selfplay.fixtures import single_rank

TINY = Config(
    iterations=1,
    games_per_iteration=4,
    slots=4,
    global_batch=16,
    eval_games=4,
    eval_simulations=1,
    eval_max_plies=12,
    measure_positions=8,
    net=NetConfig(blocks=1, width=8, value_channels=8, value_hidden=8),
    selfplay=SelfPlayConfig(simulations=2, max_plies=12),
)
ORIGIN = PRESETS["origin"]()
TINY_ORIGIN = replace(
    TINY,
    net=replace(ORIGIN.net, steps=2),
    selfplay=replace(ORIGIN.selfplay, max_plies=12),
    replay=ORIGIN.replay,
    ent_coef=ORIGIN.ent_coef,
)


def settings(folder: Path, name: str) -> RunConfig:
    return RunConfig(name=name, runs_dir=folder / "runs", exact=True, shards=2)


def fingerprints(world: World, *cfgs: Config) -> list[str]:
    """Of trainings one after the other."""
    found: list[str] = []
    for cfg in cfgs:
        name = f"{world.config.name}-{cfg.net.kind}"
        torch.manual_seed(world.seed)  # as at a start
        other = World(replace(world.config, name=name), world.process_env, world.device, world.comm, "chess-spiking")
        found.append(chess_spiking.train(cfg, other).fingerprint)
    return found


def rows(folder: Path, run: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "runs" / run / "metrics.jsonl").read_text().splitlines()]


def what_is_no_time(row: dict[str, Any]) -> dict[str, Any]:
    parts = ("rollout/", "selfplay/", "spikes/", "train/", "match/")
    return {k: v for k, v in row.items() if k.startswith(parts) and not k.endswith(("_per_second", "_share"))}


def test_two_ranks_train_the_same_net_as_one_and_the_export_needs_only_torch(tmp_path: Path) -> None:
    found = [
        run_ranks(size, fingerprints, TINY, TINY_ORIGIN, config=settings(tmp_path, f"on-{size}"), tmp_path=tmp_path)
        for size in (1, 2)
    ]
    assert found[0][0] == found[1][0] == found[1][1]
    assert found[0][0][0] != found[0][0][1]
    for kind in ("residual", "origin"):
        (row,) = rows(tmp_path, f"on-2-{kind}")
        (alone,) = rows(tmp_path, f"on-1-{kind}")
        assert what_is_no_time(row) == what_is_no_time(alone)
        assert {"rollout/drawn/stalemate", "rollout/distinct_openings", "selfplay/policy_kl"} <= row.keys()
        assert row["rollout/games"] >= 4
        assert 0 < row["rollout/mean_length"] <= 12
        assert row["selfplay/evaluations_per_second"] > 0
        assert row["spikes/control_multiply_accumulates"] > 0
        assert {"match/rating", "match/score_random", "train/value_loss"} <= row.keys()
        alone = rows(tmp_path, f"on-1-{kind}")[0]
        assert {n: v for n, v in row.items() if "match/" in n} == {n: v for n, v in alone.items() if "match/" in n}
    assert "train/entropy" in rows(tmp_path, "on-1-origin")[0]

    export = tmp_path / "runs" / "on-2-residual" / "export"
    use = (
        "import sys, torch; from model import load; net = load('.'); logits, wdl = net(torch.zeros(2, 20, 8, 8)); "
        "print(*logits.shape, *wdl.shape, 'ranks' in sys.modules, float(logits.abs().sum()) > 0)"
    )
    ended = subprocess.run([sys.executable, "-c", use], cwd=export, capture_output=True, text=True, check=True)
    assert ended.stdout.split() == ["2", "4672", "2", "3", "False", "True"]


def test_spikes_are_counted_on_positions_spread_over_the_newest_games(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken: list[Tensor] = []
    gather = ReplayWindow.gather

    def gathered(self: ReplayWindow, ids_B: Tensor) -> Targets:
        taken.append(ids_B)
        return gather(self, ids_B)

    with single_rank(runs_dir=tmp_path, name="r") as world:
        net, encoding = build(TINY), encoding_of(TINY.net, world.seed)
        source = SelfPlay(CHESS, encoding, 4, 4, TINY.selfplay, world)
        window = ReplayWindow(CHESS, TINY.replay, world)
        with Run.open(TINY, world, keep=dict(selfplay=source, window=window)) as run:
            for iteration in run.iterations(2, long=True):
                window.add(source.play(net, iteration))
        monkeypatch.setattr(ReplayWindow, "gather", gathered)
        expected = spikes(net, encoding, window, 8, world)
        assert spikes(net.double(), encoding, window, 8, world).keys() == expected.keys()  # --precision fp64
    ids_B, _ = taken
    first, newest = len(window) - len(window.parts[-1]), len(window.parts[-1])
    assert first > 0
    assert ids_B.tolist() == [first + i * newest // 8 for i in range(8)]


@pytest.mark.parametrize("replay", [ReplayConfig(), ReplayConfig(on_policy=True), ReplayConfig(reuse=1.0)])
def test_without_search_other_games_than_those_of_the_newest_weights_are_refused(replay: ReplayConfig) -> None:
    with pytest.raises(UserError, match=r"give --replay\.on-policy --replay\.reuse 1"):
        Config(selfplay=SelfPlayConfig(search="none"), replay=replay)


def test_a_match_without_a_move_of_the_net_is_refused() -> None:
    with pytest.raises(UserError, match="have 8 plies, so no move would be played"):
        Config(eval_max_plies=8)


def test_trees_of_a_match_that_do_not_fit_are_refused_before_training() -> None:
    with single_rank() as world:
        net, encoding = build(TINY), encoding_of(TINY.net, world.seed)
        for games, simulations in ((4, 10**8), (400, 50_000)):
            cfg = replace(TINY, eval_games=games, eval_simulations=simulations)
            with pytest.raises(UserError, match=f"searches of {simulations:,} simulations, "):
                Matches(net, build(TINY), encoding, match_config(cfg), world)


def test_without_numba_one_error_says_what_to_install() -> None:
    code = """
import sys
sys.modules["numba"] = None  # as if it were not installed
from ranks.errors import UserError
from ranks.workloads import load
workload = load("chess-spiking")
workload.build(workload.PRESETS["demo"]())
try:
    workload.train
except UserError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [
        "asked: chess-spiking",
        "found: the package numba is not installed",
        "   do: pip install 'ranks[chess-spiking]'",
    ]
