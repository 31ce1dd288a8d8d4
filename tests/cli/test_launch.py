"""Where the flags of `ranks launch` end and those of the script begin."""

from __future__ import annotations

import pytest

from ranks.cli.launch import before_script
from ranks.cli.main import main


@pytest.mark.parametrize(
    ("argv", "ours"),
    [
        (["train.py", "--ranks", "2"], 0),
        (["--ranks", "2", "train.py", "--lr", "3"], 2),
        (["--ranks=2", "--gpus", "none", "train.py"], 3),
        (["--help"], 1),
        (["--ranks"], 1),
    ],
)
def test_the_script_is_the_first_word_that_is_not_a_flag(argv: list[str], ours: int) -> None:
    assert before_script(argv) == ours


def test_the_script_gets_its_own_flags(tmp_path: object, monkeypatch: pytest.MonkeyPatch) -> None:
    from ranks.launch import foreign

    seen: list[object] = []
    monkeypatch.setattr(foreign, "launch_script", lambda *args, **kwargs: seen.append((args, kwargs)) or 7)
    assert main(["launch", "--ranks", "2", "train.py", "--ranks", "5"]) == 7
    ((script, rest), flags) = seen[0]  # type: ignore[misc]
    assert (str(script), rest, flags["ranks"]) == ("train.py", ["--ranks", "5"], 2)
