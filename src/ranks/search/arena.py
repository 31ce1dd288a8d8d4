"""The memory of all trees: flat arrays, allocated and touched once, with a fixed share for each game.

    slot      0                    1                    2                  one slot per game under way
    nodes    |root a b c d .  .  .|root a .  .  .  .  . |...               nodes_per_game each, in order of creation
    edges    |r r r a a b b b c ..|r r r a a .  .  .  . |...               edges_per_game each, a node's side by side
    keys     |history |path       |history |path        |...               keys_per_game each, oldest first

A node's edges are its legal moves, and stand in order of their priors as far as the search has needed that: the first
`num_ready` are in place, of which all but perhaps the last have been visited. Since all moves without visits share one
estimate of their value, the best of them is the first, and selection reads only what has been visited, and one more.

Legend: N nodes, E edges, K keys, G slots, W words of a state, M most moves of a state, S simulations, L leaves of one
game. Node and edge numbers count through the whole array, so a child is found without knowing its slot.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numba import from_dtype, types

from ranks.errors import UserError
from ranks.search.config import SearchConfig
from ranks.search.evaluation import Floats, Ints, Moves, Words
from ranks.search.game import Game

NONE = -1
wide: Any = np.int64
"""Row numbers are kept in 32 bits and reckoned with in 64: each mixture of types would compile a helper once more."""
UNEVALUATED = -1
"""In place of num_ready: the node waits for its evaluation, or has not been sent for one."""


NODE = np.dtype(
    [
        ("first_edge", np.int32),
        ("num_edges", np.int32),  # or how the game ended there: LOST, DRAWN or WON for the side to move
        ("num_ready", np.int32),
        ("value", np.float32),  # the evaluator's, for the side to move; the outcome where the game is over
        ("parent", np.int32),
        ("parent_edge", np.int32),
    ],
    align=True,
)
EDGE = np.dtype([("value_sum", np.float64), ("visits", np.int32), ("child", np.int32)], align=True)
"""What is known of a ready edge: the sum of its values, for the side that makes the move. Others hold nothing."""
SLOT = np.dtype(
    [
        ("game_id", np.uint64),
        ("ply", np.int64),
        ("num_keys", np.int64),  # of the positions played before the root
        ("num_nodes", np.int64),
        ("num_edges", np.int64),
        ("root_visits", np.int64),
        ("budget", np.int64),  # simulations still to be made
        ("made", np.int64),  # simulations made by this search
        ("prepared", np.int64),  # the root has had its noise
        ("full", np.int64),  # the search ended early for want of room
    ],
    align=True,
)
ROOT_EDGE = np.dtype([("noise", np.float64), ("visits_before", np.int64)], align=True)
"""Of a `gumbel` root: log prior + Gumbel noise, and the visits that this search found there."""
MOVED = np.dtype([("node", np.int32), ("edge_shift", np.int32)], align=True)
"""Where a kept subtree goes: a node's new number, or NONE; by how much its edges move."""
Records: TypeAlias = Any


class Arena(NamedTuple):
    """All trees of a search. Few arrays, since each costs every kernel compile time; records, since they share a line
    of the cache; priors and moves apart, since whole nodes of them are scanned."""

    states_NW: Words
    nodes_N: Records
    moved_N: Records
    move_E: Moves
    prior_E: Floats
    edges_E: Records
    keys_K: Words
    slots_G: Records
    pending_GL: Ints
    """Nodes out for evaluation, or NONE."""
    root_edges_GM: Records
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


I64, F64 = types.int64, types.float64
DTYPES: dict[str, Any] = {
    "states_NW": np.uint64,
    "nodes_N": NODE,
    "moved_N": MOVED,
    "move_E": np.uint16,
    "prior_E": np.float32,
    "edges_E": EDGE,
    "keys_K": np.uint64,
    "slots_G": SLOT,
    "pending_GL": np.int32,
    "root_edges_GM": ROOT_EDGE,
    "schedule_GS": np.int32,
}
ARENA = types.NamedTuple(
    tuple(types.Array(from_dtype(DTYPES[name]), len(name.rsplit("_", 1)[1]), "C") for name in Arena._fields), Arena
)
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
    numbers = {name: float(getattr(config, name)) for name in Rules._fields[1:9]}
    return Rules(
        gumbel=config.root == "gumbel",
        rescale_values=config.rescale_values,
        reuse=config.reuse,
        seed=config.seed,
        **numbers,
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
    for name, dtype in DTYPES.items():
        arrays[name] = np.empty(tuple(length[letter] for letter in name.rsplit("_", 1)[1]), dtype)
        arrays[name].view(np.uint8).fill(0)
    arrays["pending_GL"].fill(NONE)
    arrays["nodes_N"]["num_ready"] = UNEVALUATED
    return Arena(**arrays)
