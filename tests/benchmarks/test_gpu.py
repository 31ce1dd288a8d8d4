"""benchmarks/gpu.py on the CPU: a part that fails, hangs or is killed does not hide the others."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
PARTS = """
import os, sys, time
def good(device): return {"steps_per_s": 7.0}
def raises(device): raise RuntimeError("CUDA error: unspecified launch failure")
def killed(device): os.kill(os.getpid(), 9)
def hangs(device): time.sleep(1000)
def unequal(device): return {"equal": False, "failed": True}
def broken(device): open(sys.argv[3], "w").write('{"steps'); os._exit(1)
"""
RUN_PARTS = """
import json, sys
sys.path[:0] = sys.argv[1:]
from benchmarks import gpu
names = ("hangs", "raises", "killed", "unequal", "broken", "good")
parts = [(f"parts:{name}", {"device": "cpu"}) for name in names]
found = dict(zip(names, gpu.carry_out(parts, lambda index: 60.0 if index else 3.0)))
print(json.dumps(found | {"brief": {name: gpu.brief(part) for name, part in found.items()}}))
"""


def python(*arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [sys.executable, *arguments], env={**os.environ, **env}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("parts")
    (folder / "parts.py").write_text(PARTS, encoding="utf-8")
    return json.loads(python("-c", RUN_PARTS, str(BENCHMARKS.parent), str(folder), PYTHONPATH=str(folder)).stdout)


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("raises", "RuntimeError: CUDA error: unspecified launch failure"),
        ("killed", "it ended with exit code -9 and wrote no result"),
        ("hangs", "it took longer than 3 s"),
        ("broken", "it ended with exit code 1 and wrote no result"),
    ],
)
def test_a_part_that_fails_has_its_error(found: dict[str, Any], name: str, error: str) -> None:
    assert not found[name]["ok"]
    assert found[name]["error"].endswith(error)
    assert found["brief"][name] == error


def test_a_part_after_them_has_its_result(found: dict[str, Any]) -> None:
    assert found["good"]["ok"]
    assert found["good"]["found"] == {"steps_per_s": 7.0}
    assert (found["unequal"]["ok"], found["brief"]["unequal"]) == (False, "fingerprints DIFFER")


def test_a_call_takes_over_the_parts_of_the_newest_file_that_it_does_not_measure(tmp_path: Path) -> None:
    for date, found in ("2025-01-01", 1), ("2025-01-02", 2):
        parts = {name: {"ok": name != "survive", "found": found} for name in ("L3 images", "survive", "of long ago")}
        (tmp_path / f"workloads_cpu_{date}.json").write_text(json.dumps({"parts": parts}), encoding="utf-8")
    python(str(BENCHMARKS / "gpu.py"), "--only", "synchronising", "--out", str(tmp_path), CUDA_VISIBLE_DEVICES="")
    written = json.loads(max(tmp_path.iterdir()).read_text(encoding="utf-8"))["parts"]
    assert written.keys() == {"L3 images", "synchronising calls"}
    assert written["L3 images"] == {"ok": True, "found": 2, "date": "2025-01-02"}
    assert written["synchronising calls"]["date"] > "2026"


def test_one_part_from_the_command_to_the_file(tmp_path: Path) -> None:
    """It measures nothing here: the number types are a check. (The whole script takes minutes.)"""
    done = python(str(BENCHMARKS / "gpu.py"), "--only", "number types", "--out", str(tmp_path), CUDA_VISIBLE_DEVICES="")
    written = json.loads(next(tmp_path.glob("workloads_cpu_*.json")).read_text(encoding="utf-8"))
    part = written["parts"]["number types"]
    assert part["ok"], part
    assert part["found"]["problems"] == []
    assert {"LSTM", "GRU", "RNN", "stock-trading"} == part["found"]["not_float32"].keys()
    assert any("addmm" in name for name in part["found"]["not_float32"]["LSTM"])
    assert written["origin"]["command"].startswith("python benchmarks/gpu.py --only number types")
    assert "ok     number types" in done.stdout
