"""No file uses a name or a word that the project retired: `python tools/check_words.py` lists them."""

from __future__ import annotations

import runpy
from pathlib import Path

NAME = "deals"
WORD = "".join(("an", "ew"))  # in two parts, so that the tool does not find it in this file
TOOL = Path(__file__).parent.parent / "tools" / "check_words.py"


def test_no_retired_name_is_used() -> None:
    assert [str(use) for use in runpy.run_path(str(TOOL))["find_all"]()] == []


def test_a_retired_name_is_found(tmp_path: Path) -> None:
    """The counter-test: a package with a retired name, a retired word, and a class that two modules define."""
    tool = runpy.run_path(str(TOOL))
    folder = tmp_path / "src" / "ranks" / "engine"
    folder.mkdir(parents=True)
    for name in ("first", "second"):
        (folder / f"{name}.py").write_text(f"class Row:\n    num_{NAME} = 1  # {WORD}\n")
    find = tool["find_all"]
    find.__globals__["ROOT"] = tmp_path
    found = [str(use) for use in find()]
    for name in ("first", "second"):
        path = f"src/ranks/engine/{name}.py"
        assert {f"{path}:2: {NAME}", f"{path}:2: {WORD}", f"{path}:1: class Row"} <= set(found)
