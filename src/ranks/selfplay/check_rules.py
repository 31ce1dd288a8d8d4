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
ELSEWHERE = 3
"""Another row, and another place of keys and moves, than 0."""
ONES = np.uint64(2**64 - 1)


def check_rules(game: Game, max_plies: int) -> Leaves:
    """Play some random games and check each answer of the rules. Returns the positions that were seen.

    Raises UserError for chance, hidden information, more than two players, and for rules that return
    an impossible number of moves, a move twice, change the position that they start from, or answer
    otherwise for the same position in another row; for rules that are not compiled, and for a first
    state that is no uint64[W].
    """
    what = f"self-play of {game.name}"
    if game.num_players != 2 or game.has_chance or game.has_hidden_information:
        found = f"it has {game.num_players} players" if game.num_players != 2 else "it has chance or hidden information"
        raise UserError(what, found, "only games of two players without chance and hidden information can be learned")
    for name, rule in (("play", game.play), ("legal_moves", game.legal_moves)):
        if not hasattr(rule, "get_compile_result"):
            do = f"decorate it: @kernel({name.upper()}), with ranks.jit.kernel and ranks.search.game.{name.upper()}"
            raise UserError(what, f"its rule {name} is plain Python", do)
    if game.initial.dtype != np.uint64 or game.initial.ndim != 1:
        found = f"its first state is {game.initial.dtype}{list(game.initial.shape)}"
        raise UserError(what, found, "give a uint64[W], for example np.zeros(2, np.uint64)")
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
    """Play some random games, and compare where each legal move leads in a position and in its mirror image.

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
    states = [seen.states_BW, np.ascontiguousarray(images.states_BW.numpy()).view(np.uint64)]
    images_BM = images.moves_BM.numpy().astype(np.uint16)
    for column in range(int(seen.num_moves_B.max())):
        rows_B = np.flatnonzero(seen.num_moves_B > column)
        after, after_image = np.empty_like(states[0][rows_B]), np.empty_like(states[1][rows_B])
        for index, row in enumerate(rows_B.tolist()):
            game.play(states[0], row, after, index, seen.moves_BM[row, column])
            game.play(states[1], row, after_image, index, images_BM[row, column])
        leaves = Leaves(after, seen.moves_BM[rows_B], seen.num_moves_B[rows_B])
        expected = symmetry(Positions.of(leaves)).states_BW.numpy().view(np.uint64)
        wrong_B = (after_image != expected).any(1)
        if wrong_B.any():
            row = int(rows_B[wrong_B.argmax()])
            move, image = seen.moves_BM[row, column], images_BM[row, column]
            found = f"move {move} and its image {image} lead to positions that are no images of each other"
            raise UserError(what, found, do)


def _random_game(game: Game, what: str, number: int, max_plies: int) -> Iterator[tuple[Words, Moves, int]]:
    """Yields the state, the legal moves and their number of each position."""
    state_W = game.initial.copy()
    keys = np.zeros(max_plies, np.uint64)
    for ply in range(max_plies):
        earlier = keys[max(0, ply - game.history) : ply]
        where = f"in random game {number} at ply {ply}"
        count, legal, state_W = _legal_moves(game, what, where, state_W, earlier)
        if count in (LOST, DRAWN, WON):
            return
        keys[ply] = state_W[game.key_word]
        yield state_W, legal, count
        random = uniform(0, np.array([number]), np.array([ply]), MOVE)[0]
        state_W = _play(game, what, where, state_W, legal[int(random * count)])


def _legal_moves(game: Game, what: str, where: str, state_W: Words, earlier: Words) -> tuple[int, Moves, Words]:
    """The number of legal moves, the moves, and the state as the rules have left it. The rules are asked twice, with
    the state, the keys and the moves at other places, as in the trees."""
    count, legal, after_W = _legal_moves_at(game, state_W, earlier, 0)
    again, legal_again, after_again_W = _legal_moves_at(game, state_W, earlier, ELSEWHERE)
    if count not in (LOST, DRAWN, WON):
        if not 0 < count <= game.max_moves:
            found = f"{where} legal_moves returned {count}"
            raise UserError(what, found, f"return 1 to {game.max_moves} (max_moves), or LOST, DRAWN or WON")
        if len(np.unique(legal[:count])) != count:
            found = f"{where} legal_moves wrote a move twice: {legal[:count].tolist()}"
            raise UserError(what, found, "write each move once")
    same_moves = again == count and (legal_again[: max(count, 0)] == legal[: max(count, 0)]).all()
    if not same_moves or (after_W != after_again_W).any():
        found = f"{where} legal_moves gives other answers for the same state in another row"
        raise UserError(
            what, found, "read states[row] and keys[first:end] alone, and write moves[at], moves[at + 1], ..."
        )
    return count, legal, after_W


def _legal_moves_at(game: Game, state_W: Words, earlier: Words, at: int) -> tuple[int, Moves, Words]:
    """The state is in row `at`, its keys and its moves begin there; everything else is filled with ones."""
    states = np.full((at + 2, len(state_W)), ONES)
    keys = np.full(at + len(earlier) + 1, ONES)
    moves = np.full(at + game.max_moves + GUARD, np.uint16(0xFFFF))
    states[at], keys[at : at + len(earlier)] = state_W, earlier
    count = int(game.legal_moves(states, at, keys, at, at + len(earlier), moves, at))
    return count, moves[at : at + game.max_moves], states[at]


def _play(game: Game, what: str, where: str, state_W: Words, move: int) -> Words:
    """The state after a move. The rules are asked three times: to write it over zeros, over ones, and in place, as the
    trees do."""
    after: list[Words] = []
    for from_row, to_row, fill in ((0, 1, np.uint64(0)), (ELSEWHERE, 1, ONES), (ELSEWHERE, ELSEWHERE, ONES)):
        states = np.full((ELSEWHERE + 2, len(state_W)), fill)
        states[from_row] = state_W
        before = states.copy()
        game.play(states, from_row, states, to_row, move)
        before[to_row] = states[to_row]
        after.append(before[to_row])
        if (states != before).any():
            raise UserError(what, f"{where} play changed another state than its target", "write to to_states[to_row]")
    for other, how in zip(after[1:], ("over a state with other words", "in place of the state itself"), strict=True):
        if (other != after[0]).any():
            found = f"{where} play gives another state when it writes {how}"
            do = "read all words of from_states[from_row] before the first write, and write all of to_states[to_row]"
            raise UserError(what, found, do)
    return after[0]
