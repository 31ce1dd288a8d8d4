"""Games against random moves: equal on any number of ranks, and a stop does not wait for their end."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from ranks import RunConfig, Stopped, UserError, World
from ranks.search import CONNECT_FOUR, TICTACTOE
from ranks.selfplay import Encoding, Positions, SelfPlayConfig, score_against_random
from tests.engine.group import run_ranks
from tests.selfplay.fixtures import ENCODING, SmallNet, net_of, planes, single_rank


class NoisyNet(SmallNet):
    """What it says of a position depends on the size of the batch, as roundings do, only much more."""

    def forward(self, planes_B288: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        logits_BA, value_B = super().forward(planes_B288)
        return logits_BA * (1 + len(planes_B288) % 3), value_B


def score(world: World) -> dict[str, float]:
    return score_against_random(NoisyNet(7), CONNECT_FOUR, ENCODING, 50, SelfPlayConfig(simulations=8), world)


def test_with_exact_the_score_has_the_same_bits_on_any_number_of_ranks(tmp_path: Path) -> None:
    config = RunConfig(exact=True, shards=12)
    found = [one for size in (1, 3, 4) for one in run_ranks(size, score, config=config, tmp_path=tmp_path)]
    assert len(found) == 8
    assert all(other == found[0] for other in found)


def evaluations_until_stopped(world: World) -> int:
    """Evaluations of this rank, where a signal reaches the last rank in its second one."""
    made = 0

    def counted(positions: Positions) -> torch.Tensor:
        nonlocal made
        made += 1
        if made == 2 and world.rank == world.size - 1:
            world.stop.received = 15
        return planes(positions)

    world.session.long_iterations = True
    with pytest.raises(Stopped):
        score_against_random(
            net_of(CONNECT_FOUR), CONNECT_FOUR, Encoding(counted), 3, SelfPlayConfig(simulations=8), world
        )
    return made


@pytest.mark.parametrize("size", [1, 2])
def test_a_stop_ends_the_games_on_all_ranks(size: int, tmp_path: Path) -> None:
    """The first poll is after the first round, where each rank has played at most one move."""
    for made in run_ranks(size, evaluations_until_stopped, config=RunConfig(), tmp_path=tmp_path):
        assert made <= 9


def test_an_evaluation_without_games_is_an_error() -> None:
    with single_rank() as world, pytest.raises(UserError, match="give 1 or more"):
        score_against_random(net_of(TICTACTOE), TICTACTOE, ENCODING, 0, SelfPlayConfig(), world)
