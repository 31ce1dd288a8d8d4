"""The limits of nets as chess players."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Literal

import pytest

from ranks.chess.players import tree_search
from ranks.errors import UserError
from ranks.workloads.chess_value.config import MOST_SIMULATIONS, Config, LabelConfig, ValueNetConfig
from ranks.workloads.chess_value.net.building import build_net
from ranks.workloads.chess_value.players import specs
from ranks.workloads.chess_value.training import present_player


def test_a_cnn_has_no_more_simulations_than_any_tree_search(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tree's memory grows with them: 10^12 would be tens of GB."""
    assert MOST_SIMULATIONS == tree_search.MOST_SIMULATIONS
    nets = {"cnn": ValueNetConfig("cnn", channels=(4, 4, 4), hidden=(4, 4)), "nnue": ValueNetConfig(width=16)}
    monkeypatch.setattr(specs, "from_run", lambda name, asked: SimpleNamespace(model=build_net(nets[name])))
    with pytest.raises(UserError, match="at most 100,000 simulations"):
        specs.run_player("run:cnn@100001", "cnn@100001", {})
    for word in ("cnn@100000", "nnue@100001"):
        specs.run_player(f"run:{word}", word, {}).close()


@pytest.mark.parametrize("labels", ["stockfish", "outcome"])
def test_a_cnn_whose_labels_come_from_others_has_any_limit_of_labels(labels: Literal["stockfish", "outcome"]) -> None:
    cfg = Config(net=ValueNetConfig("cnn", channels=(4, 4, 4), hidden=(4, 4)), labels=labels)
    cfg = replace(cfg, label=LabelConfig(limit="depth:4"))
    present_player(cfg, build_net(cfg.net), is_trained=True, labels=True)().close()
