"""A net as a chess player: nnue in the alpha-beta engine, the others in the tree search."""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Callable
from functools import partial

import numpy as np
import safetensors.torch
import torch
from torch import nn

from ranks.chess.engine.nnue.weights import NnueWeights
from ranks.chess.players.player import Player
from ranks.chess.players.tree_search import SearchPlayer
from ranks.search.config import SearchConfig
from ranks.search.evaluation import Evaluation, Leaves, uniform_evaluator
from ranks.workloads.chess_value.net.cnn import CnnNet
from ranks.workloads.chess_value.net.inputs import Kind, inputs_of
from ranks.workloads.chess_value.net.nnue import NnueNet
from ranks.workloads.chess_value.net.quantise import quantise
from ranks.workloads.chess_value.players.engine import open_engine

OpenPlayer = Callable[[], Player]


class ValueEvaluator:
    """A value net as the evaluator of a tree search, with equal priors for all legal moves."""

    def __init__(self, model: nn.Module, kind: Kind, device: torch.device) -> None:
        """`model`: in evaluation mode on the device."""
        self._model, self._device = model, device
        self._kind: Kind = kind

    def __call__(self, leaves: Leaves) -> Evaluation:
        rows_L = np.flatnonzero(leaves.num_moves_B)
        value_B = np.zeros(len(leaves.num_moves_B), np.float32)
        if len(rows_L):
            with torch.no_grad():
                logit_L = self._model(*inputs_of(self._kind, leaves.states_BW[rows_L], self._device))
            value_B[rows_L] = (2 * torch.sigmoid(logit_L) - 1).float().cpu().numpy()
        return uniform_evaluator(leaves)._replace(value_B=value_B)

    def weights_sha256(self) -> str:
        """The hash of the weights, with their names and shapes."""
        weights = {name: tensor.cpu().contiguous() for name, tensor in self._model.state_dict().items()}
        return hashlib.sha256(safetensors.torch.save(weights)).hexdigest()


class ValuePlayer(SearchPlayer):
    """Plays the move that the tree search with a value net chooses."""

    def __init__(self, name: str, evaluator: ValueEvaluator, config: SearchConfig) -> None:
        super().__init__(name, evaluator, config)
        self._net = evaluator

    @property
    def weights_sha256(self) -> str:
        """What tells apart two states of a player with the same spec."""
        return self._net.weights_sha256()


def plays_in_processes(model: nn.Module) -> bool:
    """Whether other processes can open its player: that of a cnn or a resnet uses the model itself, on its device."""
    return isinstance(model, NnueNet)


def kind_of(model: nn.Module) -> Kind:
    """Which kind of net a model is."""
    return "nnue" if isinstance(model, NnueNet) else "cnn" if isinstance(model, CnnNet) else "resnet"


def open_net(model: nn.Module, name: str, nodes: int | None, depth: int | None = None) -> OpenPlayer:
    """How a worker opens the player of a net as it is now, with fixed limits. Later changes of the model do not change
    the player.

    For cnn and resnet nodes are simulations, and there is no depth (see `Config`)."""
    if isinstance(model, NnueNet):
        return open_quantised(quantise(model), name, nodes, depth)
    assert nodes is not None
    assert depth is None
    frozen = copy.deepcopy(model).eval()
    device = next(frozen.parameters()).device
    evaluator = ValueEvaluator(frozen, kind_of(frozen), device)
    config = SearchConfig(simulations=nodes, count_reused=True)
    return lambda: ValuePlayer(name, evaluator, config)


def open_quantised(weights: NnueWeights | None, name: str, nodes: int | None, depth: int | None = None) -> OpenPlayer:
    """How a worker opens the engine with a net, or with its tables where `weights` is None, with fixed limits."""
    return partial(open_engine, name, weights, nodes, depth)
