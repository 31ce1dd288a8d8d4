"""The page of a report, in Markdown, and its pictures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from ranks.chess.diagram import draw
from ranks.chess.pgn import PgnGame
from ranks.engine.runs.folder import RunFolder
from ranks.errors import UserError
from ranks.selfplay import PlayedGame
from ranks.selfplay.replay.read_games import WindowGames
from ranks.watch.report.metric_rows import MetricRows
from ranks.watch.report.ratings import draw_rating, draw_scores
from ranks.watch.report.workload_page import Draw, newest_values, pictures
from ranks.workloads.chess_spiking.game_notation import format_pgn
from ranks.workloads.chess_spiking.report import plots

PICTURES: dict[str, tuple[str, Draw]] = {
    "rating": ("Rating", draw_rating),
    "scores": ("Scores", draw_scores),
    "games": ("Games of self-play", plots.draw_games),
    "learning": ("Learning", plots.draw_learning),
    "spikes": ("Spikes by layer", plots.draw_spikes),
}
"""File names without .png, headings, and what draws them."""
NEWEST = {
    "match/rating": "rating",
    "match/rating_low": "low end of its interval",
    "match/rating_high": "high end of its interval",
    "match/games": "games of a match",
    "match/best_iteration": "iteration of the best weights",
    "rollout/mean_length": "mean length of a game, plies",
    "rollout/drawn": "share of drawn games",
    "rollout/distinct_openings": "distinct openings of 8 plies",
    "selfplay/plies_per_second": "plies/s of play",
    "selfplay/evaluations_per_second": "evaluations/s of play",
    "spikes/synaptic_operations": "synaptic operations of an evaluation",
    "spikes/control_multiply_accumulates": "multiply-accumulates of the control",
}
"""The table of newest values."""


def page(run: RunFolder, settings: Mapping[str, Any], rows: MetricRows, place: Path) -> str:
    """The text of the page; writes the pictures into the folder `place`. A picture for which the run has no rows is
    removed there, and the page says so."""
    parts = [f"# {run.path.name}: chess-spiking", facts(settings, rows), newest_values(rows, NEWEST)]
    parts += pictures(PICTURES, rows, place)
    return "\n\n".join([*parts, "## A sample game", sample_game(run)]) + "\n"


def facts(settings: Mapping[str, Any], rows: MetricRows) -> str:
    """How far the run is, and its net and search."""
    config: Mapping[str, Any] = settings["config"]
    net, selfplay = config.get("net", {}), config.get("selfplay", {})
    spiking = "ReLUs" if net.get("neuron") == "relu" else f"spiking neurons in {net.get('steps')} steps"
    is_origin = net.get("kind") == "origin"
    layers = (
        "that of chess-snn-rl" if is_origin else f"residual, blocks: {net.get('blocks')}, width: {net.get('width')}"
    )
    search = selfplay.get("search")
    simulations = "" if search == "none" else f", {selfplay.get('simulations')} simulations"
    return "\n".join(
        [
            f"- iterations: {rows.rows[-1]['iteration']:,}, games: {rows.games:,}, hours: {rows.hours:.2f}",
            f"- net: {layers}, {spiking}",
            f"- search: {search}{simulations}",
            f"- seed {settings['engine'].get('seed')}, {'exact' if settings['engine'].get('exact') else 'fast'} mode",
        ]
    )


def sample_game(run: RunFolder) -> str:
    """A game of the newest iteration that can be read: of those with a winner, or else of all, the one of median
    length."""
    skipped: list[str] = []
    try:
        window = WindowGames(run, skipped.append)
    except UserError as error:
        return f"None: {error.found}."
    played = next((games for i in reversed(window.iterations) if (games := list(window.of(i)))), [])
    if not played:
        return f"None: {'; '.join(skipped) or 'the run has just deleted its games'}."
    chosen = median_game([game for game in played if game.outcome] or played)
    moves = chosen.moves
    board = PgnGame(moves=moves).board()
    diagram = draw(board.words, style="letters", last_move=moves[-1])
    return "\n".join(
        [
            f"Slot {chosen.slot}, game {chosen.number}, ended in iteration {chosen.iteration:,}. Its last position:",
            "",
            "```text",
            diagram,
            "```",
            "",
            "```pgn",
            format_pgn(replace(chosen, values=(None,) * len(moves)), run.path.name).rstrip(),
            "```",
        ]
    )


def median_game(games: list[PlayedGame]) -> PlayedGame:
    """The game of median length, the first by id among equals."""
    return sorted(games, key=lambda game: (len(game.moves), game.slot, game.number))[(len(games) - 1) // 2]
