"""The help pages: without torch or numba, and complete."""

from __future__ import annotations

import inspect
import json
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from ranks.cli.commands.prove import PROOFS
from ranks.cli.flags.outline import load_outline, outline_function
from ranks.cli.main import COMMAND_GROUPS, COMMANDS, find, first_line, main
from ranks.workloads import WORKLOADS

GROUPS = {name: module for name, (_, module) in COMMAND_GROUPS.items()} | WORKLOADS
INNER = {
    (group, name): place for group, module in GROUPS.items() for name, place in import_module(module).COMMANDS.items()
}
PAGES = [
    ["--help"],
    ["--version"],
    *([name, "--help"] for name in [*COMMANDS, *GROUPS]),
    *([group, name, "--help"] for group, name in INNER),
    *(["prove", proof, "--help"] for proof in PROOFS),
    *(["train", workload, "--help"] for workload in WORKLOADS),
    *(["train", f"./{name}.py", "--help"] for name in ("points", "pole")),
]


def test_no_help_page_imports_a_heavy_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["new", "points"]) == 0
    Path("pole.py").write_text((Path(inspect.getfile(main)).with_name("templates") / "on_policy.py").read_text())
    code = """
import contextlib, io, json, sys
from ranks.cli.main import main
for argv in json.loads(sys.argv[1]):
    page = io.StringIO()
    with contextlib.redirect_stdout(page):
        try:
            code = main(argv)
        except SystemExit as end:
            code = end.code or 0
    assert code == 0, (argv, code)
    assert page.getvalue().startswith(("usage: ranks", "ranks ", "Train a workload")), (argv, page.getvalue())
    for heavy in ("torch", "numba", "numpy", "gymnasium"):
        assert heavy not in sys.modules, f"{argv} imports {heavy}"
"""
    done = subprocess.run([sys.executable, "-c", code, json.dumps(PAGES)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("place", [*INNER.values()])
def test_the_help_page_of_a_command_shows_its_signature(place: str) -> None:
    whole, outline = find(place), outline_function(place)
    assert outline is not None
    assert outline is not whole
    assert inspect.signature(outline, eval_str=True) == inspect.signature(whole, eval_str=True)
    assert outline.__doc__ == whole.__doc__


def test_an_outline_executes_only_what_config_needs(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text(
        "from __future__ import annotations\n"
        "from dataclasses import dataclass\n"
        "import no_such_package\n"
        "from sizes import WIDTH, Net\n"
        "def three():\n    return one() + 2\n"
        "def one():\n    return 1\n"
        "@dataclass(frozen=True)\n"
        "class Config:\n    width: int = WIDTH * three()\n    no_such_package: int = 4\n"
        "class Model(no_such_package.Module):\n    pass\n"
    )
    (tmp_path / "sizes.py").write_text("import no_such_package\nWIDTH = 7\nclass Net: pass\n")
    sys.path.insert(0, str(tmp_path))
    try:
        outline = load_outline(path, "mine", ["Config"])
    finally:
        sys.path.remove(str(tmp_path))
    assert outline is not None
    assert outline.Config().width == 21
    assert not hasattr(outline, "Model")


@pytest.mark.parametrize(
    "text", ["from os import *\nclass Config: pass\n", "Config = 1 / 0\n", "class Config(\n", "other = 1\n"]
)
def test_a_file_without_an_outline_is_left_to_the_import(text: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text(text)
    assert load_outline(path, "mine", ["Config"], required=["Config"]) is None
    assert not [name for name in sys.modules if name.startswith("ranks_outline_mine")]


def test_the_first_page_names_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    page = capsys.readouterr().out
    for name, (summary, place) in COMMANDS.items():
        assert name in page
        assert summary in page
        assert callable(find(place))
    for name, (summary, _) in COMMAND_GROUPS.items():
        assert f"{name:<12} {summary}" in page


@pytest.mark.parametrize("name", GROUPS)
def test_a_group_lists_its_commands_with_a_line_each(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    commands: dict[str, str] = import_module(GROUPS[name]).COMMANDS
    assert main([name]) == 0
    page = capsys.readouterr().out
    assert main([name, "--help"]) == 0
    assert capsys.readouterr().out == page
    for command, place in commands.items():
        assert len(first_line(place)) > 20
        assert f"  {command:<12} {first_line(place)}\n" in page


def test_a_group_without_its_packages_says_what_to_install() -> None:
    code = """
import sys
sys.modules["numba"] = None  # as if it were not installed
from ranks.cli.main import main
sys.exit(main(["chess", "perft", "1"]))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.splitlines() == [
        "asked: ranks chess perft",
        "found: the package numba is not installed",
        "   do: pip install 'ranks[chess]'",
    ]


def test_a_train_page_shows_engine_and_workload_flags(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(["train", "graph-coloring", "--help"])
    assert not end.value.code
    page = capsys.readouterr().out
    for flag in ("--gpus", "--ranks", "--exact, --no-exact", "--shares", "--iterations", "--optim.lr", "--preset"):
        assert flag in page
    assert "--launch." not in page
    assert "--engine." not in page
    assert "--config." not in page
