"""The public names of ranks.rl and ranks.rl.gymnasium: each exists, and importing the packages costs nothing."""

from __future__ import annotations

import importlib
import subprocess
import sys

import pytest

from ranks.engine.export.standalone import standalone_source
from tests.toys.cartpole import RecurrentPolicy


@pytest.mark.parametrize("package", ["ranks.rl", "ranks.rl.gymnasium"])
def test_every_public_name_exists_and_its_module_names_it(package: str) -> None:
    if package.endswith("gymnasium"):
        pytest.importorskip("gymnasium")
    module = importlib.import_module(package)
    assert set(module.PUBLIC) <= set(dir(module))
    for name, home in module.PUBLIC.items():
        assert getattr(module, name) is getattr(importlib.import_module(home), name)
    with pytest.raises(AttributeError, match="has no attribute 'NoSuchName'"):
        _ = module.NoSuchName


@pytest.mark.parametrize("package", ["ranks.rl", "ranks.rl.config", "ranks.rl.gymnasium"])
def test_importing_a_package_imports_neither_torch_nor_gymnasium(package: str) -> None:
    code = f"import sys, {package}; sys.exit(bool({{'torch', 'gymnasium'}} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_a_policy_that_imports_public_names_can_be_exported() -> None:
    """The exported source contains the distribution, which the policy imports from `ranks.rl`."""
    source = standalone_source(RecurrentPolicy)
    assert "class Categorical" in source
    assert "import ranks" not in source
    assert "from ranks" not in source
