"""The memory of all trees: flat arrays, allocated and touched once, with a fixed share for each game.

    slot      0                    1                    2                  one slot per game under way
    nodes    |root a b c d .  .  .|root a .  .  .  .  . |...               nodes_per_game each, in order of creation
    edges    |r r r a a b b b c ..|r r r a a .  .  .  . |...               edges_per_game each, a node's side by side
    keys     |history |path       |history |path        |...               keys_per_game each, oldest first

A node's edges are its legal moves, and stand in order of their priors as far as the search has needed that: the first
`num_ready` are in place, of which all but perhaps the last have been visited. Since all moves without visits share one
estimate of their value, the best of them is the first, and selection reads only what has been visited, and one more.

Legend: N nodes, E edges, K keys, G slots, W words of a state, M most moves of a state, S simulations, L leaves per game.
Node and edge numbers count through the whole array, so a child is found without knowing its slot.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import types

from ranks.errors import UserError
from ranks.search.config import SearchConfig
from ranks.search.evaluation import Doubles, Flags, Floats, Ints, Longs, Moves, Words
from ranks.search.game import Game

NONE = -1
UNEVALUATED = -1
"""In place of num_ready: the node waits for its evaluation, or has not been sent for one."""


class Arena(NamedTuple):
    """All trees of a search."""

    states_NW: Words
    first_edge_N: Ints
    num_edges_N: Ints
    """Or how the game ended there: LOST, DRAWN or WON for the side to move."""
    num_ready_N: Ints
    value_N: Floats
    """The evaluator's, for the side to move; the outcome where the game is over."""
    parent_N: Ints
    parent_edge_N: Ints

    move_E: Moves
    prior_E: Floats
    visits_E: Ints
    """This array and the next two hold nothing for edges that are not ready."""
    value_sum_E: Doubles
    """Sum over visits, for the side that makes the move."""
    child_E: Ints

    keys_K: Words
    num_keys_G: Longs
    """Keys of the positions played before the root."""

    num_nodes_G: Longs
    """0: nothing has been set up in this slot."""
    num_edges_G: Longs
    root_visits_G: Longs
    budget_G: Longs
    """Simulations still to be made."""
    made_G: Longs
    """Simulations made by this search."""
    prepared_G: Flags
    """The root has had its noise."""
    full_G: Flags
    """The search ended early for want of room."""
    game_id_G: Words
    ply_G: Longs
    pending_GL: Ints
    """Nodes out for evaluation, or NONE."""

    gumbel_GM: Doubles
    """log prior + Gumbel noise of the root's edges, for a `gumbel` root."""
    visits_before_GM: Ints
    """What the root's edges had when this search began."""
    schedule_GS: Ints
    """How many visits of this search an edge must have to be considered at simulation s of sequential halving."""


class Sizes(NamedTuple):
    """Room for one game."""

    nodes_per_game: int
    edges_per_game: int
    keys_per_game: int
    leaves_per_game: int
    max_moves: int
    key_word: int
    history: int


class Rules(NamedTuple):
    """What SearchConfig says, as kernels read it."""

    gumbel: bool
    c_init: float
    c_base: float
    fpu_reduction: float
    dirichlet_alpha: float
    dirichlet_fraction: float
    gumbel_scale: float
    c_visit: float
    c_scale: float
    rescale_values: bool
    reuse: bool
    seed: int


def vector(dtype: Any) -> Any:
    return types.Array(dtype, 1, "C")


def matrix(dtype: Any) -> Any:
    return types.Array(dtype, 2, "C")


U64, I64, I32, U16, F32, F64 = types.uint64, types.int64, types.int32, types.uint16, types.float32, types.float64
FIELDS: dict[str, Any] = {
    "states_NW": matrix(U64),
    **dict.fromkeys(["first_edge_N", "num_edges_N", "num_ready_N"], vector(I32)),
    "value_N": vector(F32),
    **dict.fromkeys(["parent_N", "parent_edge_N"], vector(I32)),
    "move_E": vector(U16),
    "prior_E": vector(F32),
    "visits_E": vector(I32),
    "value_sum_E": vector(F64),
    "child_E": vector(I32),
    "keys_K": vector(U64),
    **dict.fromkeys(["num_keys_G", "num_nodes_G", "num_edges_G", "root_visits_G", "budget_G", "made_G"], vector(I64)),
    **dict.fromkeys(["prepared_G", "full_G"], vector(types.boolean)),
    "game_id_G": vector(U64),
    "ply_G": vector(I64),
    "pending_GL": matrix(I32),
    "gumbel_GM": matrix(F64),
    "visits_before_GM": matrix(I32),
    "schedule_GS": matrix(I32),
}
ARENA = types.NamedTuple(tuple(FIELDS[name] for name in Arena._fields), Arena)
SIZES = types.NamedUniTuple(I64, len(Sizes._fields), Sizes)
RULES = types.NamedTuple((types.boolean, *(F64,) * 8, types.boolean, types.boolean, I64), Rules)


def sizes_of(game: Game, config: SearchConfig) -> Sizes:
    """Room for one search, and where subtrees are kept, for as many nodes again."""
    nodes = 1 + config.simulations * (2 if config.reuse else 1)
    edges_per_node = min(game.max_moves, 64) if config.edges_per_node is None else config.edges_per_node
    edges = nodes * edges_per_node + game.max_moves
    depth = min(nodes, 1024)
    return Sizes(
        nodes, edges, game.history + depth, config.leaves_per_game, game.max_moves, game.key_word, game.history
    )


def rules_of(config: SearchConfig) -> Rules:
    return Rules(
        config.root == "gumbel",
        *(float(getattr(config, name)) for name in Rules._fields[1:9]),
        config.rescale_values,
        config.reuse,
        config.seed,
    )


def allocate(game: Game, config: SearchConfig, sizes: Sizes, num_games: int) -> Arena:
    """An empty arena, every page of it touched: page faults inside a search would cost more than the search."""
    length = {
        "N": num_games * sizes.nodes_per_game,
        "E": num_games * sizes.edges_per_game,
        "K": num_games * sizes.keys_per_game,
        "G": num_games,
        "W": len(game.initial),
        "M": game.max_moves,
        "S": config.simulations if config.root == "gumbel" else 1,
        "L": config.leaves_per_game,
    }
    if max(length["N"], length["E"]) >= 2**31:
        raise UserError(
            f"{num_games} games of {config.simulations} simulations",
            f"{max(length['N'], length['E']):,} nodes or edges, and their numbers have 31 bits",
            "search fewer games at once, or give fewer simulations or edges_per_node",
        )
    arrays: dict[str, Any] = {}
    for name, kind in FIELDS.items():
        shape = tuple(length[letter] for letter in name.rsplit("_", 1)[1])
        arrays[name] = np.full(shape, 1, kind.dtype.name if kind.dtype.name != "bool" else bool)
        arrays[name].fill(0)
    arrays["pending_GL"].fill(NONE)
    arrays["num_ready_N"].fill(UNEVALUATED)
    return Arena(**arrays)
