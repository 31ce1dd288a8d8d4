"""Arguments and files that `solve` rejects, and numbers that it accepts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest

from ranks.errors import UserError
from ranks.workloads import graph_coloring as workload
from ranks.workloads.graph_coloring.graphs import read
from ranks.workloads.graph_coloring.net.weights_file import load_net
from ranks.workloads.graph_coloring.solving.solve import solve

BAD: dict[str, tuple[dict[str, Any], str]] = {
    "k 0": ({"k": 0}, "at least one colour"),
    "budget": ({"budget": "ten"}, "not a length of time"),
    "no moves": ({"moves": "0"}, "not a number of moves"),
    "words for moves": ({"moves": "many"}, "--moves many"),
    "init and no net": ({"no_net": True, "init": Path("x.sol")}, "starts from no colouring"),
    "no budget": ({"budget": "0s"}, "a search needs time"),
    "no folder": ({"out": Path("no/such/x.sol")}, r"--out no/such/x\.sol\nfound: there is no folder no/such"),
    "a folder": ({"out": Path(".")}, "is a folder"),
    "no folder for a picture": ({"draw": Path("no/such/x.png")}, "--draw .*\n.*there is no folder no/such"),
    "no kind of picture": ({"draw": Path("x.pdf")}, "--draw .*\n.*extension"),
    "run and no net": ({"no_net": True, "run": "x"}, "uses no weights"),
    "no such run": ({"run": "nowhere"}, "holds a net"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_arguments_are_rejected_before_the_graph_is_read(
    case: str, queen5: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flags, found = BAD[case]
    monkeypatch.setattr(read, "read_graph", lambda *rest, **options: pytest.fail("the graph was read"))
    with pytest.raises(UserError, match=found):
        solve(str(queen5), **flags)


def test_damaged_and_foreign_weights_are_rejected(run: str) -> None:
    export = Path(run) / "export"
    raw = bytearray((export / "model.safetensors").read_bytes())
    raw[-1] ^= 1
    (export / "model.safetensors").write_bytes(raw)
    with pytest.raises(UserError, match="damaged, its sha256"):
        load_net(run)
    (export / "config.json").write_text("{}")
    with pytest.raises(UserError, match="does not describe a model"):
        load_net(run)


BAD_SOL = {
    "l 1 1\nl 2 1\n": "23 of 25 vertices have no colour, vertex 3 first",
    "l 1 1\nl 1 2\n": "line 2: vertex 1 of a graph with vertices 1..25, each once",
    "l 26 1\n": "line 1: vertex 26",
    "l 1 x\n": "line 1 reads 'l 1 x'",
    "l 1 0\n": "line 1 reads 'l 1 0'",
}


@pytest.mark.parametrize("text", BAD_SOL)
def test_bad_sol_files_are_rejected(text: str, queen5: Path, run: str, tmp_path: Path) -> None:
    sol = tmp_path / "bad.sol"
    sol.write_text(text)
    with pytest.raises(UserError, match=BAD_SOL[text]):
        solve(str(queen5), run=run, init=sol)
    with pytest.raises(UserError, match="--init"):
        solve(str(queen5), run=run, init=tmp_path / "none.sol")


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ({"k": 0}, "at least one colour"),
        ({"k": 3.0}, r"k=3\.0\nfound: a float"),
        ({"k": "3"}, "k='3'\nfound: a str"),
        ({"k": True}, "found: a bool"),
        ({"budget_s": "3"}, "budget_s='3'\nfound: a search needs time"),
        ({"budget_s": 0}, "a search needs time"),
        ({"budget_s": float("nan")}, "a search needs time"),
        ({"moves": 0}, "a search needs moves"),
        ({"seed": 0.5}, r"seed=0\.5\nfound: a float"),
    ],
)
def test_python_rejects_arguments_of_wrong_type_or_value(asked: dict[str, Any], found: str) -> None:
    with pytest.raises(UserError, match=found):
        workload.solve(nx.petersen_graph(), **asked)


def test_numbers_of_numpy_are_accepted(run: str) -> None:
    numbers: dict[str, Any] = dict(k=np.int64(3), budget_s=np.float32(2), seed=np.uint8(1))
    found = workload.solve(nx.petersen_graph(), **numbers, run=run)
    assert found.num_colors == 3
