"""What a search gives back.

Legend: P slots, M most moves of a state.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from ranks.search.evaluation import Doubles, Flags, Floats, Ints, Longs, Moves


class SearchResult(NamedTuple):
    """What the searches of P slots found. Row p is about slot slots_P[p]; its moves are the first num_moves_P[p]."""

    slots_P: Longs
    num_moves_P: Ints
    """0 where the game is over or has not been evaluated."""
    moves_PM: Moves
    """In the order of the tree: by prior, as far as it was needed."""
    visits_PM: Ints
    """Simulations through each move, kept ones included."""
    priors_PM: Floats
    """The evaluator's, with the root's Dirichlet noise in them."""
    q_PM: Doubles
    """Mean value for the side to move at the root; of moves without visits the estimate v_mix."""
    policy_PM: Doubles
    """The target to learn: the share of visits (`puct`), or the improved policy (`gumbel`)."""
    value_P: Doubles
    """Mean value of the root for its side to move; the outcome where the game is over; NaN without an evaluation."""
    chosen_P: Moves
    """The most visited move, of equals the one with the higher prior (`puct`); the one that won the sequential halving
    (`gumbel`). Of no meaning without moves."""
    simulations_P: Longs
    """Made by this search; reused ones do not count."""
    full_P: Flags
    """The search ended early: the arena had no room for more."""


@dataclass
class SearchTimes:
    """Where the time went, in seconds, since the search was made or `times` was replaced."""

    tree_s: float = 0.0
    """In kernels, summed over threads."""
    evaluation_s: float = 0.0
    waiting_s: float = 0.0
    """The caller's thread waited for trees."""
    wall_s: float = 0.0
    num_batches: int = 0
    num_leaves: int = 0
    num_rows: int = 0
    """num_leaves / num_rows is how full the batches were."""
