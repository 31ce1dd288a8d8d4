"""Mirrored positions: a batch holds positions or their mirror images, and a wrong symmetry is refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from ranks import Run, UserError
from ranks.search import CONNECT_FOUR, TICTACTOE
from ranks.selfplay import Positions, ReplayConfig, ReplayWindow
from ranks.selfplay.checks.symmetry import check_symmetry
from tests.selfplay.fixtures import net_of, selfplay, single_rank


def mirror(positions: Positions) -> Positions:
    """Connect Four with left and right exchanged."""
    images = torch.zeros_like(positions.states_BW)
    for column in range(7):
        images |= (positions.states_BW >> 7 * column & 127) << 7 * (6 - column)
    return replace(positions, states_BW=images, moves_BM=6 - positions.moves_BM)


@pytest.mark.parametrize("on_policy", [False, True])
def test_half_of_the_positions_of_a_batch_are_mirrored(on_policy: bool, tmp_path: Path) -> None:
    cfg = ReplayConfig(on_policy=on_policy, reuse=2.0)
    with single_rank(runs_dir=tmp_path, name="r", exact=True, shards=4) as world:
        source = selfplay(world, CONNECT_FOUR, games=40)
        window = ReplayWindow(CONNECT_FOUR, cfg, world, mirror)
        plain = ReplayWindow(CONNECT_FOUR, cfg, world)
        with Run.open(cfg, world, keep=dict(source=source, window=window)) as run:
            for iteration in run.iterations(1, long=True):
                window.add(source.play(net_of(CONNECT_FOUR), iteration))
                ids = torch.cat([batch.shards.ids for batch in window.batches(64)])
        plain.parts, size = window.parts, len(window)
        is_image_B = torch.ge(ids, size)
        assert 0.45 < is_image_B.double().mean() < 0.55
        if not on_policy:  # the same positions as without a symmetry
            without = torch.cat([plain.batch(64, number).shards.ids for number in range(window.updates)])
            assert torch.equal(torch.remainder(ids, size), without)
        found, expected = window.gather(ids), plain.gather(torch.remainder(ids, size))
        images = mirror(expected.positions)
        for name in ("states_BW", "moves_BM"):
            ours, one, other = (getattr(p, name) for p in (found.positions, expected.positions, images))
            assert torch.equal(ours, torch.where(is_image_B[:, None], other, one))
            assert not torch.equal(one, other)
        for name in ("policy_BM", "outcome_B", "value_B"):
            assert torch.equal(getattr(found, name), getattr(expected, name))
        again = ReplayWindow(CONNECT_FOUR, replace(cfg, mirror=False), world, mirror)
        assert again.symmetry is None


@pytest.mark.parametrize(
    ("wrong", "found"),
    [
        (lambda p: replace(mirror(p), moves_BM=p.moves_BM), "move 0 and its image 0"),
        (lambda p: replace(p, moves_BM=6 - p.moves_BM), "move 0 and its image 6"),
        (
            lambda p: replace(mirror(p), moves_BM=torch.where(p.moves_BM % 6 == 0, 6 - p.moves_BM, p.moves_BM)),
            "move 1 and its",
        ),
        (lambda p: replace(p, states_BW=p.states_BW + 1), "the image of an image is another position"),
        (lambda p: replace(mirror(p), moves_BM=mirror(p).moves_BM.float()), "moves_BM of its image is torch.float32"),
        (lambda p: replace(mirror(p), states_BW=p.states_BW[:1]), "states_BW of its image is torch.int64 [1, 2]"),
        (lambda p: None, "states_BW of its image is NoneType"),
    ],
)
def test_a_function_that_is_no_symmetry_of_the_rules_is_refused(
    wrong: Callable[[Positions], Positions], found: str
) -> None:
    check_symmetry(CONNECT_FOUR, mirror)
    with pytest.raises(UserError, match=r"asked: the symmetry of Connect Four\nfound: .*\n   do: ") as error:
        check_symmetry(CONNECT_FOUR, wrong)
    assert found in error.value.found


def exchanged(positions: Positions) -> Positions:
    """Tic-tac-toe with the squares 0 and 1 exchanged: moves lead to images, but lines are none."""
    states, moves = positions.states_BW, positions.moves_BM
    images = (states & ~3) | (states & 1) << 1 | (states & 2) >> 1
    return replace(positions, states_BW=images, moves_BM=torch.where(moves < 2, 1 - moves, moves))


def test_images_end_as_their_positions_do() -> None:
    with pytest.raises(UserError, match="of a position and its image only one is the end of the game"):
        check_symmetry(TICTACTOE, exchanged)
