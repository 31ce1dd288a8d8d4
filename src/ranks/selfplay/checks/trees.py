"""Rules that gave an impossible answer inside a tree, and checkpoints of other games."""

from __future__ import annotations

import numpy as np

from ranks.errors import UserError
from ranks.search.evaluation import Int64Array
from ranks.search.game import WON, Game
from ranks.search.trees import Trees, impossible_count


def check_game(game: Game, saved: str, what: str) -> None:
    """Raises UserError where a checkpoint holds `what` of another game. `saved`: its name."""
    if saved != game.name:
        do = "give the run another --name, or continue it with the game that it plays"
        raise UserError(f"self-play of {game.name}", f"the checkpoint holds {what} of {saved}", do)


def check_trees(game: Game, trees: Trees, slots_P: Int64Array) -> None:
    """Raises UserError where a tree of these slots holds a position for which the rules gave an impossible number of
    moves: the random games of `check_rules` do not reach every position."""
    num_edges_GN = trees.nodes_N["num_edges"].reshape(len(trees.slots_G), -1)[slots_P]
    is_used_GN = np.arange(num_edges_GN.shape[1]) < trees.slots_G["num_nodes"][slots_P][:, None]
    is_wrong_GN = is_used_GN & (num_edges_GN < WON)
    if is_wrong_GN.any():
        row, node = np.argwhere(is_wrong_GN)[0].tolist()
        state_W = trees.states_NW[int(slots_P[row]) * num_edges_GN.shape[1] + node]
        state = " ".join(f"{word:#x}" for word in state_W.tolist())
        found = f"legal_moves returned {impossible_count(int(num_edges_GN[row, node]))} for the state {state}"
        do = f"return 1 to {game.max_moves} (max_moves), or LOST, DRAWN or WON"
        raise UserError(f"self-play of {game.name}", found, do)
