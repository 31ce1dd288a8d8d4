"""Training: cycles of games, labels, updates and matches."""

from __future__ import annotations

import time
from collections.abc import Generator
from contextlib import closing
from functools import partial

from ranks.engine.distributed.world import World
from ranks.engine.files.jsonl import read_rows
from ranks.engine.runs.folder import METRICS_FILE
from ranks.engine.runs.run import Run
from ranks.engine.runs.summary import Summary
from ranks.engine.sharding.batch import StepBatch
from ranks.engine.update.learner import Learner
from ranks.errors import UserError
from ranks.nets.channels_last import use_channels_last
from ranks.selfplay.snapshots import Snapshots
from ranks.workloads.chess_value.batches import batches_for
from ranks.workloads.chess_value.config import Config
from ranks.workloads.chess_value.cycle_report import CycleReport, MatchTime, strength_lines
from ranks.workloads.chess_value.evaluation import VALIDATION, validate
from ranks.workloads.chess_value.file_positions import FilePositions
from ranks.workloads.chess_value.game_engines import GameEngines, find_game_engines
from ranks.workloads.chess_value.games.cycle_games import CycleGames, GamePlan, play_cycle, results_of
from ranks.workloads.chess_value.games.positions import evenly, positions_of
from ranks.workloads.chess_value.labelling.engine_labels import EngineLabels
from ranks.workloads.chess_value.labelling.labeller import Labeller, OutcomeLabels, unscored
from ranks.workloads.chess_value.labelling.search_labels import SearchLabels
from ranks.workloads.chess_value.matches.budget import UPDATE_NODES, cost_of_node, nodes_of_labels
from ranks.workloads.chess_value.matches.matches import ValueMatches
from ranks.workloads.chess_value.matches.rungs import open_stockfish, rung_players
from ranks.workloads.chess_value.net.building import ValueNet, build_net
from ranks.workloads.chess_value.net.losses import ValueBatch, value_loss
from ranks.workloads.chess_value.players.net_player import OpenPlayer, open_net, open_quantised
from ranks.workloads.chess_value.positions.sourced import SourcedPositions, joined
from ranks.workloads.chess_value.tasks.pool import TaskPool
from ranks.workloads.chess_value.window import PositionWindow

FEW_UPDATES = 20
"""A cycle with fewer teaches a net little."""
MORE_POSITIONS = "give --games, --stockfish-games, more files, or fewer --cycles"


def build(cfg: Config) -> ValueNet:
    """The untrained net."""
    return build_net(cfg.net)


def train(cfg: Config, world: World) -> Summary:
    """Train a net in cycles: play, label, learn, and be rated."""
    net, best = build(cfg), build(cfg)
    for each in (net, best):
        use_channels_last(each, world)
    learner = Learner(net, cfg.optim, world, global_batch=cfg.global_batch, updates=cfg.full_updates)
    loss = partial(value_loss, kind=cfg.net.kind, mix=cfg.result_mix)
    to_batch = batches_for(cfg.net.kind)
    window = PositionWindow("positions", cfg.window, to_batch, world)
    held_out = PositionWindow(VALIDATION, cfg.window, to_batch, world)
    files = FilePositions(cfg.sources, cfg.validation_share, world)
    engines = find_game_engines(cfg, world)
    rungs = rung_players(with_stockfish=engines.rates)
    matches = ValueMatches(net, best, rungs, cfg.rating, world, cost_of_node(cfg.net))
    snapshots, match_time = Snapshots(net, cfg.snapshot_every, world), MatchTime(cfg.rating.share)

    def learn(due: Generator[StepBatch[ValueBatch]], report: CycleReport, run: Run) -> None:
        with closing(due) as batches:
            for batch in batches:
                stats = learner.step(loss, batch)
                report.trained(stats)
                run.log(stats)

    keep = dict(learner=learner, files=files, window=window, held_out=held_out, snapshots=snapshots, matches=matches)
    with (
        closing(TaskPool(world)) as pool,
        closing(labeller_of(cfg, pool)) as labeller,
        Run.open(cfg, world, keep=keep, data=identity_of(labeller.identity, *engines.identity, *files.hashes())) as run,
    ):
        warn_of_settings(cfg, engines, world)
        for cycle in run.iterations(cfg.iterations, long=True):
            report = CycleReport(cycle, time.perf_counter())
            is_trained = learner.updates > 0 or run.has_initial_weights
            player = present_player(cfg, net, is_trained=is_trained)
            with world.session.timed("games"):
                played = play_cycle(game_plan(cfg, player, cycle, world.seed), pool)
            found = new_positions(cfg, played, files, cycle, world.seed)
            teacher = present_player(cfg, net, is_trained=is_trained, labels=True)
            nodes = played.nodes + nodes_of_labels(cfg, len(unscored(found)), by_net=is_trained)
            for part in report.timed(labeller.label(found, cfg.parts, teacher)):
                window.add(cycle, part.train)
                held_out.add(cycle, part.validation)
                learn(window.batches(cfg.global_batch, cfg.reuse), report, run)
            warn_of_few_positions(cfg, cycle, report.positions, learner.updates, world)
            last = cycle + 1 == cfg.iterations
            if last:
                learn(window.final_batches(cfg.global_batch, cfg.final_passes), report, run)
            world.session.drain()  # what follows sees the weights of the last update
            snapshots.take(cycle)
            run.log(results_of(played.games), prefix="rollout")
            scores = validate(net, held_out, cfg.result_mix, world)
            with report.matching():
                updated = report.updates * cfg.global_batch * UPDATE_NODES
                match = matches.play(cycle, nodes + updated, pool, last=last)
            report.ended(len(played.games), scores, match)
            run.log(scores, prefix="val")
            run.log(match, prefix="match")
            run.log(report.metrics(world.price), prefix="cycle")
            world.session.note(report.line(world.price))
            if (too_long := match_time.add(report)) is not None:
                world.session.warn(too_long)
            run.save(score=matches.checkpoint_score)
        if world.rank == 0:
            for line in strength_lines(read_rows(run.folder.path / METRICS_FILE)):
                world.session.note(line)
    return run.finish(export=net)


def warn_of_settings(cfg: Config, engines: GameEngines, world: World) -> None:
    """Say what weakens a run from its first cycle on."""
    if cfg.needs_stockfish and not engines.rates:
        world.session.note("no program stockfish: the strongest fixed player of the rating has 1384")
    if cfg.labels_no_deeper:
        deeper = f"give --label.limit nodes:{4 * cfg.play.nodes}, for example"
        world.session.warn(f"--labels search looks no deeper than the games, --play.nodes {cfg.play.nodes}: {deeper}")


def warn_of_few_positions(cfg: Config, cycle: int, positions: int, updates: int, world: World) -> None:
    """Say that a cycle can teach little or nothing. Raises UserError where the first one has no position."""
    if cycle == 0 and updates < FEW_UPDATES:
        few = f"the first cycle has {positions:,} positions, so {updates} updates"
        world.session.warn(f"{few}: give more --games, files of positions, or a smaller --global-batch")
    if not positions and not cfg.games and not cfg.stockfish_games:
        found = f"cycle {cycle + 1} has no position: no game is played, and no file has one left"
        if not cycle:
            raise UserError("to train chess-value", found, MORE_POSITIONS)
        world.session.warn(f"{found}: {MORE_POSITIONS}")


def new_positions(cfg: Config, played: CycleGames, files: FilePositions, cycle: int, seed: int) -> SourcedPositions:
    """The positions of a cycle: those of its games first, then of files."""
    own = positions_of(
        played,
        seed,
        cycle,
        cfg.validation_share,
        children=cfg.play.children,
        most=cfg.max_positions,
        quiet=cfg.sources.quiet,
        mirror=cfg.sources.mirror,
    )
    return evenly(joined([own, files.take(cfg.max_positions - own.num_positions)]), cfg.max_positions)


def game_plan(cfg: Config, player: OpenPlayer, cycle: int, seed: int) -> GamePlan:
    """The games of a cycle, in which the net is this player."""
    open_rung = partial(open_stockfish, cfg.label.engine)
    return GamePlan(cfg.play, cfg.games, cfg.stockfish_games, cycle, seed, player, open_rung)


def present_player(cfg: Config, net: ValueNet, *, is_trained: bool, labels: bool = False) -> OpenPlayer:
    """The net as it is now, with the nodes of its games; for `labels` with the limits of `--labels search`.

    In place of a net of random weights the engine's tables play and label. They also play for a cnn or a resnet, which
    are too slow for many games."""
    searches = labels and cfg.labels == "search"
    nodes, depth = (cfg.label.nodes, cfg.label.depth) if searches else (cfg.play.nodes, None)
    if not is_trained or (cfg.net.kind != "nnue" and not searches):
        return open_quantised(None, "tables", nodes, depth)
    return open_net(net, "net", nodes, depth)


def labeller_of(cfg: Config, pool: TaskPool) -> Labeller:
    """What gives positions their labels. Raises UserError where the engine is missing."""
    if cfg.labels == "outcome":
        return OutcomeLabels()
    if cfg.labels == "search":
        return SearchLabels(pool, in_processes=cfg.net.kind == "nnue")
    return EngineLabels(cfg.label, pool.world)


def identity_of(*parts: str | None) -> str | None:
    """What a run depends on besides its settings."""
    return "; ".join(filter(None, parts)) or None
