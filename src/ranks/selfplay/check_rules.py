"""Checks that a game can be learned by self-play, and that its rules and its symmetry keep to their contract.

Kernels do not check bounds, so rules that write too far would destroy memory.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ranks.errors import UserError
from ranks.search.evaluation import Int64Array, Leaves, Moves, Words
from ranks.search.game import DRAWN, LOST, WON, Game
from ranks.search.trees import Trees
from ranks.selfplay.net.encoding import Positions, Symmetry
from ranks.selfplay.random import MOVE, uniform

GAMES = 16
"""Random games that are played."""
GUARD = 512
"""Room behind the legal moves, so that rules that write too many are noticed."""


def check_rules(game: Game, max_plies: int) -> Leaves:
    """Play some random games and check each answer of the rules. Returns the positions that were seen.

    Raises UserError for chance, hidden information, more than two players, and for rules that return
    an impossible number of moves, a move twice, or change the position that they start from.
    """
    what = f"self-play of {game.name}"
    if game.num_players != 2 or game.has_chance or game.has_hidden_information:
        found = f"it has {game.num_players} players" if game.num_players != 2 else "it has chance or hidden information"
        raise UserError(what, found, "only games of two players without chance and hidden information can be learned")
    seen = [leaf for number in range(GAMES) for leaf in _random_game(game, what, number, min(max_plies, 200))]
    if not seen:
        raise UserError(what, "the game is over in its first position", "return its legal moves")
    states, moves, num_moves = zip(*seen, strict=True)
    return Leaves(np.stack(states), np.stack(moves), np.array(num_moves, np.int32))


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
    is_wrong_GN = is_used_GN & ((num_edges_GN < WON) | (num_edges_GN == 0) | (num_edges_GN > game.max_moves))
    if is_wrong_GN.any():
        row, node = np.argwhere(is_wrong_GN)[0].tolist()
        state_W = trees.states_NW[int(slots_P[row]) * num_edges_GN.shape[1] + node]
        state = " ".join(f"{word:#x}" for word in state_W.tolist())
        found = f"legal_moves returned {num_edges_GN[row, node]} for the state {state}"
        do = f"return 1 to {game.max_moves} (max_moves), or LOST, DRAWN or WON"
        raise UserError(f"self-play of {game.name}", found, do)


def check_symmetry(game: Game, symmetry: Symmetry) -> None:
    """Play some random games, and compare what the rules say of each position and of its mirror image.

    Raises UserError where a move and its image lead to positions that are no images of each other, or where the image
    of the image is another position.
    """
    seen = check_rules(game, 200)
    positions = Positions.of(seen)
    images = symmetry(positions)
    again = symmetry(images)
    what = f"the symmetry of {game.name}"
    do = "return the mirror image of each position, and of each move in its column"
    is_move_BM = positions.is_move()
    if not (again.states_BW == positions.states_BW).all() or (again.moves_BM != positions.moves_BM)[is_move_BM].any():
        raise UserError(what, "the image of an image is another position", do)
    states, mirrored = seen.states_BW, np.ascontiguousarray(images.states_BW.numpy()).view(np.uint64)
    after, after_mirrored = np.empty_like(states), np.empty_like(mirrored)
    moves_BM = images.moves_BM.numpy().astype(np.uint16)
    last_B = seen.num_moves_B - 1
    for row, last in enumerate(last_B.tolist()):
        game.play(states, row, after, row, seen.moves_BM[row, last])
        game.play(mirrored, row, after_mirrored, row, moves_BM[row, last])
    expected = symmetry(Positions.of(Leaves(after, seen.moves_BM, seen.num_moves_B))).states_BW.numpy().view(np.uint64)
    wrong_B = (after_mirrored != expected).any(1)
    if wrong_B.any():
        row = int(wrong_B.argmax())
        move, image = seen.moves_BM[row, last_B[row]], moves_BM[row, last_B[row]]
        found = f"move {move} and its image {image} lead to positions that are no images of each other"
        raise UserError(what, found, do)


def _random_game(game: Game, what: str, number: int, max_plies: int) -> Iterator[tuple[Words, Moves, int]]:
    """Yields the state, the legal moves and their number of each position."""
    words = len(game.initial)
    states = np.zeros((3, words), np.uint64)
    states[0] = game.initial
    moves = np.zeros(game.max_moves + GUARD, np.uint16)
    keys = np.zeros(max_plies + 1, np.uint64)
    for ply in range(max_plies):
        count = int(game.legal_moves(states, 0, keys, max(0, ply - game.history), ply, moves, 0))
        if count in (LOST, DRAWN, WON):
            return
        where = f"in random game {number} at ply {ply}"
        if not 0 < count <= game.max_moves:
            found = f"{where} legal_moves returned {count}"
            raise UserError(what, found, f"return 1 to {game.max_moves} (max_moves), or LOST, DRAWN or WON")
        legal = moves[:count]
        if len(np.unique(legal)) != count:
            raise UserError(what, f"{where} legal_moves wrote a move twice: {legal.tolist()}", "write each move once")
        yield states[0].copy(), moves[: game.max_moves].copy(), count
        random = uniform(0, np.array([number]), np.array([ply]), MOVE)[0]
        before = states[0].copy()
        keys[ply] = before[game.key_word]
        game.play(states, 0, states, 1, legal[int(random * count)])
        if (states[0] != before).any() or states[2].any():
            raise UserError(what, f"{where} play changed another state than its target", "write to to_states[to_row]")
        states[0] = states[1]
