"""The memory of all trees of a search: flat arrays, allocated once, with a fixed share for each game.

    slot      0                    1                    2                  one slot for each game
    nodes    |root a b c d .  .  .|root a .  .  .  .  . |...               nodes_per_game each, in order of creation
    edges    |r r r a a b b b c ..|r r r a a .  .  .  . |...               edges_per_game each, a node's side by side
    keys     |history |path       |history |path        |...               keys_per_game each, oldest first

A node's edges are its legal moves. They are sorted by prior only as far as the search has needed it: the first
`num_initialized` edges are in place and have statistics, and all of them except perhaps the last have been visited.
All moves without visits share one estimate of their value, so the best of them is the one with the highest prior.
Selection therefore reads the visited edges and one more.

Legend: N nodes, E edges, K keys, G slots, W words of a state, M most moves of a state, S simulations, L leaves of one
game. Node and edge numbers count through the whole array, so a child is found without knowing its slot.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numba import from_dtype, types

from ranks.errors import UserError
from ranks.jit import inlined
from ranks.search.config import SearchConfig
from ranks.search.evaluation import Float32Array, Int32Array, Moves, Words
from ranks.search.game import WON, Game, outcome_of

NONE = -1
GUARD = 512
"""Room behind the last legal move, so that rules that write too many do not write elsewhere before they are noticed."""
IMPOSSIBLE = -1000
"""num_edges of a node whose number of moves is impossible: see `checked_count`."""
int64: Any = np.int64
"""Node and edge numbers are stored in 32 bits and computed in 64: each mix of types would compile a helper again."""
UNEVALUATED = -1
"""In place of num_initialized: the node has no evaluation yet."""


NODE = np.dtype(
    [
        ("first_edge", np.int32),
        ("num_edges", np.int32),  # or LOST, DRAWN or WON where the game is over (game.outcome_of); see checked_count
        ("num_initialized", np.int32),  # or UNEVALUATED
        ("value", np.float32),  # the evaluator's, for the side to move; the outcome where the game is over
        ("parent", np.int32),
        ("parent_edge", np.int32),
    ],
    align=True,
)
EDGE = np.dtype([("value_sum", np.float64), ("visits", np.int32), ("child", np.int32)], align=True)
"""Statistics of an initialized edge; value_sum is for the side that makes the move. Other edges hold garbage."""
SLOT = np.dtype(
    [
        ("game_id", np.uint64),
        ("ply", np.int64),
        ("num_keys", np.int64),  # of the positions played before the root
        ("num_nodes", np.int64),
        ("num_edges", np.int64),
        ("root_visits", np.int64),
        ("simulations_left", np.int64),
        ("simulations_done", np.int64),  # by this search
        ("evaluate_root", np.int64),  # a search without simulations: evaluate the root, and no more
        ("wants_noise", np.int64),  # whether this search has noise at the root
        ("noise_added", np.int64),  # to this root
        ("out_of_nodes", np.int64),  # the search ended early: no room for another node, its edges or its key
    ],
    align=True,
)
ROOT_EDGE = np.dtype([("noise", np.float64), ("visits_before", np.int64)], align=True)
"""Of a `gumbel` root: Gumbel noise + log prior, and the visits that the edge had before this search. Of a `puct` root
with Dirichlet noise: the logarithm of the Gamma sample."""
RELOCATION = np.dtype([("node", np.int32), ("edge_shift", np.int32)], align=True)
"""Where compaction moves a node of a kept subtree: its new number, or NONE; by how much its edges move down."""
Records: TypeAlias = Any


class Trees(NamedTuple):
    """All trees of a search. Few arrays, because each costs every kernel compile time. Records, because their fields
    share a cache line. Priors and moves apart, because the kernels scan whole nodes of them."""

    states_NW: Words
    nodes_N: Records
    relocation_N: Records
    move_E: Moves
    prior_E: Float32Array
    edges_E: Records
    keys_K: Words
    slots_G: Records
    pending_GL: Int32Array
    """Nodes out for evaluation, or NONE."""
    root_edges_GM: Records
    considered_visits_GS: Int32Array
    """The visits of this search that an edge must have to be considered at simulation s of sequential halving."""


class Sizes(NamedTuple):
    """Room for one game."""

    nodes_per_game: int
    edges_per_game: int
    keys_per_game: int
    leaves_per_game: int
    max_moves: int
    key_word: int
    history: int


class SearchParams(NamedTuple):
    """The fields of SearchConfig that kernels read."""

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
    """The Numba type of a one-dimensional array."""
    return types.Array(dtype, 1, "C")


def matrix(dtype: Any) -> Any:
    """The Numba type of a two-dimensional array."""
    return types.Array(dtype, 2, "C")


I64, F64 = types.int64, types.float64
DTYPES: dict[str, Any] = {
    "states_NW": np.uint64,
    "nodes_N": NODE,
    "relocation_N": RELOCATION,
    "move_E": np.uint16,
    "prior_E": np.float32,
    "edges_E": EDGE,
    "keys_K": np.uint64,
    "slots_G": SLOT,
    "pending_GL": np.int32,
    "root_edges_GM": ROOT_EDGE,
    "considered_visits_GS": np.int32,
}
TREES = types.NamedTuple(
    tuple(types.Array(from_dtype(DTYPES[name]), len(name.rsplit("_", 1)[1]), "C") for name in Trees._fields), Trees
)
SIZES = types.NamedUniTuple(I64, len(Sizes._fields), Sizes)
PARAMS = types.NamedTuple((types.boolean, *(F64,) * 8, types.boolean, types.boolean, I64), SearchParams)


def tree_sizes(game: Game, config: SearchConfig) -> Sizes:
    """Room for one search; twice as many nodes where subtrees are kept."""
    nodes = 1 + config.simulations * (2 if config.reuse else 1)
    edges_per_node = config.edges_per_node or game.edges_per_node or game.max_moves
    edges = nodes * edges_per_node + game.max_moves
    depth = min(nodes, 1024)
    return Sizes(
        nodes, edges, game.history + depth, config.leaves_per_game, game.max_moves, game.key_word, game.history
    )


def search_params(config: SearchConfig) -> SearchParams:
    """The settings as kernels read them."""
    numbers = {name: float(getattr(config, name)) for name in SearchParams._fields[1:9]}
    return SearchParams(
        gumbel=config.root == "gumbel",
        rescale_values=config.rescale_values,
        reuse=config.reuse,
        seed=config.seed,
        **numbers,
    )


def tree_shapes(game: Game, config: SearchConfig, sizes: Sizes, num_games: int) -> dict[str, tuple[int, ...]]:
    """The shape of each array of `Trees`, by name. Raises UserError for too many nodes or edges."""
    length = {
        "N": num_games * sizes.nodes_per_game,
        "E": num_games * sizes.edges_per_game + GUARD,
        "K": num_games * sizes.keys_per_game,
        "G": num_games,
        "W": len(game.initial),
        "M": game.max_moves,
        "S": config.simulations if config.root == "gumbel" else 1,
        "L": config.leaves_per_game,
    }
    if max(length["N"], length["E"]) >= 2**31:
        raise UserError(
            f"searches of {config.simulations:,} simulations, {num_games:,} at once",
            f"{max(length['N'], length['E']):,} nodes or edges, and their numbers have 31 bits",
            "search fewer games at once, or give fewer simulations"
            + " or edges_per_node" * bool(config.edges_per_node),
        )
    return {name: tuple(length[letter] for letter in name.rsplit("_", 1)[1]) for name in DTYPES}


def tree_bytes(game: Game, config: SearchConfig, num_games: int) -> int:
    """The memory that the trees of a search need. Raises UserError as `allocate_trees` does."""
    shapes = tree_shapes(game, config, tree_sizes(game, config), num_games)
    return sum(math.prod(shape) * np.dtype(DTYPES[name]).itemsize for name, shape in shapes.items())


def allocate_trees(game: Game, config: SearchConfig, sizes: Sizes, num_games: int) -> Trees:
    """Empty trees. Every page is written to now: page faults inside a search would cost more than the search."""
    arrays: dict[str, Any] = {}
    for name, shape in tree_shapes(game, config, sizes, num_games).items():
        arrays[name] = np.empty(shape, DTYPES[name])
        arrays[name].view(np.uint8).fill(0)
    arrays["pending_GL"].fill(NONE)
    arrays["nodes_N"]["num_initialized"] = UNEVALUATED
    return Trees(**arrays)


node_outcome = inlined(outcome_of)
"""`game.outcome_of` in kernels: the outcome of a finished node from its num_edges."""


@inlined
def checked_count(count: int, max_moves: int) -> int:
    """num_edges of a node from what `legal_moves` returned.

    An impossible number is kept as a negative one, so that the node has no moves: a number of 0 or more as IMPOSSIBLE
    minus it, one below WON as it is."""
    if count == 0 or count > max_moves:
        return IMPOSSIBLE - min(count, 1 << 30)
    return max(count, IMPOSSIBLE + 1)


def impossible_count(num_edges: int) -> int | None:
    """What `legal_moves` returned for a node, where that is impossible; else None."""
    if num_edges >= WON:
        return None
    return IMPOSSIBLE - num_edges if num_edges <= IMPOSSIBLE else num_edges


@inlined
def is_finished(trees: Trees, node: int) -> bool:
    """Whether the game is over at a node."""
    return trees.nodes_N[node].num_edges < 0


@inlined
def is_evaluated(trees: Trees, node: int) -> bool:
    """Whether a node has its priors and value. A finished game never has."""
    return trees.nodes_N[node].num_initialized != UNEVALUATED


@inlined
def mean_value(trees: Trees, edge: int) -> float:
    """Q of a visited edge, for the side that makes the move."""
    return trees.edges_E[edge].value_sum / trees.edges_E[edge].visits
