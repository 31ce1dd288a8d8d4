"""The workload that hangs on request has the settings of the one that it wraps."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from ranks.cli.flags.settings import initial_config, load_config
from ranks.prove import hangs
from ranks.workloads import stock_trading


def test_it_has_the_presets_of_the_real_workload(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "hanging.py"
    shutil.copy(Path(hangs.__file__).with_name("hanging.py"), path)
    monkeypatch.setenv("RANKS_PROOF_WORKLOAD", "stock-trading")
    module = load_config(str(path))
    assert module is not None
    assert initial_config(str(path), module, "demo") == stock_trading.PRESETS["demo"]()
