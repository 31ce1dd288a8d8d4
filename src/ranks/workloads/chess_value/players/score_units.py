"""The scores of chess players in the unit of labels.

| player                                | centipawns of one logit of the win probability |
|---------------------------------------|------------------------------------------------|
| the engine, with a net or with tables | ENGINE_CP_PER_LOGIT: a pawn counts about 100   |
| a net in the tree search              | TREE_CP_PER_LOGIT                              |
| a UCI engine                          | LABEL_CP_PER_LOGIT                             |
"""

from __future__ import annotations

import math

from ranks.chess.core.evaluation import CP_PER_DECADE
from ranks.chess.engine.nnue.weights import ENGINE_CP_PER_LOGIT
from ranks.chess.players.player import Choice, Player
from ranks.chess.players.tree_search import SearchPlayer
from ranks.chess.uci.player import UciPlayer
from ranks.workloads.chess_value.labels.units import LABEL_CP_PER_LOGIT, clipped_cp

TREE_CP_PER_LOGIT = CP_PER_DECADE / math.log(10)


def label_cp(choice: Choice, player: Player) -> int:
    """The score of a move in the unit of labels, clipped; a mate is the largest. 0 where the player gives no score.

    A net that learned from its own scores in a larger unit would say more from cycle to cycle, in a smaller one
    less."""
    if choice.score_cp is None:
        return clipped_cp(None, choice.mate_in)
    return clipped_cp(round(choice.score_cp * LABEL_CP_PER_LOGIT / cp_per_logit(player)), choice.mate_in)


def cp_per_logit(player: Player) -> float:
    """Centipawns of one logit in the scores of a player. Material (minimax, alphabeta) counts as tables do."""
    if isinstance(player, UciPlayer):
        return LABEL_CP_PER_LOGIT
    return TREE_CP_PER_LOGIT if isinstance(player, SearchPlayer) else ENGINE_CP_PER_LOGIT
