"""`simulate.step` on several threads at once: Numba's own, since Python's take longer to start than the trees to step.

Importing this module compiles the kernel, which takes longer than that of one thread.
"""

from __future__ import annotations

import functools
from typing import Any, cast

import numba
import numpy as np
from numba import types

from ranks.jit import kernel
from ranks.search.evaluation import Float32Array, Int32Array, Int64Array, Moves, Words
from ranks.search.game import LEGAL_MOVES_TYPE, PLAY_TYPE
from ranks.search.simulate import MOVES, NUM_MOVES, PRIORS, SLOTS, STATES, VALUES, step
from ranks.search.trees import NONE, PARAMS, SIZES, TREES, SearchParams, Sizes, Trees


def start_threads(threads: int) -> None:
    """Start Numba's threads and let this thread use so many of them.

    They may be OpenMP's. Then this process has another number of OpenMP threads, which torch uses too: set it again."""
    numba.set_num_threads(min(threads, cast("Any", numba).config.NUMBA_NUM_THREADS))


def step_in_parallel(serial: functools.partial[int], parts: int, slots_P: Int64Array, *batch: Any) -> int:
    """One step of these slots in so many parts, by the threads that were started. `serial`: the kernel `step` with the
    rules and trees of a search. Returns a row whose evaluation is not valid, or NONE."""
    bounds_T = np.linspace(0, len(slots_P), parts + 1).astype(np.int64)
    return cast("Any", parallel_step)(*serial.args, slots_P, bounds_T, *batch)


@kernel(
    types.int64(
        PLAY_TYPE, LEGAL_MOVES_TYPE, TREES, SIZES, PARAMS,
        SLOTS, SLOTS, types.int64, STATES, MOVES, NUM_MOVES, PRIORS, VALUES,
    ),
    parallel=True,
)  # fmt: skip
def parallel_step(
    play: Any,
    legal_moves: Any,
    trees: Trees,
    sizes: Sizes,
    params: SearchParams,
    slots_P: Int64Array,
    bounds_T: Int64Array,
    first_slot: int,
    states_BW: Words,
    moves_BM: Moves,
    num_moves_B: Int32Array,
    priors_BM: Float32Array,
    value_B: Float32Array,
) -> int:
    """`step` of the slots from each bound to the next."""
    parts = len(bounds_T) - 1
    invalid_T = np.repeat(NONE, parts)
    for part in numba.prange(parts):
        of_part_P = slots_P[bounds_T[part] : bounds_T[part + 1]]
        invalid_T[part] = step(
            play, legal_moves, trees, sizes, params, of_part_P, first_slot,
            states_BW, moves_BM, num_moves_B, priors_BM, value_B,
        )  # fmt: skip
    return invalid_T.max()
