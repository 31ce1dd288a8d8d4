"""The rooms, read from the code: a room is above all rooms that it imports."""

from __future__ import annotations

import ast
import functools
import graphlib
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src" / "ranks"
FLOORS = {
    "cli": 6,
    "renting": 5,
    "prove": 4,
    "hardware": 4,
    "transfer": 4,
    "hub": 4,
    "workloads": 3,
    "launch": 3,
    "rl": 2,
    "selfplay": 2,
    "data": 2,
    "nets": 2,
    "onnx_export": 2,
    "watch": 2,
    "chess": 2,
    "engine": 1,
    "rating": 1,
    "search": 1,
}
ONLY = {"engine": {"torch", "numpy", "safetensors"}, "search": {"numba", "numpy"}, "rating": {"numpy"}}
"""Rooms that may use no other packages than these and the standard library."""
FILES = sorted(SOURCE.rglob("*.py"))
MODULES = {
    ".".join(["ranks", *path.relative_to(SOURCE).with_suffix("").parts]).removesuffix(".__init__"): path
    for path in FILES
}


@functools.cache
def nodes(path: Path) -> list[ast.AST]:
    """The syntax tree of a file as a list."""
    return list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))


@functools.cache
def imports(path: Path) -> set[str]:
    """The modules that a file imports, also inside functions; of `from a import b`, a.b where that is a module."""
    found: set[str] = set()
    for node in nodes(path):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.module is not None, f"{path}: a relative import"
            assert node.level == 0, f"{path}: a relative import"
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                found.add(inner if inner in MODULES else node.module)
    return found


@functools.cache
def named(path: Path) -> set[str]:
    """The modules that string constants name, as "package.module" or "package.module:function"."""
    constants = (node.value for node in nodes(path) if isinstance(node, ast.Constant))
    texts = {value.partition(":")[0] for value in constants if isinstance(value, str)}
    return texts & MODULES.keys()


def sub_room(module: str, within: str) -> str:
    """('ranks.chess.uci.player', 'ranks.chess') -> 'uci'; the files directly in a room belong to no sub-room."""
    first = module.removeprefix(f"{within}.").split(".")[0]
    is_folder = module.startswith(f"{within}.") and MODULES.get(f"{within}.{first}", Path()).name == "__init__.py"
    return first if is_folder else ""


def rooms_with_sub_rooms() -> list[str]:
    """The packages that hold at least two packages, without the package itself and the list of workloads."""
    packages = [module for module, path in MODULES.items() if path.name == "__init__.py"]
    parents = [package.rpartition(".")[0] for package in packages]
    return sorted({p for p in parents if p not in ("", "ranks", "ranks.workloads") and parents.count(p) > 1})


def room(module: str) -> str:
    """'ranks.engine.distributed.world' -> 'engine'; files directly in the package belong to none."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 and (SOURCE / parts[1]).is_dir() else ""


def own_imports() -> list[tuple[str, str]]:
    used = [(module, other) for module, path in MODULES.items() for other in imports(path) | named(path)]
    return [(module, other) for module, other in used if other.startswith("ranks")]


def test_every_folder_is_a_room_with_a_floor() -> None:
    folders = {path.name for path in SOURCE.iterdir() if path.is_dir() and any(path.rglob("*.py"))}
    assert folders == set(FLOORS)


def test_a_room_imports_only_rooms_below_it() -> None:
    wrong = [
        f"{module} imports {other}"
        for module, other in own_imports()
        if room(module) and room(other) and room(module) != room(other) and FLOORS[room(module)] <= FLOORS[room(other)]
    ]
    assert wrong == []


def test_no_file_imports_itself_by_a_detour() -> None:
    graph = {module: {other for other in imports(path) if other in MODULES} for module, path in MODULES.items()}
    try:
        tuple(graphlib.TopologicalSorter(graph).static_order())
    except graphlib.CycleError as error:
        pytest.fail(" imports ".join(reversed(error.args[1])))


@pytest.mark.parametrize("name", rooms_with_sub_rooms())
def test_sub_rooms_do_not_import_each_other_in_a_circle(name: str) -> None:
    """Imports by name in a string, as in a table of commands or players, count too."""
    graph: dict[str, set[str]] = {}
    for module, path in MODULES.items():
        if inner := sub_room(module, name):
            others = {sub_room(other, name) for other in imports(path) | named(path)}
            graph.setdefault(inner, set()).update(others - {inner, ""})
    try:
        tuple(graphlib.TopologicalSorter(graph).static_order())
    except graphlib.CycleError as error:
        pytest.fail(" imports ".join(reversed(error.args[1])))


def test_a_module_named_in_a_string_counts_as_an_import() -> None:
    table = MODULES["ranks.chess.commands.players"]
    assert {"ranks.chess.uci.player", "ranks.chess.players.simple"} <= named(table)
    assert "ranks.chess.uci.player" not in imports(table)


def test_no_workload_imports_another_and_proofs_know_only_the_contract() -> None:
    def workload(module: str) -> str:
        return module.split(".")[2] if module.startswith("ranks.workloads.") else ""

    wrong = [
        f"{module} imports {other}"
        for module, other in own_imports()
        if workload(other) and ((workload(module) not in ("", workload(other))) or room(module) == "prove")
    ]
    assert wrong == []


@pytest.mark.parametrize("name", sorted(ONLY))
def test_packages_that_a_room_may_use(name: str) -> None:
    allowed = ONLY[name] | set(sys.stdlib_module_names) | {"ranks"}
    used = {(m, other) for m, p in MODULES.items() if room(m) == name for other in imports(p)}
    assert [f"{m} imports {other}" for m, other in sorted(used) if other.split(".")[0] not in allowed] == []


def test_only_the_command_line_knows_tyro() -> None:
    users = {module for module, path in MODULES.items() if any(o.split(".")[0] == "tyro" for o in imports(path))}
    assert users == {"ranks.cli.flags.fields", "ranks.cli.flags.parse"}


def test_models_import_only_torch_and_the_standard_library() -> None:
    allowed = {"torch"} | set(sys.stdlib_module_names)
    models = [path for path in SOURCE.glob("workloads/**/model.py")]
    wrong = [(str(p), other) for p in models for other in imports(p) if other.split(".")[0] not in allowed]
    assert models
    assert wrong == []


def test_configs_and_help_import_no_torch() -> None:
    light = ["ranks", "ranks.cli.main", "ranks.cli.flags.settings", "ranks.errors", "ranks.workloads"]
    light += [f"ranks.engine.{name}" for name in ("config", "distributed.rendezvous.process_env", "runs.folder")]
    configs = [module for module in MODULES if module.startswith("ranks.workloads.") and module.endswith(".config")]
    assert configs
    packages = [module.removesuffix(".config") for module in configs]
    for module in [*light, *configs, *packages]:
        code = f"import sys, {module}; sys.exit('torch' in sys.modules)"
        assert subprocess.run([sys.executable, "-c", code]).returncode == 0, f"{module} imports torch"


@pytest.mark.parametrize("workload", ["graph-coloring", "stock-trading"])
def test_the_help_page_imports_no_type_checker(workload: str) -> None:
    """tyro imports typeguard, a fifth of a second, for a hint such as `int | None` that it reads itself."""
    code = (
        "import atexit, sys; from ranks.cli.main import main\n"
        "atexit.register(lambda: print(*sys.modules)); main(sys.argv[1:])"
    )
    command = [sys.executable, "-c", code, "train", workload, "--help"]
    imported = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()[-1].split()
    assert "tyro" in imported
    assert {"torch", "typeguard"} & set(imported) == set()
