from __future__ import annotations

import numpy as np
import pytest
import torch

from ranks.chess.board import Board, move_to_uci
from ranks.chess.players.player import Limits
from ranks.search.evaluation import Leaves
from ranks.selfplay import expected_outcome, policy_and_value
from ranks.workloads.chess_spiking.building import Net, build_net
from ranks.workloads.chess_spiking.config import PRESETS, NetConfig
from ranks.workloads.chess_spiking.encoding import encoding_of
from ranks.workloads.chess_spiking.evaluator import NetEvaluator, positions_of
from ranks.workloads.chess_spiking.player import net_player
from tests.chess_spiking.reference import leaves, positions

TINY = NetConfig(blocks=1, width=8, value_channels=8, value_hidden=8)
MATE_IN_ONE = "6k1/5ppp/8/8/8/8/5PPP/3R2K1 w - - 0 1"


def made(net: NetConfig = TINY) -> Net:
    torch.manual_seed(0)
    return build_net(net)


def test_an_evaluator_gives_probabilities_of_legal_moves() -> None:
    batch, model = leaves(positions()[:12]), made()
    found = NetEvaluator(model, TINY)(batch)
    assert np.allclose(found.priors_BM.sum(1), 1, atol=1e-6)
    assert np.abs(found.value_B).max() < 1
    with torch.no_grad():
        p = positions_of(batch, torch.device("cpu"))
        logits_BM, wdl_B3 = policy_and_value(model, encoding_of(TINY, 0), p)
    assert np.allclose(found.value_B, expected_outcome(wdl_B3).numpy(), atol=1e-6)
    for row, count in enumerate(batch.num_moves_B):
        assert (found.priors_BM[row, count:] == 0).all()
        assert np.allclose(np.log(found.priors_BM[row, :count]), logits_BM[row, :count].log_softmax(0), atol=1e-5)


def test_rows_without_a_leaf_do_not_disturb_the_others() -> None:
    batch = leaves(positions()[:4])
    evaluator = NetEvaluator(made(), TINY)
    whole = evaluator(batch)
    empty = batch.num_moves_B.copy()
    empty[1] = 0
    partly = evaluator(Leaves(batch.states_BW, batch.moves_BM, empty))
    kept, columns = [0, 2, 3], partly.priors_BM.shape[1]
    assert np.allclose(partly.priors_BM[kept], whole.priors_BM[kept][:, :columns])
    assert np.array_equal(partly.value_B[kept], whole.value_B[kept])


@pytest.mark.parametrize("simulations", [0, 1, 12])
def test_a_player_moves_legally_and_always_the_same(simulations: int) -> None:
    board = Board()
    games: list[list[int]] = []
    for _ in range(2):
        player = net_player("net", made(), TINY, simulations)
        player.new_game(1)
        again = board.copy()
        for _ in range(4):
            again.push(player.choose(again, Limits()).move)
        games.append(again.moves)
        player.close()
    assert games[0] == games[1]


def test_search_finds_a_mate_that_an_untrained_policy_does_not_know() -> None:
    player = net_player("net", made(), TINY, 32)
    player.new_game(0)
    choice = player.choose(Board(MATE_IN_ONE), Limits())
    assert move_to_uci(choice.move) == "d1d8"
    assert choice.nodes == 32


def test_the_policy_player_plays_the_likeliest_move() -> None:
    """Trained by hand: the bias of one plane, moves of two squares to the north."""
    model = made()
    assert isinstance(model.policy_out.bias, torch.Tensor)
    with torch.no_grad():
        model.policy_out.weight.zero_()
        model.policy_out.bias.zero_()
        model.policy_out.bias[1] = 10
    player = net_player("net", model, TINY, 0)
    board = Board()
    for expected in ("a2a4", "a7a5"):
        choice = player.choose(board, Limits())
        uci = move_to_uci(choice.move)
        assert (uci[1], uci[3]) == (expected[1], expected[3])
        board.push(choice.move)


def test_the_origin_s_net_plays() -> None:
    net = PRESETS["origin"]().net
    player = net_player("origin", made(net), net, 0)
    board = Board()
    assert player.choose(board, Limits()).move in board.legal_moves()
