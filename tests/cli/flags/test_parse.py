"""Flags from signatures: commas, none, one-letter flags, switches."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import pytest

from ranks.cli.flags.parse import Positional, Switch, call, flags_of, parse
from ranks.errors import UserError


def solve(
    file: str, /, *, k: int | None = None, no_net: bool = False, sizes: tuple[int, ...] = (1, 2)
) -> tuple[object, ...]:
    """A command as a workload writes it.

    Args:
        file: The graph.
        k: How many colours.
    """
    return file, k, no_net, sizes


@pytest.mark.parametrize(
    ("argv", "result"),
    [
        (["a.col"], ("a.col", None, False, (1, 2))),
        (["-", "-k", "3"], ("-", 3, False, (1, 2))),
        (["--k", "3", "a.col", "--no-net"], ("a.col", 3, True, (1, 2))),
        (["a.col", "-k", "none", "--sizes", "4,5,6"], ("a.col", None, False, (4, 5, 6))),
    ],
)
def test_a_function_is_called_with_what_was_typed(argv: list[str], result: tuple[object, ...]) -> None:
    assert call(solve, argv, prog="ranks w solve") == result


@pytest.mark.parametrize(
    ("argv", "answer"),
    [
        ([], "no value for FILE"),
        (["a.col", "-k", "many"], "'many' is not a whole number"),
        (["a.col", "--sizes", "1,2", "--sizes", "1,x"], "asked: --sizes 1,x"),
        (["a.col", "--no-nte"], "did you mean --no-net?"),
        (["a.col", "b.col"], "no further argument"),
    ],
)
def test_wrong_arguments_are_refused(argv: list[str], answer: str) -> None:
    with pytest.raises(UserError) as refusal:
        call(solve, argv, prog="ranks w solve")
    assert answer in str(refusal.value)


def test_an_exit_of_the_command_is_passed_on() -> None:
    def fails(*, x: int = 1) -> None:
        raise SystemExit(7)

    with pytest.raises(SystemExit) as end:
        call(fails, [], prog="ranks fails")
    assert end.value.code == 7


@dataclass(frozen=True)
class Flags:
    """A page."""

    run: Positional[str]
    """Which."""
    place: Path = Path("a")
    pair: tuple[float, float] = (0.5, 1.0)
    exact: bool = False
    once: Annotated[bool, Switch] = False


def test_flags_fill_a_dataclass() -> None:
    assert parse(Flags, ["r", "--place", "b", "--pair", "1,2"], prog="p") == Flags("r", Path("b"), (1.0, 2.0))
    assert parse(Flags, ["r", "--exact", "--no-exact"], prog="p", pairs=True) == Flags("r")


@dataclass(frozen=True)
class Ppo:
    clip_range: float = 0.2
    gamma: float = 0.99


@dataclass(frozen=True)
class OnPolicy:
    ppo: Ppo = Ppo()


@pytest.mark.parametrize(
    ("old", "answer"),
    [
        ("--ppo.clip=0.1", "renamed to --ppo.clip-range"),
        ("--ppo.discount", "give --ppo.gamma"),
        ("--ppo.value_weight", "no such flag"),  # the new flag does not exist here
    ],
)
def test_an_old_flag_is_answered_with_its_new_name(old: str, answer: str) -> None:
    with pytest.raises(UserError) as refusal:
        parse(OnPolicy, [old, "1"], prog="p")
    assert answer in str(refusal.value)


def test_every_flag_is_listed() -> None:
    assert flags_of(Flags, pairs=True) == ["-h", "--help", "--place", "--pair", "--exact", "--no-exact", "--once"]
    assert "--no-exact" not in flags_of(Flags)
