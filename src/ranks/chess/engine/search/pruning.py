"""What is not searched, or less deeply: margins in centipawns and plies.

The forms are common knowledge (chessprogramming.org); the numbers were chosen for this search.
"""

from __future__ import annotations

import numpy as np

FUTILE_NODE_DEPTH, FUTILE_NODE_CP = 4, 120
"""So far above beta that the opponent cannot catch up (reverse futility)."""
NULL_DEPTH, NULL_REDUCTION, PLIES_PER_NULL_REDUCTION = 3, 2, 5
"""The null move. It is reduced alike however far a position is above beta: after a sacrifice that leads to mate it is
far above, and the mate must be seen."""
NO_HASH_MOVE_DEPTH = 4
"""From this depth on, a node without a hash move is searched one ply less deeply (internal iterative reduction)."""
LATE_MOVES = 4
"""After so many quiet moves, plus the square of the depth, the others are left out (late move pruning)."""
FUTILE_MOVE_DEPTH, FUTILE_MOVE_CP, FUTILE_MOVE_CP_PER_PLY = 7, 90, 80
EXCHANGE_DEPTH, EXCHANGE_QUIET_CP, EXCHANGE_CAPTURE_CP = 8, 25, 100
HISTORY_DEPTH, HISTORY_PER_PLY = 4, 3500
DELTA_CP = 180
"""In the quiescence search: a capture that stays this far below alpha is left out."""
HISTORY_PER_REDUCTION = 8192
SINGULAR_DEPTH, SINGULAR_CP_PER_PLY = 7, 2


def reductions() -> np.ndarray[tuple[int, int], np.dtype[np.int64]]:
    """int64[64, 64]: by how many plies a late move is reduced, by depth and number of the move."""
    logs = np.log(np.maximum(np.arange(64), 1))
    return np.floor(0.3 + np.outer(logs, logs) / 2.6).astype(np.int64)


REDUCTIONS = reductions()
