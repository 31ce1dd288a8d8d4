"""What our side plays with: the nets in torch, their encodings, and slots whose games are in all stages."""

# B positions, C channels or planes, H ranks, V files, P planes of moves, S squares, A = P * S logits, M most moves

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import torch
from nets import MAX_PLIES, weights
from torch import Tensor, nn
from torch.nn import functional as F

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "chess" / "peers"))

from tiny_net_torch import SIDE, move_places, planes

from ranks import World
from ranks.chess.core.rules import CHESS
from ranks.engine.config import RunConfig
from ranks.selfplay import Encoding, Positions, SelfPlay, SelfPlayConfig
from ranks.workloads.chess_spiking.building import build_net
from ranks.workloads.chess_spiking.config import PRESETS, NetConfig
from ranks.workloads.chess_spiking.encoding import encoding_of

PLANES = 19


class PlainNet(nn.Module):
    """`tiny` or `6x64` with the weights of nets.py."""

    def __init__(self, net: str) -> None:
        super().__init__()
        arrays = weights(net, PLANES)
        self.residual = arrays.residual
        self.convs = nn.ParameterList(nn.Parameter(torch.from_numpy(conv)) for conv in arrays.convs)
        self.policy_PC = nn.Parameter(torch.from_numpy(arrays.policy_PC))
        self.value_F = nn.Parameter(torch.from_numpy(arrays.value_F))

    def forward(self, x_BCHV: Tensor) -> tuple[Tensor, Tensor]:
        first, *rest = self.convs
        x_BCHV = F.relu_(F.conv2d(x_BCHV, first, padding=1))
        if self.residual:
            for one, two in zip(rest[::2], rest[1::2], strict=True):
                hidden_BCHV = F.relu_(F.conv2d(x_BCHV, one, padding=1))
                x_BCHV = F.relu_(F.conv2d(hidden_BCHV, two, padding=1).add_(x_BCHV))
        else:
            for conv in rest:
                x_BCHV = F.relu_(F.conv2d(x_BCHV, conv, padding=1))
        logits_BPS = self.policy_PC @ x_BCHV.flatten(2)
        return logits_BPS.flatten(1), torch.tanh(x_BCHV.flatten(1) @ self.value_F)


class ConstantNet(nn.Module):
    """Logits 0 and value 0: what is left is the cost around a net, its planes included."""

    def forward(self, x_BCHV: Tensor) -> tuple[Tensor, Tensor]:
        rows = len(x_BCHV)
        return x_BCHV.new_zeros(rows, 1).expand(rows, 73 * 64), x_BCHV.new_zeros(rows)


def alphazero_encoding() -> Encoding:
    """19 planes of 8 x 8, and AlphaZero's 73 planes of moves, as in benchmarks/chess/core.py."""
    places = torch.from_numpy(move_places()).flatten()

    def indices(positions: Positions) -> Tensor:
        return places[positions.moves_BM + (positions.states_BW[:, SIDE : SIDE + 1] << 16)].clamp_(min=0)

    return Encoding(lambda positions: planes(positions.states_BW), indices)


def net_and_encoding(name: str, seed: int) -> tuple[nn.Module, Encoding]:
    """A net of nets.py; `default` and `origin`: the untrained nets of chess-spiking."""
    torch.manual_seed(1)
    if name in ("default", "origin"):
        cfg = NetConfig() if name == "default" else PRESETS["origin"]().net
        return build_net(cfg), encoding_of(cfg, seed)
    return ConstantNet() if name == "constant" else PlainNet(name), alphazero_encoding()


def joined(folder: Path, name: str, device: str = "cpu") -> World:
    """This rank, with one thread; it writes its run into the folder."""
    return World.join(RunConfig(threads=1, runs_dir=folder, name=name), device=device, workload="benchmark")


def games_in_all_stages(slots: int, world: World) -> dict[str, Any]:
    """The state of self-play after as many random games as there are slots, so that what is measured is the
    middle of a long training and not its first plies. Every rank calls it."""
    cfg = SelfPlayConfig(search="none", max_plies=MAX_PLIES)
    random = SelfPlay(CHESS, alphazero_encoding(), slots, slots, cfg, world)
    random.play(ConstantNet(), 0)
    return random.state_dict()
