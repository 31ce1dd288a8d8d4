"""The code of a run: kept with it, compared when it is used again, and executed from the copy only
on request."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
import torch

from ranks.cli.main import main
from ranks.engine.runs.code import package_version
from tests.cli.conftest import HERE

Refused = Callable[[Sequence[str]], str]
TRAIN = ["train", "./spirals.py", "--ranks", "1", *HERE, "--gpus", "none", "--iterations", "20", "--eval-every", "10"]


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def code_of(run: Path) -> dict[str, object]:
    return json.loads((run / "run.json").read_text())["code"]


def test_a_run_keeps_its_file(trained: Path) -> None:
    run = trained / "runs" / "spirals"
    assert code_of(run) == {"package": package_version(), "files": {"spirals.py": sha256(trained / "spirals.py")}}
    assert (run / "code" / "spirals.py").read_bytes() == (trained / "spirals.py").read_bytes()


def test_a_resume_with_changed_code_warns_once(trained: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run, path = trained / "runs" / "spirals", trained / "spirals.py"
    path.write_text(path.read_text() + "# changed\n")
    for _ in range(2):
        assert main(TRAIN) == 0
    warning = "spirals.py has changed since this run trained last; the run continues with it"
    assert capsys.readouterr().out.count(warning) == 1
    assert code_of(run)["files"] == {"spirals.py": sha256(path)}
    assert (run / "code" / "spirals.py").read_bytes() == path.read_bytes()


def test_an_exact_run_says_that_it_continues_with_another_torch(
    trained: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, flags, times in (("exact", ["--exact"], 1), ("fast", [], 0)):
        argv = [*TRAIN, "--name", name, *flags]
        assert main(argv) == 0
        path = trained / "runs" / name / "run.json"
        path.write_text(path.read_text().replace(f'"torch": "{torch.__version__}"', '"torch": "2.11.0"'))
        assert "the run began with torch" not in capsys.readouterr().out
        assert main(argv) == 0
        said = f"the run began with torch 2.11.0, and continues with {torch.__version__}"
        assert capsys.readouterr().out.count(said) == times


def test_an_evaluation_with_changed_code_warns(trained: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = trained / "spirals.py"
    path.write_text(path.read_text() + "# changed\n")
    assert main(["evaluate", "spirals", "--gpus", "none"]) == 0
    warning = capsys.readouterr().err
    assert warning.splitlines() == [
        "warning: spirals.py has changed since the run was trained; "
        "with --trust-code the copy in runs/spirals/code is used"
    ]
    assert main(["evaluate", "spirals", "--gpus", "none", "--trust-code"]) == 0
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("command", ["evaluate", "export"])
def test_the_copy_is_executed_only_on_request(
    command: str,
    refused: Refused,
    trained: Path,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    monkeypatch.chdir(elsewhere)
    mark = elsewhere / "executed"
    copy = trained / "runs" / "spirals" / "code" / "spirals.py"
    copy.write_text(copy.read_text() + f"open({str(mark)!r}, 'w').close()\n")
    run = str(trained / "runs" / "spirals")
    assert f"or add --trust-code, which executes the copy {copy}" in refused([command, run])
    assert not mark.exists()
    assert main([command, run, "--trust-code"]) == 0
    assert mark.exists()


def test_modules_beside_the_file_are_kept_and_exported(
    trained: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = trained / "spirals.py"
    text = path.read_text()
    start, end = text.index("class Net("), text.index("def build(")
    Path("spiral_layers.py").write_text("from torch import Tensor, nn\n\n\n" + text[start:end])
    path.write_text(
        (text[:start] + text[end:]).replace("from ranks import", "from spiral_layers import Net\nfrom ranks import")
    )
    assert main([*TRAIN, "--name", "second"]) == 0
    run = trained / "runs" / "second"
    assert {p.name for p in (run / "code").iterdir()} == {"spirals.py", "spiral_layers.py"}
    assert main(["export", "second"]) == 0
    assert "class Net(nn.Module)" in (run / "export" / "model.py").read_text()
    monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))
    assert main(["evaluate", str(run), "--gpus", "none", "--trust-code"]) == 0


def test_a_run_without_a_copy_says_where_to_go(refused: Refused, trained: Path) -> None:
    shutil.rmtree(trained / "runs" / "spirals" / "code")
    (trained / "spirals.py").unlink()
    assert "   do: go to the folder where the run was trained\n" in refused(["evaluate", "spirals"])
    assert "has no copy of its code" in refused(["evaluate", "spirals", "--trust-code"])


@pytest.mark.parametrize("exported", [True, False])
def test_a_run_of_a_script_says_what_can_be_done_with_it(exported: bool, refused: Refused, trained: Path) -> None:
    run = trained / "runs" / "spirals"
    settings = json.loads((run / "run_config.json").read_text())
    (run / "run_config.json").write_text(json.dumps(settings | {"workload": "my_loop"}))
    if not exported:
        shutil.rmtree(run / "export")
    message = refused(["evaluate", "spirals"])
    assert "made by the script my_loop.py, which is not a workload" in message
    assert ("load runs/spirals/export" if exported else "call run.finish(export=model)") in message
