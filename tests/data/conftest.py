"""What every test of loading needs."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from ranks.engine.user_file import PREFIX


@pytest.fixture(autouse=True)
def as_in_a_new_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers import this package from where the rank does, and load no user's file that an earlier test has loaded."""
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2]))
    for name in [name for name in sys.modules if name.startswith(PREFIX)]:
        monkeypatch.delitem(sys.modules, name)
