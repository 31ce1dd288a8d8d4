"""Settings of chess-value. This module imports no torch."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from ranks.chess.match import OPENING_PLIES
from ranks.engine.config import OptimConfig, at_least, free
from ranks.errors import UserError
from ranks.workloads.chess_value.source_config import SourceConfig

LabelKind = Literal["stockfish", "outcome", "search"]
MOST_CHILDREN = 218
"""The most legal moves of a position that a game can reach."""
MOST_SIMULATIONS = 100_000
"""Of a move of a cnn or a resnet, as in `ranks.chess.players.tree_search`, whose import takes long."""
LIMIT = re.compile(r"(nodes|depth):([1-9][0-9]{0,8})")
STATIC = "static"
"""The limit of a label without search."""


@dataclass(frozen=True)
class ValueNetConfig:
    """The net."""

    kind: Literal["nnue", "cnn", "resnet"] = "nnue"
    """nnue: the engine plays with it. cnn: the origin's net. resnet: residual blocks."""
    width: int = 256
    """nnue: neurons of an accumulator, a multiple of 16."""
    king_scale: float = 1.0
    """nnue: factor of the weights that a feature has in one king bucket alone; 0: all buckets share their weights."""
    channels: tuple[int, int, int] = (64, 128, 128)
    """cnn: of the three convolutions."""
    hidden: tuple[int, int] = (1024, 512)
    """cnn: units of the two linear layers."""
    dropout: float = 0.25
    """cnn: share of the units of the first linear layer that a training pass leaves out."""
    blocks: int = 6
    """resnet: residual blocks."""
    block_channels: int = 64
    """resnet: channels of each block, a multiple of 8."""

    def __post_init__(self) -> None:
        sizes = {"width": (self.width, 16), "block-channels": (self.block_channels, 8)}
        for name, (size, step) in sizes.items():
            if size < step or size % step or size > 2048:
                found = f"it is a multiple of {step}, from {step} to 2048"
                raise UserError(f"--net.{name} {size}", found, f"give --net.{name} {step * 4}")
        if min(*self.channels, *self.hidden) < 1 or self.blocks < 0:
            asked = f"--net.channels {self.channels} --net.hidden {self.hidden} --net.blocks {self.blocks}"
            raise UserError(asked, "sizes are 1 or more, blocks 0 or more", "raise them")
        if not 0 <= self.king_scale <= 1:
            raise UserError(f"--net.king-scale {self.king_scale}", "a factor from 0 to 1", "give 0.1, for example")
        if not 0 <= self.dropout < 1:
            raise UserError(f"--net.dropout {self.dropout}", "a share from 0 to below 1", "give 0.25, for example")


@dataclass(frozen=True)
class PlayConfig:
    """The games that a cycle plays for positions."""

    nodes: int = 1000
    """Nodes of each move of the net's engine. With cnn and resnet the engine's tables play."""
    opening_plies: int = 8
    """A game begins with up to so many random moves."""
    random_share: float = 0.02
    """Share of the later moves that are random."""
    max_plies: int = 240
    """A longer game is cut; its result is unknown."""
    children: int = 0
    """For each position that a game gives, so many others: those after different random moves. Their results are
    unknown."""
    rungs: tuple[int, ...] = (100, 500, 2000)
    """Nodes of each move of the Stockfish opponents; the games take them in turn."""

    def __post_init__(self) -> None:
        counts = {"nodes": self.nodes, "max-plies": self.max_plies, "rungs": min(self.rungs, default=0)}
        for name, count in counts.items():
            if count < 1:
                raise UserError(f"--play.{name} {count}", "it is 1 or more", f"give --play.{name} 1 or more")
        if not 0 <= self.children <= MOST_CHILDREN:
            found = f"it is 0 to {MOST_CHILDREN}, the most moves of a position"
            raise UserError(f"--play.children {self.children}", found, "give --play.children 8, for example")
        if self.opening_plies < 0 or not 0 <= self.random_share < 1:
            asked = f"--play.opening-plies {self.opening_plies} --play.random-share {self.random_share}"
            raise UserError(asked, "plies are 0 or more, the share from 0 to below 1", "change them")


@dataclass(frozen=True)
class LabelConfig:
    """How positions get their scores."""

    limit: str = "nodes:1000"
    """nodes:N or depth:D of each position, for Stockfish and for the net's own search. static: Stockfish's evaluation
    without search."""
    engine: str = free("stockfish")
    """The command of the UCI engine."""
    engines: int | None = free(None)
    """Engines on each host; by default, and at most, the cores that the ranks leave, at least one."""
    cache: Path | None = free(None)
    """The folder of the label cache; by default in the user's cache folder, shared by all runs."""

    def __post_init__(self) -> None:
        if self.limit != STATIC and LIMIT.fullmatch(self.limit) is None:
            do = "write nodes:1000 or depth:8, for example"
            raise UserError(f"--label.limit {self.limit}", "it is nodes:N, depth:D or static", do)
        if self.engines is not None and self.engines < 1:
            raise UserError(f"--label.engines {self.engines}", "labelling needs an engine", "give 1 or more")

    @property
    def nodes(self) -> int | None:
        """The limit in nodes, or None."""
        return self._number("nodes")

    @property
    def depth(self) -> int | None:
        """The limit in plies, or None."""
        return self._number("depth")

    def _number(self, kind: str) -> int | None:
        match = LIMIT.fullmatch(self.limit)
        return int(match[2]) if match is not None and match[1] == kind else None


@dataclass(frozen=True)
class RatingConfig:
    """Matches of a cycle. All games have fixed nodes, one thread and a cleared table."""

    games: int = 200
    """The most games of the newest weights with the best ones. The test ends earlier where it is decided."""
    elo0: float = 0.0
    elo1: float = 50.0
    """The sequential test: elo0 keeps the best weights, elo1 replaces them; undecided keeps them."""
    rung_games: int = 40
    """Games with fixed opponents, which give the rating."""
    nodes: int = 2000
    """Nodes of each move; simulations for cnn and resnet."""
    max_plies: int = 400
    """A longer game is drawn."""
    share: float = 0.15
    """The share of all searched nodes that matches may have. Where it does not pay for a match, none is played."""

    def __post_init__(self) -> None:
        for name in ("games", "rung_games", "nodes", "max_plies"):
            if getattr(self, name) < 1:
                flag = f"--rating.{name.replace('_', '-')}"
                raise UserError(f"{flag} {getattr(self, name)}", "it is 1 or more", f"give {flag} 2 or more")
        if self.max_plies <= OPENING_PLIES:
            found = f"the openings of a match have {OPENING_PLIES} plies, so no move would be played"
            raise UserError(f"--rating.max-plies {self.max_plies}", found, "give some hundred")
        if not 0 < self.share <= 1:
            raise UserError(f"--rating.share {self.share}", "a share above 0, at most 1", "give 0.15, for example")
        if not -math.inf < self.elo0 < self.elo1 < math.inf:
            asked = f"--rating.elo0 {self.elo0:g} --rating.elo1 {self.elo1:g}"
            raise UserError(asked, "elo0 must be below elo1, and both are numbers", "give 0 and 50, for example")


@dataclass(frozen=True)
class Config:
    """Settings of a chess-value run."""

    iterations: int = free(60)
    """Cycles, also as --cycles: each plays games, labels positions, trains and plays matches."""
    max_positions: int = 400_000
    """The most new positions of a cycle."""
    games: int = 40
    """Games of the present net with itself, in a cycle."""
    stockfish_games: int = 40
    """Games of the present net with Stockfish, in a cycle."""
    labels: LabelKind = "stockfish"
    """stockfish: scores of an engine. search: scores of the net's own search. outcome: results of the games alone."""
    global_batch: int = 8192
    """Positions of one update, on all ranks together."""
    reuse: float = 4.0
    """How often each new position is learned from, on average."""
    final_passes: float = 0.0
    """Passes over the whole window at the end of the last cycle. A position of a late cycle has few others."""
    window: int = 20_000_000
    """Positions to draw from: the newest."""
    parts: int = 8
    """A cycle's positions are labelled in so many parts. A part trains while the next one is labelled."""
    result_mix: float = 0.1
    """The result's share of the target, where a position has a score and a result."""
    validation_share: float = 0.05
    """Share of the games, and of the files' positions, that only validate."""
    eval_games: int = free(100)
    """Games of `ranks evaluate`, against fixed opponents."""
    snapshot_every: int = free(5)
    """Cycles between weights that the run keeps; run:RUN/ITERATION names them as players."""
    net: ValueNetConfig = ValueNetConfig()
    play: PlayConfig = PlayConfig()
    label: LabelConfig = LabelConfig()
    sources: SourceConfig = SourceConfig()
    rating: RatingConfig = RatingConfig()
    optim: OptimConfig = OptimConfig(lr=1e-3, weight_decay=1e-4, schedule="constant")

    def __post_init__(self) -> None:
        at_least(1, self, "iterations", "max_positions", "global_batch", "window", "parts")
        at_least(1, self, "eval_games", "snapshot_every")
        at_least(0, self, "games", "stockfish_games")
        for name in ("result_mix", "validation_share"):
            if not 0 <= getattr(self, name) <= (1 if name == "result_mix" else 0.5):
                flag = f"--{name.replace('_', '-')}"
                raise UserError(f"{flag} {getattr(self, name)}", "a share", f"give {flag} 0.1, for example")
        if not 0 < self.reuse < math.inf:
            raise UserError(f"--reuse {self.reuse}", "a number above 0", "give --reuse 2, for example")
        if not 0 <= self.final_passes < math.inf:
            raise UserError(f"--final-passes {self.final_passes}", "a number from 0", "give 8, for example")
        if not (self.games or self.stockfish_games or self.sources.files):
            do = "give --games, --stockfish-games, --sources.pgn, .csv, .epd or .parts"
            raise UserError("a run of chess-value", "it has no source of positions", do)
        self._check_labels()
        if self.net.kind != "nnue":
            self._check_simulations()

    def _check_labels(self) -> None:
        """Raises UserError for labels that some of the positions cannot have."""
        if self.label.limit == STATIC and self.labels == "search":
            found = "the net would learn from its own evaluation of the same position"
            raise UserError("--labels search --label.limit static", found, "give --label.limit nodes:1000, for example")
        if self.label.limit == STATIC and self.labels == "stockfish" and not self.sources.quiet:
            found = "a position in check has no static evaluation"
            raise UserError("--label.limit static --sources.no-quiet", found, "leave one of them out")
        if self.play.children and self.labels == "outcome":
            asked, found = f"--labels outcome --play.children {self.play.children}", "their results are unknown"
            raise UserError(asked, found, "give --labels stockfish or search, or leave --play.children out")

    def _check_simulations(self) -> None:
        """Raises UserError for limits that the tree search, which plays a cnn or a resnet, does not have."""
        kind, found = f"--net.kind {self.net.kind}", f"its tree search has at most {MOST_SIMULATIONS:,} simulations"
        if self.labels == "search":
            asked, do = f"--labels search {kind} --label.limit {self.label.limit}", "give --label.limit nodes:100"
            if self.label.nodes is None:
                raise UserError(asked, f"the tree search of a {self.net.kind} counts simulations and has no depth", do)
            if self.label.nodes > MOST_SIMULATIONS:
                raise UserError(asked, found, do)
        if self.rating.nodes > MOST_SIMULATIONS:
            raise UserError(f"{kind} --rating.nodes {self.rating.nodes}", found, "give --rating.nodes 100")

    @property
    def full_updates(self) -> int:
        """Updates of a run whose cycles all have `max_positions`: where the schedule of the learning rate ends."""
        trained = self.iterations * self.max_positions * (1 - self.validation_share)
        return max(1, int((self.reuse * trained + self.final_passes * min(trained, self.window)) / self.global_batch))

    @property
    def labels_no_deeper(self) -> bool:
        """Whether the net's own search labels positions with no more nodes than its games have."""
        return self.labels == "search" and self.label.nodes is not None and self.label.nodes <= self.play.nodes

    @property
    def needs_stockfish(self) -> bool:
        """Whether the run plays with Stockfish or has its labels."""
        return self.labels == "stockfish" or self.stockfish_games > 0
