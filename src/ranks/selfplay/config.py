"""The settings of self-play and of its replay window. Imports no torch."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from ranks.errors import UserError
from ranks.search.config import SMALLEST_ALPHA

LARGEST = 1e6
"""Of factors without a natural limit: far above any use, and no product of them is infinite."""


@dataclass(frozen=True)
class SelfPlayConfig:
    """How games are searched and played. Raises UserError for a value out of range."""

    search: Literal["gumbel", "puct", "none"] = "gumbel"
    """gumbel: Danihelka et al. 2022, "Policy improvement by planning with Gumbel". puct: AlphaZero
    (Silver et al. 2018, arXiv 1712.01815). none: moves are sampled from the net's policy."""
    simulations: int = 32
    """Simulations of a full search (32: the AlphaZero example of Pgx, with Gumbel search)."""
    progressive_iterations: int = 0
    """Iterations in which the simulations of a full search grow in equal steps from `first_simulations` to
    `simulations`; 0: they do not grow. (Progressive simulation, Wu et al. 2024, "MiniZero", arXiv 2310.11305;
    AlphaZero has a fixed number.)"""
    first_simulations: int = 2
    """Simulations of a full search in the first iteration, where they grow (2: MiniZero)."""
    fast_simulations: int = 8
    """Simulations of a fast search, whose move is no policy target."""
    full_searches: float = 1.0
    """Share of moves with a full search, chosen at random: playout-cap randomisation (Wu 2019, arXiv
    1902.10565, which uses 0.25 and a sixth of the simulations); 1: every move. A fast search has no noise at
    the root, and with puct its most visited move is played."""
    num_considered: int = 16
    """gumbel: moves that sequential halving starts with (mctx: max_num_considered_actions)."""
    gumbel_scale: float = 1.0
    """gumbel: scale of the noise that makes games differ (mctx)."""
    c_scale: float = 1.0
    """gumbel: how sharply values turn into the policy target, which is softmax(log prior + (50 + most visits)
    * c_scale * q) with q in [0, 1] (1.0: Danihelka et al. for Go and chess)."""
    rescale_values: bool = False
    """gumbel: rescale the q of each node to [0, 1] from their own range, not from -1 to 1 (mctx does, with
    c_scale 0.1)."""
    dirichlet_alpha: float = 0.3
    """puct: noise at the root (AlphaZero: 0.3 for chess, about 10 / legal moves)."""
    dirichlet_fraction: float = 0.25
    """puct: share of the noise in the root's priors (AlphaZero)."""
    temperature: float = 1.0
    """puct: a move is sampled with probability visits ** (1 / temperature)."""
    temperature_plies: int = 30
    """puct: plies of a game with this temperature; later the most visited move is played (AlphaGo Zero,
    Silver et al. 2017)."""
    reuse_tree: bool = True
    """Keep the subtree under the move that was played."""
    opening_plies: int = 0
    """Each game begins with 0 to this many random legal moves, which are not learned from, so that games
    differ. (KataGo begins games with moves sampled from its policy.)"""
    resign_value: float | None = None
    """A side resigns after a move whose full search found a value of at most minus this; none: never.
    (AlphaGo Zero chose a value with less than 5 % false resignations.)"""
    resign_check: float = 0.1
    """Share of games without resignation, in which false ones are counted (AlphaGo Zero: 0.1)."""
    max_plies: int = 512
    """A game of this many plies is cut: it counts as drawn, and the value does not learn from its result (from root
    values it does, with --replay.root-value), nor does the policy of REINFORCE (AlphaZero: 512 for chess, as draws)."""
    cuda_graph: bool = True
    """On CUDA, capture the net's forward pass as a CUDA graph, once for each set of weights. Python in `forward` then
    runs at the capture alone."""

    def __post_init__(self) -> None:
        fraction, above_0, whole = "a number from 0 to 1", "a finite number above 0", "1 or more"
        up_to_simulations = f"from 1 to --selfplay.simulations, which is {self.simulations}"
        limits = {
            "simulations": (self.simulations >= 1, whole),
            "progressive-iterations": (self.progressive_iterations >= 0, "0 or more"),
            "first-simulations": (1 <= self.first_simulations <= self.simulations, up_to_simulations)
            if self.progressive_iterations
            else (self.first_simulations >= 1, whole),
            "full-searches": (0 < self.full_searches <= 1, "a number above 0, at most 1"),
            "fast-simulations": (1 <= self.fast_simulations <= self.simulations, up_to_simulations)
            if self.full_searches < 1
            else (self.fast_simulations >= 1, whole),
            "num-considered": (self.num_considered >= 1, whole),
            "gumbel-scale": (0 <= self.gumbel_scale < math.inf, "a finite number, 0 or more"),
            "c-scale": (0 < self.c_scale <= LARGEST, f"a number above 0, at most {LARGEST:,.0f}"),
            "dirichlet-alpha": (
                SMALLEST_ALPHA <= self.dirichlet_alpha < math.inf,
                f"a finite number, {SMALLEST_ALPHA} or more",
            ),
            "dirichlet-fraction": (0 <= self.dirichlet_fraction <= 1, fraction),
            "temperature": (0 < self.temperature < math.inf, above_0),
            "temperature-plies": (self.temperature_plies >= 0, "0 or more"),
            "resign-value": (self.resign_value is None or 0 < self.resign_value <= 1, "a number above 0, at most 1"),
            "resign-check": (0 <= self.resign_check <= 1, fraction),
            "max-plies": (1 <= self.max_plies < 2**16, "from 1 to 65,535"),
            "opening-plies": (0 <= self.opening_plies < self.max_plies, "0 or more, below --selfplay.max-plies"),
        }
        for name, (is_valid, allowed) in limits.items():
            if not is_valid:
                value = getattr(self, name.replace("-", "_"))
                raise UserError(f"--selfplay.{name} {value}", f"it must be {allowed}", "change it")
        if self.search == "none" and self.full_searches < 1:
            asked = f"--selfplay.search none --selfplay.full-searches {self.full_searches:g}"
            raise UserError(asked, "without search all moves are made alike", "leave --selfplay.full-searches out")

    def simulations_at(self, iteration: int) -> int:
        """The simulations of a full search in an iteration, from 0: after n of N progressive iterations the share
        n / N of the way from `first_simulations` to `simulations`, rounded down."""
        if iteration >= self.progressive_iterations:
            return self.simulations
        grown = (self.simulations - self.first_simulations) * iteration // self.progressive_iterations
        return self.first_simulations + grown


@dataclass(frozen=True)
class ReplayConfig:
    """Which positions an update learns from. Raises UserError for a value out of range."""

    reuse: float = 4.0
    """How often a new position is learned from, on average: updates x batch / new positions (the replay
    ratio). The most
    important setting of self-play: a small one wastes games, a large one overfits to them. (KataGo's
    max-train-bucket-per-new-data: 4 in its instructions, 8 in its synchronous loop.)"""
    positions: int = 250_000
    """The newest positions, from which batches are drawn; whole iterations are dropped. (KataGo begins with
    250,000.)"""
    first_positions: int = 0
    """Positions before the first update. Otherwise the first games, which share few outcomes, are learned from
    again and again: a position is drawn reuse * (1 + 1/2 + 1/3 + ...) times while the window fills. They do not
    count for `reuse` later. (KataGo: -min-rows of its shuffler.)"""
    on_policy: bool = False
    """Learn from the newest iteration only, in `reuse` passes over its positions in random order, without
    replacement: for search none with `reuse` 1. `positions` is then not used."""
    mirror: bool = True
    """Mirror each position of a batch or not, at random with equal chance, in a game whose window was given a
    symmetry. (AlphaGo Zero, Silver et al. 2017, reflects and rotates the positions that it learns from.)"""
    root_value: float = 0.0
    """Share of the search's root value in the value target, the rest is the outcome of the game. (0:
    AlphaZero.)"""

    def __post_init__(self) -> None:
        limits = {
            "reuse": (0 < self.reuse <= LARGEST, f"a number above 0, at most {LARGEST:,.0f}"),
            "positions": (1 <= self.positions < 2**31, "from 1 to 2,147,483,647"),
            "first-positions": (0 <= self.first_positions < 2**31, "from 0 to 2,147,483,647"),
            "root-value": (0 <= self.root_value <= 1, "a number from 0 to 1"),
        }
        for name, (is_valid, allowed) in limits.items():
            if not is_valid:
                value = getattr(self, name.replace("-", "_"))
                raise UserError(f"--replay.{name} {value}", f"it must be {allowed}", "change it")
        if self.on_policy and self.first_positions:
            asked = f"--replay.on-policy --replay.first-positions {self.first_positions}"
            raise UserError(asked, "each iteration learns from its own positions alone", "leave one of them out")
        if self.first_positions > self.positions:
            asked = f"--replay.first-positions {self.first_positions} --replay.positions {self.positions}"
            found = "the window would drop most of the first positions before the first update"
            raise UserError(asked, found, "give at least as many --replay.positions")

    def check_batch(self, global_batch: int) -> None:
        """Raises UserError where a batch is empty, or the window is smaller than a batch."""
        if global_batch < 1:
            raise UserError(
                f"--global-batch {global_batch}", "an update learns from at least one position", "change it"
            )
        if global_batch > self.positions and not self.on_policy:
            found = f"--replay.positions {self.positions:,} is smaller than a batch"
            do = f"give --replay.positions {global_batch} or more, or a smaller batch"
            raise UserError(f"a batch of {global_batch:,} positions", found, do)

    def check_search(self, search: str) -> None:
        """Raises UserError for games without search, of which REINFORCE would learn from old weights, or from a
        position more than once. `search`: that of `SelfPlayConfig`."""
        if search == "none" and not (self.on_policy and self.reuse <= 1):
            on_policy = "" if self.on_policy else "no-"
            asked = f"--selfplay.search none --replay.{on_policy}on-policy --replay.reuse {self.reuse:g}"
            found = "REINFORCE learns from games of the newest weights, and from each position once"
            raise UserError(asked, found, "give --replay.on-policy --replay.reuse 1, or --selfplay.search gumbel")
        if search == "none" and self.root_value:
            asked = f"--selfplay.search none --replay.root-value {self.root_value:g}"
            raise UserError(asked, "without search there is no root value", "leave --replay.root-value out")
