"""Flags that people bring from other tools are answered with flags that the workload has."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from ranks.cli.flags.advice import RENAMED_FLAGS, TRAIN_ADVICE
from ranks.cli.flags.parse import unknown_argument
from ranks.cli.main import main

Refused = Callable[[Sequence[str]], str]
FLAG = re.compile(r"--[a-z][a-z.-]*[a-z]")


@pytest.mark.parametrize(
    "workload", ["graph-coloring", "stock-trading", "./supervised.py", "./on_policy.py", "./self_play.py"]
)
def test_an_answer_names_only_flags_that_the_workload_has(
    workload: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for shape in ("supervised", "on-policy", "self-play"):
        assert main(["new", shape, "--shape", shape]) == 0
    with pytest.raises(SystemExit):
        main(["train", workload, "--help"])
    existing = set(FLAG.findall(capsys.readouterr().out))
    assert {"--iterations", "--optim.lr"} < existing
    for flag in sorted({*TRAIN_ADVICE, *RENAMED_FLAGS} - existing):
        error = unknown_argument(flag, sorted(existing), "ranks train", TRAIN_ADVICE)
        assert set(FLAG.findall(error.do)) <= existing | {"--help"}, str(error)


LEARNING_RATE = "give --optim.lr X"
ANSWERS = {
    "--optim.learning-rate": (LEARNING_RATE, LEARNING_RATE),
    "--ppo.learning-rate": (LEARNING_RATE, LEARNING_RATE),
    "--total-timesteps": ("give --iterations N\n", "give --iterations N: the environment steps"),
    "--batch-size": ("give --global-batch N", "give --ppo.minibatches N"),
    "--n-epochs": ("give --iterations N", "give --ppo.epochs N or --iterations N"),
}


@pytest.mark.parametrize("flag", ANSWERS)
def test_flags_of_other_tools_are_answered_with_those_of_the_workload(flag: str, refused: Refused) -> None:
    for workload, answer in zip(("graph-coloring", "stock-trading"), ANSWERS[flag], strict=True):
        assert answer in refused(["train", workload, flag, "5"])
