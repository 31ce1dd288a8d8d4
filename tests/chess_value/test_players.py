"""The limits of nets as chess players."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from ranks.chess.players import tree_search
from ranks.errors import UserError
from ranks.workloads.chess_value.config import MOST_SIMULATIONS, ValueNetConfig
from ranks.workloads.chess_value.net.building import build_net
from ranks.workloads.chess_value.players import words


def test_a_cnn_has_no_more_simulations_than_any_tree_search(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tree's memory grows with them: 10^12 would be tens of GB."""
    assert MOST_SIMULATIONS == tree_search.MOST_SIMULATIONS
    nets = {"cnn": ValueNetConfig("cnn", channels=(4, 4, 4), hidden=(4, 4)), "nnue": ValueNetConfig(width=16)}
    monkeypatch.setattr(words, "from_run", lambda name, asked: SimpleNamespace(model=build_net(nets[name])))
    with pytest.raises(UserError, match="at most 100,000 simulations"):
        words.run_player("run:cnn@100001", "cnn@100001", {})
    for word in ("cnn@100000", "nnue@100001"):
        words.run_player(f"run:{word}", word, {}).close()
