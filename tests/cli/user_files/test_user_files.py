"""Mistakes in a user's own file are answered in three lines: what was asked, what was found, what to do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from ranks.cli.main import main
from tests.cli.conftest import HERE

Refused = Callable[[Sequence[str]], str]
USER_FILES: dict[str, tuple[str, str, str]] = {
    "not frozen": ("@dataclass(frozen=True)", "@dataclass", "Config is not frozen"),
    "no dataclass": ("@dataclass(frozen=True)", "", "Config is not a dataclass"),
    "no default": ("    iterations: int = free(600)", "    iterations: int", "fields without a default: iterations"),
    "no default after one": ("    hidden: int = 64", "    hidden: int", "non-default argument 'hidden'"),
    "mutable default": ("    hidden: int = 64", "    hidden: list[int] = []", "mutable default"),
    "missing function": ("def evaluate(", "def evaluation(", "it does not define evaluate"),
    "syntax": ("class Net(nn.Module):", "class Net(nn.Module)", "SyntaxError: expected ':', mine.py, line "),
    "two missing functions": ("def ", "def my_", "it does not define build, train, evaluate"),
}


@pytest.mark.parametrize("case", USER_FILES)
@pytest.mark.parametrize("flag", ["--print-config", "--help"])
def test_a_file_that_is_not_a_workload(
    case: str, flag: str, refused: Refused, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["new", "mine"]) == 0
    old, new, answer = USER_FILES[case]
    text = Path("mine.py").read_text()
    assert old in text
    Path("mine.py").write_text(text.replace(old, new))
    assert answer in refused(["train", "./mine.py", flag])


def test_a_loss_function_that_returns_a_mean(refused: Refused, trained: Path) -> None:
    path = trained / "spirals.py"
    path.write_text(path.read_text().replace("    return Loss(", "    return loss_B.mean()\n    return Loss("))
    message = refused(["train", "./spirals.py", "--ranks", "1", *HERE, "--gpus", "none", "--name", "new"])
    assert "it returned a Tensor" in message


METRICS = {
    "0-d": ("accuracy=loss_B.mean()", "found: a tensor of shape []\n   do: give one value per item, shape [256]"),
    "one too many": ("accuracy=loss_B[:, None] * loss_B", "found: a tensor of shape [256, 256]\n"),
    "a float": ("accuracy=float(loss_B.detach().mean())", "found: a float\n"),
    "a pair that is not summed": ("accuracy=(loss_B, 256)", "found: a pair with tensors of shape [256]\n"),
}


@pytest.mark.parametrize("case", METRICS)
def test_a_metric_of_the_wrong_shape(case: str, refused: Refused, trained: Path) -> None:
    written, answer = METRICS[case]
    path = trained / "spirals.py"
    right = "accuracy=(logits_BC.argmax(1) == class_B).to(loss_B.dtype)"
    assert right in path.read_text()
    path.write_text(path.read_text().replace(right, written))
    message = refused(["train", "./spirals.py", "--ranks", "1", *HERE, "--gpus", "none", "--name", "new"])
    assert "asked: the metric accuracy of a Loss over 256 items\n" in message
    assert answer in message


@pytest.mark.parametrize("second_file", [False, True], ids=["in it", "in a file that it imports"])
def test_an_exception_while_a_file_is_imported(
    second_file: bool, refused: Refused, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """File, line and text of the innermost line of the user; no traceback."""
    monkeypatch.chdir(tmp_path)
    name = f"broken_{second_file}"
    assert main(["new", name]) == 0
    written = Path(f"{name}.py").read_text()
    Path("helper_of_the_broken_one.py").write_text("\nratio = 1 / 0\n")
    line = "import helper_of_the_broken_one" if second_file else "ratio = 1 / 0"
    Path(f"{name}.py").write_text(written + line + "\n")
    message = refused(["train", f"./{name}.py", "--ranks", "1", *HERE, "--gpus", "none"])
    at = "helper_of_the_broken_one.py, line 2" if second_file else f"{name}.py, line {len(written.splitlines()) + 1}"
    assert f"found: ZeroDivisionError: division by zero, {at}: ratio = 1 / 0\n" in message
    assert f"python {name}.py shows the whole traceback" in message
    assert not Path("runs").exists()
