"""Compares a symmetry with the rules."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
from torch import Tensor

from ranks.errors import UserError
from ranks.search.evaluation import Leaves, Words
from ranks.search.game import Game
from ranks.selfplay.checks.rules import check_rules, legal_moves_at
from ranks.selfplay.net.encoding import Positions, Symmetry


def check_symmetry(game: Game, symmetry: Symmetry) -> None:
    """Play some random games, and compare where each legal move leads in a position and in its mirror image.

    Raises UserError where an image has another shape or type, where a move and its image lead to positions that are no
    images of each other, where one of two images has other legal moves or has ended otherwise, or where the image of
    the image is another position.
    """
    seen = check_rules(game, 200)
    positions = Positions.of(seen)
    what = f"the symmetry of {game.name}"
    images = _image(symmetry, positions, what)
    again = _image(symmetry, images, what)
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
        for index in range(len(rows_B)):
            ends = [_answer(game, states_BW[index]) for states_BW in (after, after_image)]
            if ends[0] != ends[1] and int in map(type, ends):
                found = "of a position and its image only one is the end of the game, or they end otherwise"
                raise UserError(what, found, do)
    for row, count in enumerate(seen.num_moves_B.tolist()):
        legal, of_image = (_answer(game, states_BW[row]) for states_BW in states)
        if legal != {*seen.moves_BM[row, :count].tolist()}:
            continue  # other moves are legal with the keys of the game
        if of_image != {*images_BM[row, :count].tolist()}:
            found = f"a position with {count} legal moves has an image with others, or one in which the game is over"
            raise UserError(what, found, do)


def _image(symmetry: Symmetry, positions: Positions, what: str) -> Positions:
    """The mirror image. Raises UserError where it has not the shapes and types of the positions."""
    image: Any = symmetry(positions)
    for field in fields(Positions):
        tensor: Tensor = getattr(positions, field.name)
        found = getattr(image, field.name, None)
        if not isinstance(found, Tensor) or found.shape != tensor.shape or found.dtype != tensor.dtype:
            kind = f"{found.dtype} {list(found.shape)}" if isinstance(found, Tensor) else type(found).__name__
            do = f"return Positions with {field.name} as {tensor.dtype} {list(tensor.shape)}"
            raise UserError(what, f"{field.name} of its image is {kind}", do)
    return image


def _answer(game: Game, state_W: Words) -> int | set[int]:
    """The legal moves of a position without earlier ones, or how the game has ended."""
    count, legal, _ = legal_moves_at(game, state_W, state_W[:0], 0)
    return {*legal[:count].tolist()} if count > 0 else count
