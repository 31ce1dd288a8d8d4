"""Opens the alpha-beta engine with a net or with its tables."""

from __future__ import annotations

from ranks.chess.engine.evaluator import Evaluator
from ranks.chess.engine.nnue.inference import net_arrays
from ranks.chess.engine.nnue.weights import NnueWeights
from ranks.chess.engine.player import EnginePlayer, EngineSettings
from ranks.chess.engine.tables import default_values


def open_engine(
    name: str, weights: NnueWeights | None, nodes: int | None = None, depth: int | None = None
) -> EnginePlayer:
    """The engine with a net, or with its tables where `weights` is None. With `nodes` or `depth` it has one thread, and
    these limits hold for every move."""
    evaluator = Evaluator.of_tables(default_values()) if weights is None else Evaluator.of_net(net_arrays(weights))
    threads = 1 if nodes or depth else None
    return EnginePlayer(name, evaluator, EngineSettings(nodes=nodes, depth=depth, threads=threads))
