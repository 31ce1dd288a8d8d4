"""`ranks prove table chess-spiking`: the shipped net rated again, next to what it began as and to exact material."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from typing import Any

import torch

from ranks.chess.core.rules import CHESS
from ranks.chess.players.tree_search import material_evaluator
from ranks.engine.distributed.rendezvous.process_env import available_cores
from ranks.progress import ProgressBar
from ranks.search.config import SearchConfig
from ranks.search.evaluation import Evaluator
from ranks.selfplay.net.net_evaluator import NetEvaluator
from ranks.workloads.chess_spiking.building import build_net
from ranks.workloads.chess_spiking.encoding import encoding_of
from ranks.workloads.chess_spiking.matches.plan import MatchConfig
from ranks.workloads.chess_spiking.matches.strength import play_rungs
from ranks.workloads.chess_spiking.players.saved_net import SHIPPED, SavedNet, from_files
from ranks.workloads.chess_spiking.players.specs import net_of_run

UNTRAINED, MATERIAL, PACKAGE = "untrained", "material", "chess-spiking"
GAMES, QUICK_GAMES, SIMULATIONS, MAX_PLIES = 800, 64, 64, 1_000
"""Games of each player, with four opponents together."""
BARS: Mapping[str, float] = {"random": 0.85, "greedy": 0.5}
"""The least score of the shipped net."""
ASKED = "the table of chess-spiking"


def table(quick: bool = False) -> Mapping[str, Any]:
    """Scores of the shipped net, of the same net untrained, and of exact material with uniform priors, all with 64
    simulations. The shipped net has bars, and must score more than exact material.

    Raises UserError where the package has no trained net."""
    saved = from_files(SHIPPED, ASKED)
    games = QUICK_GAMES if quick else GAMES
    players = [PACKAGE, UNTRAINED, MATERIAL]
    rows = [row for found in measure(players, PACKAGE, games, SIMULATIONS) for row in found]
    shown = [*_judged(rows)]
    passed = all(row["passed"] is not False for row in shown)
    facts = {"weights": saved.source, "sha256": saved.sha256, "rating": rows[0]["rating"]}
    return {"tables": {f"scores, {SIMULATIONS} simulations": shown}, "passed": passed, "facts": facts, "rows": rows}


def measure(players: Sequence[str], like: str, games: int, simulations: int) -> Iterator[list[dict[str, Any]]]:
    """The rows of `play_rungs`, player by player as they end, on all cores.

    A player is `chess-spiking`, a RUN[/ITERATION], `untrained` or `material`. `untrained` is the net of `like` and
    searches as it. `material` has the search that suits it: AlphaZero's, where the Gumbel search of a net looks at the
    likeliest moves only. It has no first-play reduction, so that of equal moves each is tried once before one is tried
    again.
    """
    work = partial(_rows_of, like=like, games=games, simulations=simulations)
    with (
        ProcessPoolExecutor(available_cores(), multiprocessing.get_context("spawn")) as pool,
        ProgressBar(len(players), unit="players") as bar,
    ):
        for found in pool.map(work, players):
            bar.advance()
            yield found


def saved_net(word: str) -> SavedNet:
    """The shipped net or that of a run. Raises UserError."""
    return from_files(SHIPPED, ASKED) if word == PACKAGE else net_of_run(word, f"the run {word}")


def _rows_of(player: str, *, like: str, games: int, simulations: int) -> list[dict[str, Any]]:
    torch.set_num_threads(1)
    saved = saved_net(like if player in (UNTRAINED, MATERIAL) else player)
    if player == MATERIAL:
        match = MatchConfig(games, simulations, MAX_PLIES, SearchConfig(simulations, fpu_reduction=0.0))
    else:
        match = MatchConfig.of(games, simulations, MAX_PLIES, saved.selfplay)
    considered = match.search.num_considered if match.search.root == "gumbel" and simulations else None
    who = {"player": player, "neuron": saved.net.neuron if player != MATERIAL else None, "considered": considered}
    return [who | row for row in play_rungs(_evaluator(player, saved), match)]


def _evaluator(player: str, saved: SavedNet) -> Evaluator:
    if player == MATERIAL:
        return material_evaluator
    torch.manual_seed(0)
    net = build_net(saved.net).eval() if player == UNTRAINED else saved.model
    return NetEvaluator(net, CHESS, encoding_of(saved.net, saved.seed), torch.device("cpu"))


def _judged(rows: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """The rows as shown, those of the shipped net with their bars."""
    material = {row["against"]: row["score"] for row in rows if row["player"] == MATERIAL}
    for row in rows:
        bar = BARS.get(row["against"])
        judged = row["player"] == PACKAGE and bar is not None
        yield {
            "player": row["player"],
            "against": row["against"],
            "score": row["score"],
            "low": row["low"],
            "high": row["high"],
            "drawn": row["drawn"],
            "by repetition": row["by_repetition"],
            "bar": f">= {bar}, and more than exact material" if judged else "-",
            "passed": (row["score"] >= bar and row["score"] > material[row["against"]]) if judged and bar else None,
        }
