"""The settings of a search."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ranks.errors import UserError


@dataclass(frozen=True)
class SearchConfig:
    """How each game is searched. The defaults are AlphaZero's (Silver et al. 2018, arXiv 1712.01815) without noise."""

    simulations: int = 100
    """The most that one search of one game may make; a terminal position reached again counts as one."""
    root: Literal["puct", "gumbel"] = "puct"
    """`puct`: AlphaZero. `gumbel`: sequential halving over moves drawn without replacement at the root, and improved
    policy minus visit share below it (Danihelka et al. 2022, Policy improvement by planning with Gumbel)."""

    c_init: float = 1.25
    c_base: float = 19652.0
    fpu_reduction: float = 0.2
    """A move without visits is taken to be worth the mean of its node, less this times the square root of the prior
    mass already visited, at the root as below it. Our rule; the reduction is that of KataGo's search (fpuReductionMax),
    which takes another mean and treats the root apart."""
    dirichlet_alpha: float = 0.3
    dirichlet_fraction: float = 0.0
    """Share of the noise in the priors of a `puct` root; AlphaZero plays itself with 0.25."""

    num_considered: int = 16
    """Moves that a `gumbel` root starts with."""
    gumbel_scale: float = 1.0
    """0 makes a `gumbel` root deterministic, for matches."""
    c_visit: float = 50.0
    c_scale: float = 1.0
    """sigma(q) = (c_visit + most visits) * c_scale * q with q in [0, 1]. Our choice for values of known range; mctx's
    defaults are maxvisit_init = 50, value_scale = 0.1 and rescale_values."""
    rescale_values: bool = False
    """Stretch the completed Q of each node to [0, 1] first, instead of mapping [-1, 1] to it."""

    reuse: bool = True
    """Keep the subtree under the move that was played. A `puct` tree kept and grown to n visits is, without noise, the
    very tree that n visits from scratch make."""
    count_reused: bool = False
    """Let kept visits count towards `simulations`, as KataGo's maxVisits do; else it bounds new ones (maxPlayouts)."""
    leaves_per_game: int = 1
    """Positions of one game in one batch. Above one, moves under way count as lost meanwhile (virtual loss)."""
    edges_per_node: int | None = None
    """Room for moves, as a mean over the nodes of one game; None: the game's maximum, at most 64. A game whose room is
    used up ends its search early, and its result says so."""
    seed: int = 0
    """With the game's id and the ply it is the key of all noise."""

    def __post_init__(self) -> None:
        for name, least in [("simulations", 1), ("num_considered", 1), ("leaves_per_game", 1)]:
            if getattr(self, name) < least:
                raise UserError(f"{name} = {getattr(self, name)}", f"less than {least}", f"give at least {least}")
        if self.edges_per_node is not None and self.edges_per_node < 1:
            raise UserError(f"edges_per_node = {self.edges_per_node}", "less than 1", "give at least 1, or None")
        if not -(2**63) <= self.seed < 2**63:
            raise UserError(f"seed = {self.seed}", "more than 64 bits with a sign", "give -2**63 to 2**63 - 1")
        if not 0.0 <= self.dirichlet_fraction <= 1.0:
            raise UserError(f"dirichlet_fraction = {self.dirichlet_fraction}", "no share", "give 0 to 1")
        if self.dirichlet_alpha <= 0.0 or self.c_base <= 0.0:
            raise UserError("dirichlet_alpha and c_base", "a number that is not positive", "give positive numbers")
