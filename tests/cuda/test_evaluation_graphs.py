"""CUDA graphs of evaluations: the same numbers and games as without them."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import pytest
import torch
from torch import Tensor

from ranks.chess.core.rules import CHESS
from ranks.engine.update.evaluate import eval_mode
from ranks.search import CONNECT_FOUR
from ranks.selfplay.checks.rules import check_rules
from ranks.selfplay.net.batch_evaluator import BatchEvaluator, BatchMemory
from ranks.selfplay.net.evaluation_graphs import EvaluationGraphs
from ranks.selfplay.times import PlayTimes
from ranks.workloads.chess_spiking.building import build_net
from ranks.workloads.chess_spiking.config import NetConfig
from ranks.workloads.chess_spiking.encoding import encoding_of
from ranks.workloads.chess_spiking.net.fused import use_fused_kernels
from tests.cuda.gpu import NEEDS_GPU
from tests.selfplay.fixtures import SmallNet, assert_equal, net_of, selfplay, single_rank

pytestmark = NEEDS_GPU
ROWS = 64


class WaitingNet(SmallNet):
    """Reads a number of the device in its forward pass, which no capture allows."""

    def forward(self, planes_B288: Tensor) -> tuple[Tensor, Tensor]:
        assert planes_B288.sum().item() >= 0
        return super().forward(planes_B288)


def filled_memory(device: torch.device, first: int) -> BatchMemory:
    """Positions of random games of chess."""
    seen, memory = check_rules(CHESS, 100), BatchMemory(CHESS, ROWS, device)
    for into, array in zip(memory.leaves, seen, strict=True):
        into[:] = array[np.arange(first, first + ROWS) % len(array)]
    return memory


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
@pytest.mark.parametrize("neuron", ["relu", "lif"])
@pytest.mark.parametrize("exact", [False, True])
def test_a_graph_gives_what_its_kernels_give_and_reads_the_batch_of_now(
    precision: Literal["fp32", "bf16"], neuron: Literal["relu", "lif"], exact: bool
) -> None:
    with single_rank("cuda:0", precision=precision, exact=exact) as world:
        cfg = NetConfig(neuron=neuron, blocks=2, width=32)
        net = build_net(cfg).to(world.device)
        use_fused_kernels(net, world)
        warnings = list[str]()
        graphs = EvaluationGraphs(warnings.append)
        encoding = encoding_of(cfg, world.seed)
        plain = BatchEvaluator(encoding, world.device, PlayTimes())
        captured = BatchEvaluator(encoding, world.device, PlayTimes(), graphs=graphs)
        memory, other, wanted = (filled_memory(world.device, first) for first in (0, ROWS, 0))
        with eval_mode(net, world):
            for batch in range(3):  # the first captures, the later ones replay
                for each in (memory, other):
                    for into, mine, source in zip(
                        wanted.leaves, each.leaves, filled_memory(world.device, 7 * batch).leaves, strict=True
                    ):
                        into[:] = mine[:] = source
                    plain.launch(net, wanted)
                    plain.wait(wanted)
                    captured.launch(net, each)
                    captured.wait(each)
                    np.testing.assert_array_equal(each.evaluation.priors_BM, wanted.evaluation.priors_BM)
                    np.testing.assert_array_equal(each.evaluation.value_B, wanted.evaluation.value_B)
        assert warnings == []


@pytest.mark.parametrize("search", ["none", "gumbel"])
def test_the_games_are_the_same_with_and_without_graphs(search: Literal["none", "gumbel"]) -> None:
    found: list[Any] = []
    for cuda_graph in (True, False):
        with single_rank("cuda:0", exact=True, shards=2) as world:
            source = selfplay(world, CONNECT_FOUR, search=search, cuda_graph=cuda_graph)
            net = net_of(CONNECT_FOUR).to(world.device)
            games = [source.play(net, 0)]
            with torch.no_grad():
                net.weight.mul_(-1)  # the graphs of the second iteration read the new weights
            found.append([*games, source.play(net, 1)])
    for with_graphs, without in zip(*found, strict=True):
        assert_equal(with_graphs, without)


def test_a_net_that_waits_for_the_device_plays_without_graphs_after_one_warning() -> None:
    with single_rank("cuda:0", exact=True, shards=2) as world:
        events = list[dict[str, Any]]()
        world.session.emit = events.append
        source = selfplay(world, CONNECT_FOUR)
        net = WaitingNet(CONNECT_FOUR.max_moves).to(world.device)
        found = [source.play(net, iteration) for iteration in range(2)]
    assert [e["text"] for e in events if e["event"] == "warning"] == [e["text"] for e in events][:1]
    assert "cannot be captured as a CUDA graph" in events[0]["text"]
    assert torch.rand(3, device="cuda:0").isfinite().all(), "the generator of the device works as before"
    with single_rank("cuda:0", exact=True, shards=2) as world:
        source = selfplay(world, CONNECT_FOUR, cuda_graph=False)
        for iteration, games in enumerate(found):
            assert_equal(games, source.play(net_of(CONNECT_FOUR).to(world.device), iteration))
