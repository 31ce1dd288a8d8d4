"""Matches inside training: pairs, results by the rules, ratings, the same games on any number of ranks, resume."""

from __future__ import annotations

import json
import os
import signal
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from ranks import KeptFiles, RunConfig, World
from ranks.chess.players.tree_search import material_evaluator
from ranks.cli.main import main
from ranks.rating.elo import score_of
from ranks.search.evaluation import Evaluation, Leaves
from ranks.selfplay import SelfPlayConfig
from ranks.workloads.chess_spiking.building import build_net
from ranks.workloads.chess_spiking.encoding import encoding_of
from ranks.workloads.chess_spiking.matches.games import GameBatch, GameResult, play_games
from ranks.workloads.chess_spiking.matches.plan import BEST, RUNGS, EvaluationPlan, MatchConfig
from ranks.workloads.chess_spiking.matches.rating import Pair, fit_ratings, metrics_of, pairs_of
from ranks.workloads.chess_spiking.matches.sides import FixedSide, NetSide
from tests.chess_spiking.tiny import CONFIG, TINY_NET, train
from tests.engine.group import FORKED, run_ranks
from tests.selfplay.fixtures import single_rank

LADDER = Path(__file__).parents[2] / "benchmarks" / "results" / "chess_ladder_2026-11-20.json"


# Games ----------------------------------------------------------------------------------------------------------------


def test_games_are_pairs_of_one_opening_with_both_colours() -> None:
    plan = EvaluationPlan.make(23, 1, best=True)
    assert plan.games == 24
    assert plan.opponents == ("random", "greedy", BEST, "minimax:2", "alphabeta:1")
    for game in range(0, 24, 2):
        assert plan.opponent(game) == plan.opponent(game + 1)
        assert plan.opening(game) is plan.opening(game + 1)
    counts = Counter(map(plan.opponent, range(24)))
    assert (max(counts.values()), min(counts.values())) == (6, 4)
    assert len({plan.opening(game).moves for game in range(24)}) == 3


@pytest.mark.parametrize(("games", "missing"), [(1, 4), (5, 2), (9, 0), (10, 0)])
def test_a_plan_says_which_opponents_have_no_games(games: int, missing: int) -> None:
    plan = EvaluationPlan.make(games, 1, best=True)
    assert plan.without_games == plan.opponents[5 - missing :]
    assert {*map(plan.opponent, range(plan.games))} == {*plan.opponents[: 5 - missing]}


def test_results_are_those_of_the_boards_and_equal_sides_score_a_half() -> None:
    """Exact material in place of a net, whose evaluations have no roundings."""
    plan = EvaluationPlan.make(40, 3, best=True)
    batch = GameBatch(
        plan, range(40), material_evaluator, material_evaluator, MatchConfig.of(40, 16, 160, SelfPlayConfig())
    )
    while batch.is_running().any():
        batch.play_round()
    results = batch.results()
    assert [result.game for result in results] == list(range(40))
    kinds: Counter[str] = Counter()
    for games, side in batch.opponents:
        if isinstance(side, FixedSide):
            for game, board in zip(games.tolist(), side._boards, strict=True):
                end, result = board.outcome(), results[game]
                kinds[end.reason if end else "truncated"] += 1
                for_white = {"1-0": 1, "0-1": -1, "1/2-1/2": 0}[end.result] if end else 0
                assert result.outcome == (for_white if game % 2 == 0 else -for_white)
                assert result.repetition == (end is not None and end.reason == "threefold repetition")
                assert result.truncated == (end is None)
                assert result.plies == board.ply
    assert {"checkmate", "threefold repetition", "truncated"} <= kinds.keys(), kinds
    for game in range(0, 40, 2):
        if plan.opponent(game) == BEST:
            white, black = results[game], results[game + 1]
            assert (white.outcome, white.plies) == (-black.outcome, black.plies)


def last_moves(leaves: Leaves) -> Evaluation:
    """Of the legal moves the last one is by far the likeliest."""
    columns_M = np.arange(leaves.moves_BM.shape[1])
    is_last_BM = columns_M == leaves.num_moves_B[:, None] - 1
    is_move_BM = columns_M < leaves.num_moves_B[:, None]
    priors_BM = np.where(is_last_BM, 0.9, 0.1 / np.maximum(leaves.num_moves_B - 1, 1)[:, None]) * is_move_BM
    return Evaluation(priors_BM.astype(np.float32), np.zeros(len(priors_BM), np.float32))


def test_the_net_searches_as_in_its_training_or_plays_its_likeliest_move() -> None:
    openings = [EvaluationPlan.make(2, 1, best=False).opening(0)] * 3
    trained = SelfPlayConfig(num_considered=4, c_scale=0.3, rescale_values=True, gumbel_scale=0.7)
    config = NetSide(last_moves, MatchConfig.of(2, 8, 60, trained), openings).search.config
    assert (config.simulations, config.root, config.num_considered) == (8, "gumbel", 4)
    assert (config.c_scale, config.rescale_values, config.gumbel_scale) == (0.3, True, 0.0)
    considered = [MatchConfig.of(2, n, 60, trained).search.num_considered for n in (16, 32, 64, 400)]
    assert considered == [4, 8, 16, 16], "more than in training, where each has 4 simulations"
    assert MatchConfig.of(2, 16, 60, SelfPlayConfig(num_considered=40)).search.num_considered == 40
    puct = MatchConfig.of(2, 8, 60, SelfPlayConfig(search="puct"))
    assert NetSide(last_moves, puct, openings).search.config.root == "puct"
    policy = NetSide(last_moves, MatchConfig.of(2, 0, 60, SelfPlayConfig(search="none")), openings)
    assert policy.choose(np.arange(3)).tolist() == [openings[0].board().legal_moves()[-1]] * 3


def noisy_games(world: World) -> list[GameResult]:
    """Of a net whose policy depends on the size of its batch, as roundings do, only much more."""
    torch.manual_seed(0)
    net, best = build_net(TINY_NET), build_net(TINY_NET)
    forward = net.forward

    def noisy(planes: torch.Tensor) -> Any:
        logits_BA, wdl_B3 = forward(planes)
        return logits_BA * (1 + len(planes) % 3) * 8, wdl_B3

    net.forward = noisy
    plan = EvaluationPlan.make(10, 5, best=True)
    return play_games(plan, net, best, encoding_of(TINY_NET, 0), MatchConfig.of(10, 2, 60, SelfPlayConfig()), world)


def test_with_exact_the_games_are_the_same_on_one_and_two_ranks(tmp_path: Path) -> None:
    with single_rank(exact=True, shards=4) as world:
        alone = noisy_games(world)
    first, second = run_ranks(2, noisy_games, config=RunConfig(exact=True, shards=4), tmp_path=tmp_path)
    assert [result.game for result in alone] == list(range(10))
    assert alone == first == second
    with single_rank(exact=True, shards=1) as world:
        assert noisy_games(world) != alone  # other batches, and so other games


# Ratings --------------------------------------------------------------------------------------------------------------


def test_the_fixed_players_have_the_elo_of_the_committed_ladder() -> None:
    standings = json.loads(LADDER.read_text())["standings"]
    committed = {row["player"]: round(row["elo"][0]) for row in standings}
    assert {word: committed[word] for word in RUNGS} == RUNGS


def results_at(elo: float, plan: EvaluationPlan, seed: int) -> list[GameResult]:
    """Games of a player with this rating, none of them drawn."""
    uniform = np.random.default_rng(seed).random(plan.games)
    won = [uniform[game] < score_of(elo - RUNGS[plan.opponent(game)]) for game in range(plan.games)]
    return [GameResult(game, 1 if won[game] else -1, False, False, 60) for game in range(plan.games)]


@pytest.mark.parametrize(("games", "half_width"), [(100, 120), (800, 45)])
def test_most_intervals_contain_the_rating_of_the_player(games: int, half_width: float) -> None:
    plan = EvaluationPlan.make(games, 1, best=False)
    found = [results_at(200, plan, seed) for seed in range(20)]
    rated = [metrics_of(plan, results, fit_ratings(pairs_of(plan, results), [])) for results in found]
    assert sum(row["rating_low"] < 200 < row["rating_high"] for row in rated) >= 16
    width = np.mean([(row["rating_high"] - row["rating_low"]) / 2 for row in rated])
    assert width == pytest.approx(half_width, rel=0.15)
    assert np.mean([row["rating"] for row in rated]) == pytest.approx(200, abs=half_width / 2)
    assert np.mean([row["score_random"] for row in rated]) > 0.98
    names = {"score_greedy", "score_minimax-2", "score_alphabeta-1", "drawn_by_repetition", "games"}
    assert names <= rated[0].keys()


@pytest.mark.parametrize("points", [0, 1, 2])
def test_clean_sweeps_and_drawn_games_have_a_finite_rating(points: Any) -> None:
    pairs = [Pair(word, points, points) for word in RUNGS for _ in range(2)]
    ratings = fit_ratings(pairs, [])
    assert ratings is not None
    assert abs(ratings.rating("net").value) < 3000


def test_games_of_both_sides_decide_which_weights_are_the_best() -> None:
    """Equal games with each other: the games against the fixed players decide."""
    even = [Pair(BEST, 2, 0)] * 4
    strong, weak = [Pair("greedy", 2, 1)] * 6, [Pair("greedy", 0, 1)] * 6
    for pairs, of_best, sign in ((strong, weak, 1), (weak, strong, -1)):
        ratings = fit_ratings([*pairs, *even], of_best)
        assert ratings is not None
        assert ratings.difference("net", BEST).value * sign > 0


# Runs -----------------------------------------------------------------------------------------------------------------


def match_rows(folder: Path, name: str) -> list[dict[str, float]]:
    rows = [json.loads(line) for line in (folder / "runs" / name / "metrics.jsonl").read_text().splitlines()]
    return [{key: value for key, value in row.items() if key.startswith("match/")} for row in rows]


def killed(folder: Path) -> None:
    """Train, and die in the first match, between the file of the best weights and the checkpoint."""
    write = KeptFiles.write

    def dying(self: KeptFiles, iteration: int, arrays: Any) -> Any:
        file = write(self, iteration, arrays)
        if self.name == BEST:
            os.kill(os.getpid(), signal.SIGKILL)
        return file

    KeptFiles.write = dying
    train(folder, "killed")


def test_a_killed_run_has_the_same_matches_and_the_same_best_weights(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    straight = train(tmp_path, "straight")
    process = FORKED.Process(target=killed, args=(tmp_path,))
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL
    train(tmp_path, "killed", replace(CONFIG, iterations=2))
    assert train(tmp_path, "killed").fingerprint == straight.fingerprint
    rows = match_rows(tmp_path, "straight")
    assert match_rows(tmp_path, "killed") == rows
    assert [bool(row) for row in rows] == [False, True, True]
    assert "match/score_best" not in rows[1]
    assert {"match/rating", "match/rating_low", "match/rating_high", "match/games"} <= rows[2].keys()
    assert len(list((tmp_path / "runs" / "straight" / "kept" / "best").iterdir())) >= 1

    capsys.readouterr()
    monkeypatch.chdir(tmp_path)
    assert main(["evaluate", "straight", "--games", "4", "--json"]) == 0
    metrics = json.loads(capsys.readouterr().out)["metrics"]
    assert metrics["games"] == 4
    assert metrics["rating_low"] < metrics["rating"] < metrics["rating_high"]
    assert main(["evaluate", "straight", "--games", "0"]) == 2
