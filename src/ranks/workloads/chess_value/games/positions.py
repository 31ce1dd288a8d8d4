"""From the games of a cycle to positions that are worth a label.

Legend: P positions of a game.
"""

from __future__ import annotations

import numpy as np
import torch

from ranks.chess.core.children import random_children
from ranks.chess.core.words import KEY_WORD
from ranks.engine.sharding import rng
from ranks.workloads.chess_value.games.cycle_games import CycleGames
from ranks.workloads.chess_value.games.game import boards_of
from ranks.workloads.chess_value.labels.label import NO_RESULT, NO_SCORE, SOURCES
from ranks.workloads.chess_value.positions.filters import SeenKeys, filter_positions
from ranks.workloads.chess_value.positions.sourced import SourcedPositions, for_white, joined

CHUNK, TRIED_FOR_EACH = 1 << 14, 4
"""Positions whose children are in memory at a time, before the filters; and children that are tried for each position
that will be used, since most are not quiet."""
OWN, STOCKFISH = SOURCES.index("own"), SOURCES.index("stockfish")


def positions_of(
    played: CycleGames,
    seed: int,
    cycle: int,
    validation_share: float,
    *,
    children: int,
    most: int,
    quiet: bool,
    mirror: bool,
) -> SourcedPositions:
    """The positions of the games, each once, in the order of games and plies, then their `children`. Every rank finds
    the same.

    `most`: how many positions will be used. Each has fewer children where all would be TRIED_FOR_EACH times as many.
    `quiet`: without those in which a capture or a check decides. `mirror`: also their mirror images. A share of the
    games only validates."""
    key, games = rng.key(seed, "value/validation", cycle), torch.arange(len(played.games))
    validates = (rng.uniform(key, games, 1)[:, 0] < validation_share).tolist()
    parts: list[SourcedPositions] = []
    for number, game in enumerate(played.games):
        boards_P13 = boards_of(game.moves.tolist())
        count = len(boards_P13)
        result_P = np.full(count, NO_RESULT) if game.result == NO_RESULT else game.result * for_white(boards_P13)
        source = OWN if number < played.own else STOCKFISH
        parts.append(
            SourcedPositions(
                boards_P13,
                np.full(count, NO_SCORE, np.int16),
                result_P.astype(np.int8),
                np.full(count, source, np.int8),
                np.full(count, validates[number], np.bool_),
            )
        )
    seen = SeenKeys()
    found = filter_positions(joined(parts), seen, quiet=quiet, mirror=mirror)
    if not children:
        return found
    key = rng.key(seed, "value/children", cycle)
    each = min(children, max(1, TRIED_FOR_EACH * most // max(1, found.num_positions)))
    chunks = [found.take(slice(at, at + CHUNK)) for at in range(0, found.num_positions, CHUNK)]
    after = [filter_positions(children_of(chunk, each, key), seen, quiet=quiet, mirror=mirror) for chunk in chunks]
    return joined([found, *after])


def children_of(found: SourcedPositions, most: int, key: int) -> SourcedPositions:
    """The positions after at most so many different random moves in each position. Scores and results are unknown.

    The random numbers of a position belong to its Zobrist key. A search meets such positions more than those of
    games: most of the moves that it tries are no good ones."""
    item_N = torch.from_numpy(found.boards_N13[:, KEY_WORD].view(np.int64))
    boards_M13, parent_M = random_children(found.boards_N13, rng.uniform(key, item_N, most).numpy())
    after = found.take(parent_M)
    return after._replace(
        boards_N13=boards_M13,
        cp_N=np.full(len(parent_M), NO_SCORE, np.int16),
        result_N=np.full(len(parent_M), NO_RESULT, np.int8),
    )


def evenly(found: SourcedPositions, most: int) -> SourcedPositions:
    """At most so many of the positions, evenly spread over all of them."""
    if found.num_positions <= most:
        return found
    return found.take(np.linspace(0, found.num_positions - 1, most).astype(np.intp))
