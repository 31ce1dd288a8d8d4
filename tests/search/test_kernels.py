"""Compilation of kernels: cache hits at the second start, edits are noticed, no kernel calls itself."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

import ranks
from ranks import jit

SOURCE = Path(ranks.__file__).parent
SEARCH, COLOURING, ENGINE = jit.JITTED
PROBE = """
import numpy as np
from ranks import jit
from {module} import {function} as rule
state = np.array([[3, 12]], np.uint64)
moves = np.zeros(9, np.uint16)
print(sum(rule.stats.cache_hits.values()), sum(rule.stats.cache_misses.values()), jit.cache_folder(jit.JITTED[0]).name,
      rule(state, 0, np.zeros(1, np.uint64), 0, 0, moves, 0), moves.tolist())
"""


def start(package: Path, cache: Path, function: str = "legal_moves") -> tuple[int, int, str, str, str]:
    """Start a process on a copy of the package; cache hits, misses, folder, what `legal_moves` returns, and stderr."""
    environment = {**os.environ, "PYTHONPATH": str(package), "NUMBA_CACHE_DIR": str(cache)}
    probe = PROBE.format(module="ranks.search.games.tictactoe", function=function)
    ended = subprocess.run([sys.executable, "-c", probe], env=environment, capture_output=True, text=True, check=True)
    hits, misses, folder, found = ended.stdout.strip().split(" ", 3)
    return int(hits), int(misses), folder, found, ended.stderr


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A copy of what the search needs of the package."""
    (tmp_path / "ranks").mkdir()
    for name in ("__init__.py", "errors.py", "cache_home.py", *jit.SHARED):
        shutil.copy(SOURCE / name, tmp_path / "ranks" / name)
    shutil.copytree(SOURCE / "search", tmp_path / "ranks" / "search", ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path


@pytest.fixture
def fresh_folder(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """Forget the names of cache folders, before and after the test."""
    jit.cache_folder.cache_clear()
    yield monkeypatch
    jit.cache_folder.cache_clear()


def test_the_second_start_compiles_nothing_and_an_edit_is_noticed(package: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    hits, misses, folder, found, stderr = start(package, cache)
    assert (hits, misses) == (0, 1)
    assert found == "5 [4, 5, 6, 7, 8, 0, 0, 0, 0]"
    assert "compiling" in stderr
    assert start(package, cache) == (1, 0, folder, found, "")

    game = package / "ranks" / "search" / "games" / "tictactoe.py"
    text = game.read_text(encoding="utf-8")
    game.write_text(text.replace("for square in range(9):", "for square in range(7):"), encoding="utf-8")
    edited = start(package, cache)
    assert edited[:2] == (0, 1)
    assert edited[2] != folder
    assert edited[3] == "3 [4, 5, 6, 0, 0, 0, 0, 0, 0]"

    game.write_text(text, encoding="utf-8")
    assert start(package, cache)[:4] == (1, 0, folder, found)


@pytest.mark.parametrize(
    ("edited", "seen_by"),
    [
        ("search/evaluation.py", [SEARCH]),
        ("search/games/tictactoe.py", [SEARCH]),
        ("workloads/graph_coloring/graphs/bitsets.py", [COLOURING]),
        ("workloads/graph_coloring/classical/greedy.py", [COLOURING]),
        ("chess/core/moves.py", [SEARCH, ENGINE]),
        ("chess/engine/nnue/features.py", [ENGINE]),
        ("jit.py", [SEARCH, COLOURING, ENGINE]),
        ("splitmix64.py", [SEARCH, COLOURING, ENGINE]),
        ("errors.py", []),
    ],
)
def test_the_cache_folder_depends_on_every_file_of_jitted_code(
    edited: str, seen_by: list[jit.Group], package: Path, fresh_folder: pytest.MonkeyPatch
) -> None:
    """An edit in one group of folders does not change the cache folder of the other."""
    fresh_folder.setattr(jit, "PACKAGE", package / "ranks")
    path = package / "ranks" / edited
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    before = {group: jit.cache_folder(group) for group in jit.JITTED}
    assert len(set(before.values())) == len(jit.JITTED)
    path.write_text(path.read_text(encoding="utf-8") + "\n", encoding="utf-8")
    jit.cache_folder.cache_clear()
    assert [group for group in jit.JITTED if jit.cache_folder(group) != before[group]] == seen_by


def jitted_functions(tree: ast.Module) -> list[ast.FunctionDef]:
    """The functions at the top level of a file that have a decorator."""
    return [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.decorator_list]


def names_in(nodes: Iterable[ast.AST]) -> set[str]:
    return {name.id for node in nodes for name in ast.walk(node) if isinstance(name, ast.Name)}


def test_jitted_code_depends_on_no_other_file_of_the_package() -> None:
    """All jitted functions are in the folders of a group, and use nothing of ours from outside it except SHARED."""
    for path in sorted({*SOURCE.rglob("*.py")} - {*(SOURCE / "cli" / "templates").iterdir()}):  # copied, never imported
        tree = ast.parse(path.read_text(encoding="utf-8"))
        imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
        group = jit.group_of(path)
        if group is None:
            named = {alias.name for node in imports if node.module == "ranks.jit" for alias in node.names}
            assert named & {"helper", "inlined", "kernel"} == set(), path
            continue
        inside = tuple(f"ranks.{room.replace('/', '.')}." for room in group)
        shared = tuple(f"ranks.{name.removesuffix('.py')}." for name in jit.SHARED)
        from_outside = {
            alias.asname or alias.name
            for node in imports
            for alias in node.names
            if (node.module or "").startswith("ranks")
            and not f"{node.module}.{alias.name}.".startswith((*inside, *shared))
        }
        compiled = [node for function in jitted_functions(tree) for node in (*function.decorator_list, *function.body)]
        constants = [node.value for node in tree.body if isinstance(node, ast.Assign | ast.AnnAssign) and node.value]
        assert names_in([*compiled, *constants]) & from_outside == set(), path


GAME = """
from ranks.jit import kernel
from my_rules import reward

@kernel("int64(int64)")
def score(moves):
    return reward(moves)
"""
RULES = """
from ranks.jit import helper

@helper
def reward(moves):
    return {reward} * moves
"""


def test_an_edit_of_a_game_outside_the_package_is_noticed(package: Path, tmp_path: Path) -> None:
    """Numba's own cache would miss the edit: the file of `score` does not change."""
    environment = {**os.environ, "PYTHONPATH": str(package), "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    (tmp_path / "my_game.py").write_text(GAME, encoding="utf-8")
    for reward in (2, 300):
        (tmp_path / "my_rules.py").write_text(RULES.format(reward=reward), encoding="utf-8")
        probe = [sys.executable, "-c", "from my_game import score; print(score(7))"]
        ended = subprocess.run(probe, env=environment, capture_output=True, text=True, check=True)
        assert ended.stdout == f"{reward * 7}\n"
    assert not (tmp_path / "cache").exists()


def test_two_processes_compile_at_the_same_time(package: Path, tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(package), "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    probe = PROBE.format(module="ranks.search.games.tictactoe", function="legal_moves")
    both = [
        subprocess.Popen([sys.executable, "-c", probe], env=environment, stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    outputs = [process.communicate()[0].split(" ", 3)[3] for process in both]
    assert outputs == ["5 [4, 5, 6, 7, 8, 0, 0, 0, 0]\n"] * 2
    assert start(package, tmp_path / "cache")[:2] == (1, 0)


@pytest.mark.parametrize(
    ("variables", "root"),
    [
        ({"NUMBA_CACHE_DIR": "/a", "XDG_CACHE_HOME": "/b", "HOME": "/c"}, "/a"),
        ({"XDG_CACHE_HOME": "/b", "HOME": "/c"}, "/b/ranks"),
        ({"HOME": "/c"}, "/c/.cache/ranks"),
    ],
)
def test_location_of_the_cache(variables: dict[str, str], root: str, fresh_folder: pytest.MonkeyPatch) -> None:
    for name in ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME"):
        fresh_folder.delenv(name, raising=False)
    for name, value in variables.items():
        fresh_folder.setenv(name, value)
    for group in jit.JITTED:
        assert str(jit.cache_folder(group).parent) == root
        assert jit.cache_folder(group).name.startswith("kernels-")


def calls(function: ast.FunctionDef) -> set[str]:
    return {
        node.func.id for node in ast.walk(function) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    }


@pytest.mark.parametrize("room", [*SEARCH, *COLOURING, "chess/engine"])
def test_no_kernel_calls_itself_directly_or_indirectly(room: str) -> None:
    """A cached function that calls itself crashes the second process that loads it (numba issue 6061)."""
    jitted: dict[str, set[str]] = {}
    for path in sorted((SOURCE / room).rglob("*.py")):
        for function in jitted_functions(ast.parse(path.read_text(encoding="utf-8"))):
            jitted[function.name] = jitted.get(function.name, set()) | calls(function)
    assert len(jitted) > 5
    reached = {name: set(called) for name, called in jitted.items()}
    for _ in jitted:
        for name in reached:
            reached[name] |= {far for near in reached[name] & reached.keys() for far in reached[near]}
    # `play` and `legal_moves` are rules of several games, and arguments of the kernels that call them
    assert [name for name in reached if name in reached[name] and name not in {"play", "legal_moves"}] == []
