"""The settings of a search."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from ranks.errors import UserError

SMALLEST_ALPHA = 1e-3
"""Of Dirichlet noise: much smaller ones give numbers that are too large."""


@dataclass(frozen=True)
class SearchConfig:
    """How each game is searched. The defaults are AlphaZero's (Silver et al. 2018, arXiv 1712.01815) without noise."""

    simulations: int = 100
    """The most simulations of one search of one game. Each visit of a finished position counts as one."""
    root: Literal["puct", "gumbel"] = "puct"
    """`puct`: AlphaZero. `gumbel`: sequential halving over moves drawn without replacement at the root, and improved
    policy minus visit share below it (Danihelka et al. 2022, Policy improvement by planning with Gumbel)."""

    c_init: float = 1.25
    c_base: float = 19652.0
    fpu_reduction: float = 0.2
    """First-play urgency: a move without visits has the mean value of its node, less this times the square root of the
    prior mass already visited, at the root and in interior nodes. This rule is our own. The reduction is that of
    KataGo's search (fpuReductionMax), which uses another mean and another rule at the root."""
    dirichlet_alpha: float = 0.3
    dirichlet_fraction: float = 0.0
    """Share of the noise in the priors of a `puct` root; AlphaZero uses 0.25 in self-play."""

    num_considered: int = 16
    """Moves that sequential halving starts with at a `gumbel` root (mctx: max_num_considered_actions)."""
    gumbel_scale: float = 1.0
    """0 makes a `gumbel` root deterministic, for matches between players."""
    c_visit: float = 50.0
    c_scale: float = 1.0
    """sigma(q) = (c_visit + most visits) * c_scale * q with q in [0, 1]. Our choice for values of known range; mctx's
    defaults are maxvisit_init = 50, value_scale = 0.1 and rescale_values = True."""
    rescale_values: bool = False
    """Rescale the completed Q of each node from its own range to [0, 1], instead of from [-1, 1]."""

    reuse: bool = True
    """Keep the subtree under the move that was played. Without noise, a reused `puct` tree with n visits is equal to
    the tree of n visits from scratch."""
    count_reused: bool = False
    """Count the visits of a reused subtree towards `simulations` (KataGo: maxVisits). False counts only new simulations
    (maxPlayouts)."""
    leaves_per_game: int = 1
    """Positions of one game in one batch. Above one, positions out for evaluation count as lost (virtual loss)."""
    edges_per_node: int | None = None
    """Room for moves, as a mean over the nodes of one game; None: that of the game. A search whose room is used up
    ends early, and its result has out_of_nodes_P set."""
    seed: int = 0
    """All noise is a function of the seed, the game's id and the ply."""

    def __post_init__(self) -> None:
        for name, least in [("simulations", 1), ("num_considered", 1), ("leaves_per_game", 1)]:
            if getattr(self, name) < least:
                raise UserError(f"{name} = {getattr(self, name)}", f"less than {least}", f"give at least {least}")
        if self.edges_per_node is not None and self.edges_per_node < 1:
            raise UserError(f"edges_per_node = {self.edges_per_node}", "less than 1", "give at least 1, or None")
        if not -(2**63) <= self.seed < 2**63:
            raise UserError(f"seed = {self.seed}", "more than 64 bits with a sign", "give -2**63 to 2**63 - 1")
        if not 0.0 <= self.dirichlet_fraction <= 1.0:
            raise UserError(f"dirichlet_fraction = {self.dirichlet_fraction}", "not between 0 and 1", "give 0 to 1")
        if not SMALLEST_ALPHA <= self.dirichlet_alpha < math.inf:
            asked = f"dirichlet_alpha = {self.dirichlet_alpha}"
            raise UserError(asked, "too small, or no number", f"give {SMALLEST_ALPHA} or more")
        if not 0.0 < self.c_base < math.inf:
            raise UserError(f"c_base = {self.c_base}", "not a positive number", "give a positive number")
