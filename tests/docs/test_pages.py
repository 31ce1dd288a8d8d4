"""The pages say what works: their files and commands are run as they stand there, their links lead somewhere."""

from __future__ import annotations

import ast
import difflib
import json
import os
import re
import runpy
import shlex
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from benchmarks.figures import PAGES as GENERATED_PAGES
from benchmarks.figures import updated
from ranks.cli.main import COMMAND_GROUPS, COMMANDS
from ranks.workloads import WORKLOADS

ROOT = Path(__file__).parent.parent.parent
PAGES = [
    ROOT / "README.md",
    ROOT / "ARCHITECTURE.md",
    ROOT / "LOG.md",
    ROOT / "CHANGELOG.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "tests" / "README.md",
    *(ROOT / "docs").glob("*.md"),
]


def files_of(page: Path) -> dict[str, str]:
    """The named files of a page: blocks that begin with ```python NAME.py."""
    return dict(re.findall(r"```python (\S+\.py)\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL))


def commands_of(page: Path) -> list[str]:
    """The shell blocks of a page, in order."""
    return re.findall(r"```sh\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)


@pytest.fixture
def shell(tmp_path: Path) -> dict[str, str]:
    """An environment in which `ranks`, `torchrun` and `python` are those of this test."""
    bin_ = tmp_path / "bin"
    bin_.mkdir()
    for name, module in (("ranks", "-m ranks"), ("torchrun", "-m torch.distributed.run"), ("python", "")):
        path = bin_ / name
        path.write_text(f'#!/bin/sh\nexec "{sys.executable}" {module} "$@"\n')
        path.chmod(0o755)
    path = os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    places = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
    kept = {k: v for k, v in os.environ.items() if k not in places and not k.startswith("RANKS_")}
    return {**kept, "PATH": f"{bin_}{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": path, "OMP_NUM_THREADS": "1"}


def run(commands: str, folder: Path, shell: dict[str, str]) -> str:
    """Run a block of a page, and return what it prints. A line that only starts `ranks` needs no shell, and can be
    forked (tests/forked)."""
    lines = commands.splitlines()
    alone = all(re.match(r"ranks [^$&|;<>()`]*(#.*)?$", line) for line in lines)
    if not alone:
        return completed(["bash", "-ec", commands], folder, shell)
    as_tests = {**shell, "PYTHONPATH": os.environ.get("PYTHONPATH", "")}
    if not as_tests["PYTHONPATH"]:
        del as_tests["PYTHONPATH"]
    module = [sys.executable, "-m", "ranks"]
    return "".join(completed([*module, *shlex.split(line, comments=True)[1:]], folder, as_tests) for line in lines)


def completed(command: Sequence[str], folder: Path, env: dict[str, str]) -> str:
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, f"$ {command}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    return done.stdout


@pytest.fixture
def one_core() -> Iterator[None]:
    """Run on one core, as on a machine with one. A command then trains with one rank, unless it gets --ranks: two
    ranks take twice the CPU time for a net as small as those of the pages."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(before)})
    yield
    os.sched_setaffinity(0, before)


def iterations_of(metrics: Path) -> list[int]:
    return [json.loads(line)["iteration"] for line in metrics.read_text(encoding="utf-8").splitlines()]


def test_your_ddp_loop(tmp_path: Path, shell: dict[str, str]) -> None:
    page = ROOT / "docs" / "your-ddp-loop.md"
    files = files_of(page)
    assert set(files) == {"plain_ddp.py", "with_ranks.py"}
    losses: dict[str, float] = {}
    for name, file, command in (
        ("plain", "plain_ddp.py", "ranks launch --gpus none --ranks 2 plain_ddp.py"),
        ("two", "with_ranks.py", "torchrun --standalone --nproc-per-node 2 with_ranks.py"),
        ("one", "with_ranks.py", "python with_ranks.py"),
    ):
        folder = tmp_path / name
        folder.mkdir()
        (folder / file).write_text(files[file])
        said = run(command, folder, {**shell, "CUDA_VISIBLE_DEVICES": ""})
        losses[name] = float(re.findall(r"loss (\d+\.\d+)", said)[-1])
    for name in ("one", "two"):
        assert iterations_of(tmp_path / name / "runs" / "with_ranks" / "metrics.jsonl") == list(range(1, 201))
        assert (tmp_path / name / "runs" / "with_ranks" / "export" / "model.py").is_file()
    assert losses["one"] == pytest.approx(losses["two"], abs=0.002)
    assert max(losses.values()) < 0.2, "one of the loops did not learn"


def test_ten_changed_lines() -> None:
    files = files_of(ROOT / "docs" / "your-ddp-loop.md")
    before, after = (files[name].splitlines() for name in ("plain_ddp.py", "with_ranks.py"))
    added = [line[2:] for line in difflib.ndiff(before, after) if line.startswith("+ ") and line[2:].strip()]
    marked = [int(m[1]) for line in added if (m := re.search(r"# (\d+)\b", line))]
    assert marked == list(range(1, 11))
    others = [line for line in added if not re.search(r"# \d+\b", line)]
    assert [line.split()[0] for line in others] == ["from", 'print(f"loss'], others


def test_first_workload(tmp_path: Path, shell: dict[str, str]) -> None:
    page = ROOT / "docs" / "first-workload.md"
    for name, text in files_of(page).items():
        (tmp_path / name).write_text(text)
    *commands, last = commands_of(page)
    assert last == "python use.py\n", "it is run below, with a list of what it imports"
    said = "".join(run(block, tmp_path, {**shell, "CUDA_VISIBLE_DEVICES": ""}) for block in commands)
    folder = tmp_path / "runs" / "my_task"
    accuracy = re.search(r"^  accuracy +(\d\S*)$", said, re.MULTILINE)
    assert accuracy is not None
    assert float(accuracy[1]) > 0.95
    assert re.search(r"^[0-9a-f]{64}$", said, re.MULTILINE), "no fingerprint"
    assert {"model.safetensors", "config.json", "model.py"} <= {path.name for path in (folder / "export").iterdir()}
    assert iterations_of(folder / "metrics.jsonl") == list(range(1, 1001))
    sessions = [json.loads(line)["event"] for line in (folder / "sessions.jsonl").read_text().splitlines()]
    assert sessions == ["opened", "resumed", "finished"]
    code = "import runpy, sys; runpy.run_path('use.py'); print(sorted({m.split('.')[0] for m in sys.modules}))"
    without = {k: v for k, v in shell.items() if k != "PYTHONPATH"}
    imported = run(f'python -c "{code}"', tmp_path, without).splitlines()[-1]
    assert "'torch'" in imported
    assert "'ranks'" not in imported
    assert "'safetensors'" not in imported


@pytest.mark.usefixtures("one_core")
def test_self_play(tmp_path: Path, shell: dict[str, str]) -> None:
    page = ROOT / "docs" / "self-play.md"
    for name, text in files_of(page).items():
        (tmp_path / name).write_text(text)
    no_gpus = {**shell, "CUDA_VISIBLE_DEVICES": ""}
    said = "".join(run(block, tmp_path, no_gpus) for block in commands_of(page))
    best = re.search(r"^  best_move +(\S+)$", said, re.MULTILINE)
    assert best is not None
    assert float(best[1]) > 0.6, "a new net finds 0.22; the net has learned nothing"
    assert len(re.findall(r"^\d+\.\d+ 20 \S+ (?:1-0|0-1) rules \d+: [\d ]+$", said, re.MULTILINE)) == 3, "games of nim"
    assert iterations_of(tmp_path / "runs" / "quick" / "metrics.jsonl") == [1, 2]
    assert (tmp_path / "runs" / "quick" / "export" / "model.py").is_file()
    loop = page.read_text(encoding="utf-8").split("The loop, from `my_game.py`:\n\n```python\n")[1].split("```")[0]
    lines = [line.strip() for line in (tmp_path / "my_game.py").read_text().splitlines()]
    assert all(line.strip() in lines for line in loop.splitlines()), "the page shows another loop"


@pytest.mark.usefixtures("one_core")
def test_on_policy(tmp_path: Path, shell: dict[str, str]) -> None:
    pytest.importorskip("gymnasium")
    page = ROOT / "docs" / "on-policy.md"
    for name, text in files_of(page).items():
        (tmp_path / name).write_text(text)
    no_gpus = {**shell, "CUDA_VISIBLE_DEVICES": ""}
    said = "".join(run(block, tmp_path, no_gpus) for block in commands_of(page))
    steps, right = re.search(r"^steps (\d+)$", said, re.MULTILINE), re.search(r"^right (\S+)$", said, re.MULTILINE)
    assert steps is not None
    assert int(steps[1]) > 300, "the exported policy has learned nothing"
    rewards = re.search(r"^  episode_reward +(\S+)$", said, re.MULTILINE)
    assert rewards is not None
    assert float(rewards[1]) > 475, "the page says that CartPole is solved"
    assert right is not None
    assert float(right[1]) > 0.9, "the loop did not learn to remember"
    assert "collected 16 8" in said
    assert iterations_of(tmp_path / "runs" / "quick" / "metrics.jsonl") == list(range(1, 4))
    assert iterations_of(tmp_path / "runs" / "my_agent" / "metrics.jsonl") == list(range(1, 26))
    assert iterations_of(tmp_path / "runs" / "loop" / "metrics.jsonl") == list(range(1, 21))


def test_loading(tmp_path: Path, shell: dict[str, str]) -> None:
    page = ROOT / "docs" / "loading.md"
    files = files_of(page)
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    said = "".join(run(block, tmp_path, {**shell, "CUDA_VISIBLE_DEVICES": ""}) for block in commands_of(page))
    fingerprints = re.findall(r"^[0-9a-f]{64}$", said, re.MULTILINE)
    assert len(fingerprints) == 2
    assert len(set(fingerprints)) == 1, "workers changed the result"
    for name in ("two", "zero"):
        rows = [json.loads(line) for line in (tmp_path / "runs" / name / "metrics.jsonl").read_text().splitlines()]
        assert rows[-1]["train/accuracy"] > 0.9
        assert ("time/data_wait_s" in rows[-1]) == (name == "two")


def test_a_data_set_of_hugging_face(tmp_path: Path, shell: dict[str, str]) -> None:
    pytest.importorskip("datasets")
    (tmp_path / "hugging.py").write_text(files_of(ROOT / "docs" / "loading.md")["hugging.py"])
    assert run("python hugging.py", tmp_path, shell).splitlines()[-1] == "3 [0, 1, 0]"


def test_stock_trading_as_an_environment(tmp_path: Path, shell: dict[str, str]) -> None:
    pytest.importorskip("gymnasium")
    (tmp_path / "env.py").write_text(files_of(ROOT / "docs" / "stock-trading.md")["env.py"])
    assert run("python env.py", tmp_path, shell).split()[2] == "(163,)"


def test_stock_trading_exported(tmp_path: Path, shell: dict[str, str]) -> None:
    (tmp_path / "use.py").write_text(files_of(ROOT / "docs" / "stock-trading.md")["use.py"])
    tiny = "--iterations 2 --global-batch 8 --ppo.minibatches 2 --ppo.epochs 1 --optim.lr 0.05 --gpus none --ranks 1"
    run(f"ranks train stock-trading --preset demo --name demo {tiny}", tmp_path, shell)
    weights = ast.literal_eval(run("python use.py", tmp_path, shell))
    assert weights
    assert all(0 <= weight <= 1 for weight in weights.values())


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    targets = re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", text) + re.findall(r'src="([^"]+)"', text)
    missing = [t for t in targets if "://" not in t and not (page.parent / t).exists()]
    assert missing == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_exist(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    typed = re.findall(r"^(?:\$ )?(?:python -m )?ranks ([a-z][a-z-]*)", text, re.MULTILINE)
    typed += re.findall(r"`ranks ([a-z][a-z-]*)", text)
    assert set(typed) - set(COMMANDS) - set(COMMAND_GROUPS) - set(WORKLOADS) == set()


def test_named_files_exist() -> None:
    """Paths of the repository that the pages name in code type."""
    named = {
        (page.name, path)
        for page in PAGES
        for path in re.findall(r"`((?:src|tests|benchmarks|docs|tools)/[\w./-]+)`", page.read_text(encoding="utf-8"))
    }
    assert [(page, path) for page, path in sorted(named) if not (ROOT / path).exists()] == []


def test_the_picture_is_the_scripts() -> None:
    script = runpy.run_path(str(ROOT / "docs" / "draw_shards.py"))
    assert script["PICTURE"].read_text(encoding="utf-8") == script["drawing"]()


def test_the_figures_are_the_results() -> None:
    for page in GENERATED_PAGES:
        text = page.read_text(encoding="utf-8")
        assert updated(page) == text, f"python -m benchmarks.figures brings {page.name} up to date"


def test_the_readme_shows_the_loop_of_the_template() -> None:
    (loop,) = re.findall(r"```python\n(def train.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    assert loop in (ROOT / "src" / "ranks" / "cli" / "templates" / "supervised.py").read_text(encoding="utf-8")
