"""The nets: quantised against float, inputs, losses, the origin's files."""

from __future__ import annotations

import math
import pickle
from pathlib import Path

import numpy as np
import pytest
import safetensors.torch
import torch
from torch import Tensor

from ranks.chess.board import Board
from ranks.chess.engine.nnue.features import output_bucket
from ranks.chess.engine.nnue.weights import ENGINE_CP_PER_LOGIT, FEATURE_SCALE, OUTPUT_SCALE, NnueWeights
from ranks.chess.match.openings import seeded_openings
from ranks.cli.main import main
from ranks.errors import UserError
from ranks.workloads.chess_value.batches import batch_of
from ranks.workloads.chess_value.config import ValueNetConfig
from ranks.workloads.chess_value.labels.label import NO_RESULT, NO_SCORE, Labelled
from ranks.workloads.chess_value.net.building import build_net, example_inputs
from ranks.workloads.chess_value.net.cnn import CnnNet
from ranks.workloads.chess_value.net.inputs import Kind, inputs_of
from ranks.workloads.chess_value.net.losses import ValueBatch, target, value_loss
from ranks.workloads.chess_value.net.nnue import NnueNet
from ranks.workloads.chess_value.net.origin_weights import read_origin
from ranks.workloads.chess_value.net.quantise import quantise

CPU = torch.device("cpu")
BLACK_IS_A_QUEEN_UP = "3qk3/pppp4/8/8/8/8/PPPP4/4K3 b q - 0 1"
SAME_FOR_WHITE = "4k3/pppp4/8/8/8/8/PPPP4/3QK3 w - - 0 1"


def boards_of_openings(count: int) -> np.ndarray:
    """uint64[N, 13]: openings and the positions after each of their moves."""
    rows = [opening.board().rows for _, opening in zip(range(count), seeded_openings(5), strict=False)]
    return np.concatenate(rows)


def net_of(kind: Kind) -> torch.nn.Module:
    torch.manual_seed(1)
    sizes = dict(width=16, channels=(4, 4, 4), hidden=(8, 8), blocks=1, block_channels=8)
    net = build_net(ValueNetConfig(kind=kind, **sizes))  # pyright: ignore[reportArgumentType]
    if isinstance(net, NnueNet):
        with torch.no_grad():
            net.own_FH.normal_(0, 0.05)
            net.output_bias_K.normal_()
            net.output_weights_KO.mul_(4)  # beyond what int8 holds
    return net.eval()


def engine_cp(weights: NnueWeights, inputs: tuple[Tensor, ...]) -> np.ndarray:
    """The formulas of weights.py in NumPy, from the active features."""
    features_B2A, bucket_B = (tensor.numpy() for tensor in inputs)
    rows_FH = np.concatenate([weights.feature_weights_FH, np.zeros_like(weights.feature_weights_FH[:1])]).astype(int)
    sums_B2H = rows_FH[features_B2A].sum(2) + weights.feature_bias_H
    assert np.abs(sums_B2H).max() < 2**15
    inputs_BI = sums_B2H.clip(0, FEATURE_SCALE).reshape(len(bucket_B), -1)
    hidden_BO = (weights.hidden_weights_BOI[bucket_B].astype(int) * inputs_BI[:, None]).sum(2)
    hidden_BO = ((hidden_BO + weights.hidden_bias_BO[bucket_B]) >> 6).clip(0, FEATURE_SCALE)
    total_B = (hidden_BO * weights.output_weights_BO[bucket_B]).sum(1) + weights.output_bias_B[bucket_B]
    return total_B * ENGINE_CP_PER_LOGIT / (FEATURE_SCALE * OUTPUT_SCALE)


def test_the_quantised_net_is_near_the_float_net_also_beyond_the_bounds_of_int8() -> None:
    boards_B13 = boards_of_openings(20)
    net, inputs = net_of("nnue"), inputs_of("nnue", boards_B13, CPU)
    assert isinstance(net, NnueNet)
    logit_B = net(*inputs).detach().numpy()
    assert np.ptp(logit_B) > 1 / 8
    assert np.abs(engine_cp(quantise(net), inputs) / ENGINE_CP_PER_LOGIT - logit_B).max() < 1 / 16


def test_the_clamps_of_training_are_those_of_int8() -> None:
    net, inputs = net_of("nnue"), inputs_of("nnue", boards_of_openings(2), CPU)
    before = net(*inputs)
    assert isinstance(net, NnueNet)
    with torch.no_grad():
        net.output_weights_KO.clamp_(-127 / 128, 127 / 128)
        net.hidden_weights_KOI.clamp_(-127 / 64, 127 / 64)
    assert torch.equal(net(*inputs), before)


@pytest.mark.parametrize("kind", ["nnue", "resnet"])
def test_nets_see_the_board_from_the_side_to_move(kind: Kind) -> None:
    boards_B13 = np.stack([Board(fen).words for fen in (SAME_FOR_WHITE, BLACK_IS_A_QUEEN_UP.replace(" q ", " - "))])
    first, second = net_of(kind)(*inputs_of(kind, boards_B13, CPU)).tolist()
    assert first == pytest.approx(second, abs=1e-6)


def test_the_cnn_has_the_origin_s_planes_and_a_value_for_white() -> None:
    boards_B13 = np.stack([Board().words, Board("4k3/8/8/8/8/8/7P/4K2R b K - 0 1").words])
    planes, castling = inputs_of("cnn", boards_B13, CPU)
    assert planes.shape == (2, 13, 8, 8)
    assert planes[0, 0].sum() == 8
    assert planes[0, 0, 1].all()  # white pawns on the second rank
    assert planes[0, 11, 7, 4] == 1  # black's king on e8
    assert planes[:, 12].mean((1, 2)).tolist() == [1, 0]
    assert castling.tolist() == [[1, 1, 1, 1], [1, 0, 0, 0]]
    net = net_of("cnn")
    flipped = planes.clone()
    flipped[:, 12] = 0
    assert isinstance(net, CnnNet)
    with torch.no_grad():
        net.conv1.weight[:, 12] = 0  # the side to move only turns the sign
    assert torch.allclose(net(planes, castling)[:1], -net(flipped, castling)[:1])


@pytest.mark.parametrize("kind", ["nnue", "cnn", "resnet"])
def test_example_inputs_fit(kind: Kind) -> None:
    net = net_of(kind)
    assert net(*example_inputs(net)).shape == (2,)


def test_the_target_mixes_score_and_result_and_takes_what_is_known() -> None:
    labelled = Labelled(
        boards_N13=boards_of_openings(1)[:4],
        cp_N=np.array([400, NO_SCORE, -400, NO_SCORE], np.int16),
        result_N=np.array([-1, 1, NO_RESULT, NO_RESULT], np.int8),
        source_N=np.zeros(4, np.int8),
    )
    target_B, weight_B = target(batch_of(labelled, "cnn"), mix=0.25)
    win = 1 / (1 + math.exp(-1))
    assert target_B[:3].tolist() == pytest.approx([0.75 * win, 1.0, 1 - win])
    assert weight_B.tolist() == [1, 1, 1, 0]


def test_the_loss_is_a_sum_over_the_positions() -> None:
    class Even(torch.nn.Module):
        def forward(self, planes_BPHW: Tensor) -> Tensor:
            return torch.zeros(len(planes_BPHW))

    yes_B, boards_B13 = torch.tensor([True, True]), torch.zeros(2, 13, dtype=torch.int64)
    batch = ValueBatch((boards_B13,), torch.tensor([0.0, 1e9]), yes_B, torch.zeros(2), ~yes_B)
    loss = value_loss(Even(), batch, kind="resnet", mix=0.5)
    assert (float(loss.sum), loss.count) == (0.25, 2)


# The origin's files ---------------------------------------------------------------------------------------------------


def test_the_origin_s_files_are_read_with_and_without_module(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    net = net_of("cnn")
    prefixed = {f"module.{name}": tensor.clone() for name, tensor in net.state_dict().items()}
    torch.save({"model_state_dict": prefixed}, tmp_path / "model.pt")
    safetensors.torch.save_file(dict(net.state_dict()), tmp_path / "model.safetensors")
    inputs = inputs_of("cnn", boards_of_openings(1), CPU)
    for name in ("model.pt", "model.safetensors"):
        found = read_origin(tmp_path / name, 0.25, "a test").eval()
        assert torch.equal(found(*inputs), net(*inputs))
    assert main(["chess-value", "import", str(tmp_path / "model.pt"), "--out", str(tmp_path / "out")]) == 0
    assert "--net.channels 4,4,4 --net.hidden 8,8" in capsys.readouterr().out
    assert (tmp_path / "out" / "model.py").exists()


class Evil:
    def __reduce__(self) -> tuple[object, ...]:
        return (Path.touch, (Path("was-unpickled"),))


def test_other_files_are_refused_and_never_unpickled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("evil.pt").write_bytes(pickle.dumps(Evil()))
    torch.save({"weights": Evil()}, "evil2.pt")
    torch.save({"conv1.weight": torch.zeros(1)}, "other.pt")
    Path("text.pt").write_text("no weights")
    Path("cut.safetensors").write_bytes(b"\x10")
    for name in ("evil.pt", "evil2.pt", "other.pt", "text.pt", "cut.safetensors", "missing.pt"):
        with pytest.raises(UserError):
            read_origin(Path(name), 0.25, "a test")
    assert not Path("was-unpickled").exists()


def test_output_buckets_reach_the_net() -> None:
    boards_B13 = np.stack([Board().words, Board(SAME_FOR_WHITE).words])
    assert inputs_of("nnue", boards_B13, CPU)[1].tolist() == output_bucket(boards_B13).tolist() == [7, 2]
