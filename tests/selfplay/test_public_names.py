"""`ranks.selfplay`: its public names, and that importing it is cheap."""

from __future__ import annotations

import subprocess
import sys

import pytest

import ranks.selfplay


def test_every_public_name_is_imported() -> None:
    for name in dir(ranks.selfplay):
        assert getattr(ranks.selfplay, name) is not None
    with pytest.raises(AttributeError, match="NoSuchName"):
        _ = ranks.selfplay.NoSuchName


def test_importing_the_settings_loads_neither_torch_nor_numba() -> None:
    probe = (
        "import sys, ranks.selfplay; ranks.selfplay.SelfPlayConfig(); "
        "print([name for name in ('numba', 'numpy', 'torch') if name in sys.modules])"
    )
    ended = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)
    assert ended.stdout == "[]\n"
