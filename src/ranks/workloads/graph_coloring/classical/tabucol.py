"""TabuCol (Hertz & de Werra 1987, Computing 39): tabu search for a proper k-colouring.

Each move gives a conflicting node another colour: of all such moves that are not tabu, one that
leaves the fewest conflicts; ties are broken at random. The old colour of the node is then tabu for
it. Aspiration: a tabu move is allowed if it leads to fewer conflicts than the best colouring so
far. The tabu tenure is that of Galinier & Hao 1999 (J. Comb. Optim. 3): random in 0..9, plus 0.6 x
conflicting nodes.

The table gamma holds, for each node and colour, how many neighbours have that colour. A flag, the
second highest bit, marks the tabu colours of a node and its own colour. So the lowest number of a
row is the best allowed move of the node, and vector instructions find it (lanes.py). Each tabu
colour has a record in a ring, listed by the move in which its tenure ends; there the flag is
removed.

Legend: N nodes, K colours, L columns of gamma (K padded), R records.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
from numba import from_dtype, types

from ranks.jit import inlined, kernel
from ranks.workloads.graph_coloring.classical.colouring_state import (
    SMALL_STATE,
    STATE,
    VECTOR,
    ColouringState,
    initial_state,
    recolour,
)
from ranks.workloads.graph_coloring.classical.lanes import count, lowest, padded
from ranks.workloads.graph_coloring.classical.rng import int64, mix, randint, uintp
from ranks.workloads.graph_coloring.graphs.graph import Graph, Ints, Ints32

TENURE_RANDOM, TENURE_PER_CONFLICT = 10, 0.6
EVALUATIONS_PER_CALL, EVALUATIONS_PER_MOVE = 10_000_000, 500
"""Entries of gamma that are read between two looks at the clock: some milliseconds. A move costs as
much as 500 more."""
LARGEST_SMALL_DEGREE = (1 << 14) - 1
"""Up to this degree gamma is int16."""
FOREVER = 1 << 62
"""The move until which a node's own colour is tabu."""
NO_MOVE = 1 << 40
"""A higher change of the number of conflicts than any move has."""
PROGRESS = np.dtype([(name, np.int64) for name in ("move", "conflicts", "num_conflicting", "best")])
int16: Any = np.int16
int32: Any = np.int32
Progress: TypeAlias = Any
"""A record of PROGRESS."""


class TabuList(NamedTuple):
    """Which colours of which nodes are tabu, and the records of when that ends. All arrays are int64.

    The record of move m is number m % R; R is a power of two above the longest tenure.
    """

    until_NK: Ints
    """The last move in which a colour is tabu for a node; FOREVER for its own colour."""
    first_R: Ints
    """The first record whose tenure ends with move t is first_R[t % R]; -1: none."""
    next_R: Ints
    """The next record whose tenure ends with the same move."""
    node_R: Ints
    colour_R: Ints


@dataclass(frozen=True)
class TabuResult:
    """The best colouring that TabuCol found.

    `colours_N`: int64. `conflicts`: its conflicting edges. `seconds`: by the given clock.

    `moves`: all moves of the search. A move in which every colour was tabu (only in tiny graphs)
    counts too.
    """

    colours_N: Ints
    conflicts: int
    moves: int
    seconds: float


def tabucol(
    graph: Graph,
    k: int,
    seed: int,
    *,
    max_moves: int | None = None,
    max_s: float | None = None,
    start_N: npt.ArrayLike | None = None,
    clock: Callable[[], float] | None = None,
) -> TabuResult:
    """Tabu search from random colours or `start_N`, until no edge conflicts or up to a limit.

    Give `max_moves`, `max_s` or both. `max_s`: seconds of wall time, or of another clock
    (time.process_time). Without `max_s` the result depends on the other arguments only. Raises
    ValueError without a limit, if k < 1, or if `start_N` is not one colour in 0..k-1 for each node.
    """
    if max_moves is None and max_s is None:
        raise ValueError("tabucol needs max_moves or max_s")
    clock = clock or time.perf_counter
    start_s = clock()
    deadline = start_s + max_s if max_s is not None else float("inf")
    small = int(np.diff(graph.csr()[0]).max(initial=0)) <= LARGEST_SMALL_DEGREE
    count_type, run = (np.int16, search_small) if small else (np.int32, search)
    flag = flag_of(count_type)
    state, conflicts, num_conflicting = initial_state(graph, k, seed, start_N, padded(k), count_type)
    tabu = start_tabu_list(state, k, flag)
    best_N, delta_N = state.colours_N.copy(), np.zeros(graph.n, np.int64)
    progress = np.array([(0, conflicts, num_conflicting, conflicts)], PROGRESS)
    last = FOREVER if max_moves is None else max_moves
    while progress["conflicts"][0] and k > 1 and progress["move"][0] < last and clock() < deadline:
        run(state, tabu, delta_N, best_N, progress, seed, flag, last, EVALUATIONS_PER_CALL)
    found = progress[0]
    return TabuResult(best_N.astype(np.int64), int(found["best"]), int(found["move"]), clock() - start_s)


def flag_of(count_type: type) -> Any:
    """The flag of a tabu colour: above all counts, and in the sign's place neither."""
    return np.asarray(1 << (8 * np.dtype(count_type).itemsize - 2), count_type)[()]


def start_tabu_list(state: ColouringState, k: int, flag: int) -> TabuList:
    """A list without tenures, which makes tabu only the own colour of each node; flags it in gamma.

    Also makes the columns from k on the highest numbers, so that no move leads there.
    """
    n, nodes_N = len(state.colours_N), np.arange(len(state.colours_N))
    state.gamma_NK[nodes_N, state.colours_N] |= flag
    state.gamma_NK[:, k:] = np.iinfo(state.gamma_NK.dtype).max
    until_NK = np.zeros((n, k), np.int64)
    until_NK[nodes_N, state.colours_N] = FOREVER
    records = 1 << (TENURE_RANDOM + int(TENURE_PER_CONFLICT * n)).bit_length()
    return TabuList(until_NK, *(np.full(records, -1) for _ in range(4)))


@inlined
def end_tenures(state: ColouringState, tabu: TabuList, move: int, mask: int) -> None:
    """Removes the flags of the colours whose tenure ended with the move before `move`."""
    records = len(tabu.first_R) - 1
    slot = uintp((move - 1) & records)
    record = tabu.first_R[slot]
    tabu.first_R[slot] = -1
    while record >= 0:
        node, colour = uintp(tabu.node_R[uintp(record)]), uintp(tabu.colour_R[uintp(record)])
        if tabu.until_NK[node, colour] == move - 1:  # else a later move changed it
            state.gamma_NK[node, colour] &= mask
        record = tabu.next_R[uintp(record)]


@inlined
def start_tenure(tabu: TabuList, move: int, node: int, colour: int, last: int) -> None:
    """Makes a colour tabu for a node up to the move `last`. Its flag is set already."""
    records = len(tabu.first_R) - 1
    tabu.until_NK[node, colour] = last
    record, slot = uintp(move & records), uintp(last & records)
    tabu.node_R[record], tabu.colour_R[record] = node, colour
    tabu.next_R[record], tabu.first_R[slot] = tabu.first_R[slot], record


def _search(
    state: ColouringState,
    tabu: TabuList,
    delta_N: Ints,
    best_N: Ints32,
    progress: Progress,
    seed: int,
    flag: int,
    last: int,
    max_evaluations: int,
) -> None:
    """Continues the search up to the move `last`, until no conflict is left, or up to `max_evaluations`.

    Move m uses the random numbers n + 2m and n + 2m + 1 of the seed: for the choice between equal
    moves, and for the tenure. Equal moves are ordered as in the list of conflicting nodes, then by
    colour.
    """
    key, n, k = mix(np.uint64(seed)), len(best_N), tabu.until_NK.shape[1]
    small = state.gamma_NK.dtype.type
    mask, everything = small(flag - 1), small(-1)
    move, conflicts = progress[0].move, progress[0].conflicts
    num_conflicting, best = progress[0].num_conflicting, progress[0].best
    evaluations = 0
    while conflicts > 0 and move < last and evaluations < max_evaluations:
        move += 1
        evaluations += EVALUATIONS_PER_MOVE + num_conflicting * k
        end_tenures(state, tabu, move, mask)

        # For each conflicting node the lowest change of the number of conflicts. Only a node with
        # many conflicts can have a tabu move that leads below the best.
        least = NO_MOVE
        for i in range(num_conflicting):
            node = uintp(state.conflicting_N[i])
            row = state.gamma_NK[node]
            own = int64(row[uintp(state.colours_N[node])] & mask)
            delta = int64(lowest(row, everything)) - own
            aspiration = best - conflicts - 1
            if own + aspiration >= 0:
                with_tabu = int64(lowest(row, mask)) - own
                delta = with_tabu if with_tabu <= aspiration else delta
            delta_N[i] = delta
            least = min(least, delta)
        if least > flag // 2:
            continue  # every move is tabu: wait until a tenure ends

        # Count the moves with the lowest change; choose one of them.
        seen = everything if least > best - conflicts - 1 else mask
        num_ties = 0
        for i in range(num_conflicting):
            if delta_N[i] == least:
                node = uintp(state.conflicting_N[i])
                row = state.gamma_NK[node]
                own = int64(row[uintp(state.colours_N[node])] & mask)
                num_ties += count(row, seen, small(own + least))
        chosen = randint(key, n + 2 * move, num_ties)

        # Find it.
        node, new = uintp(0), 0
        for i in range(num_conflicting):
            if delta_N[i] == least:
                node = uintp(state.conflicting_N[i])
                row = state.gamma_NK[node]
                wanted = small(int64(row[uintp(state.colours_N[node])] & mask) + least)
                here = count(row, seen, wanted)
                if chosen < here:
                    for c in range(k):
                        if row[c] & seen == wanted:
                            if chosen == 0:
                                new = c
                                break
                            chosen -= 1
                    break
                chosen -= here

        # Make it; the old colour of the node becomes tabu.
        tenure = randint(key, n + 2 * move + 1, TENURE_RANDOM) + int64(TENURE_PER_CONFLICT * num_conflicting)
        start_tenure(tabu, move, node, int64(state.colours_N[node]), move + tenure)
        tabu.until_NK[node, new] = FOREVER
        state.gamma_NK[node, new] |= flag
        num_conflicting = recolour(state, num_conflicting, node, new, flag)
        conflicts += least
        if conflicts < best:
            best = conflicts
            for v in range(n):
                best_N[v] = state.colours_N[v]

    progress[0].move, progress[0].conflicts = move, conflicts
    progress[0].num_conflicting, progress[0].best = num_conflicting, best


_INT64S = types.Array(types.int64, 1, "C")
TABU_LIST = types.NamedTuple((types.Array(types.int64, 2, "C"), _INT64S, _INT64S, _INT64S, _INT64S), TabuList)
search, search_small = (
    kernel(
        types.void(
            state,
            TABU_LIST,
            _INT64S,
            VECTOR,
            types.Array(from_dtype(PROGRESS), 1, "C"),
            types.int64,
            number,
            types.int64,
            types.int64,
        ),
        allocates=False,
    )(_search)
    for state, number in ((STATE, types.int32), (SMALL_STATE, types.int16))
)
"""`_search` with gamma as int32, and as int16 for graphs with degrees below its flag."""
