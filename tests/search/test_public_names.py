"""`ranks.search`: its public names, its example, and that importing it is cheap."""

from __future__ import annotations

import doctest
import subprocess
import sys

import pytest

import ranks.search


def test_the_example_runs() -> None:
    results = doctest.testmod(ranks.search, raise_on_error=False)
    assert results.failed == 0
    assert results.attempted >= 5


def test_every_public_name_is_imported() -> None:
    for name in dir(ranks.search):
        assert getattr(ranks.search, name) is not None
    with pytest.raises(AttributeError, match="NoSuchName"):
        _ = ranks.search.NoSuchName


def test_importing_the_package_loads_neither_numba_nor_numpy() -> None:
    probe = "import sys, ranks.search; print([name for name in ('numba', 'numpy', 'torch') if name in sys.modules])"
    ended = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)
    assert ended.stdout == "[]\n"
