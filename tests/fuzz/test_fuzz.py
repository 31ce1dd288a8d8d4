"""A few damaged inputs for every parser; python -m tests.fuzz runs 100,000 each."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from ranks.errors import UserError
from tests.fuzz.__main__ import fuzz, main
from tests.fuzz.mutate import mutated
from tests.fuzz.parsers import PARSERS, Parser

INPUTS = 60


@pytest.mark.parametrize("name", PARSERS)
def test_damaged_inputs_are_accepted_or_refused(name: str) -> None:
    found = fuzz(PARSERS[name], INPUTS, seed=0)
    assert found.findings == {}, "\n".join(found.examples)
    assert found.accepted + found.refused == INPUTS


def test_the_examples_are_valid(tmp_path: Path) -> None:
    """Otherwise all damaged inputs would be refused for one and the same reason."""
    for parser in PARSERS.values():
        if parser.name != "dataset-manifest":  # sealed by a checksum
            parser.run(parser.examples()[0], tmp_path)


def test_other_exceptions_are_findings_and_repeat() -> None:
    def run(content: bytes, folder: Path) -> None:
        if b"\n" not in content:
            raise UserError("a text", "one line", "give two")
        content.decode("ascii")

    broken = Parser("broken", lambda: [b"a b\nc 12\n"], run)
    found = fuzz(broken, 300, seed=3)
    assert found.accepted
    assert found.refused
    (kind,) = found.findings
    assert kind.startswith("UnicodeDecodeError at test_fuzz.py")
    assert found.examples[0].startswith("python -m tests.fuzz broken --seed 3 --first ")
    number = int(found.examples[0].split("--first ")[1].split()[0])
    assert fuzz(broken, 1, seed=3, first=number).findings == {kind: 1}


def test_the_command_prints_one_line_for_each_parser(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--inputs", "20", "durations", "time-control"]) == 0
    printed = capsys.readouterr().out
    assert [line.split()[:2] for line in printed.splitlines()[1:3]] == [["durations", "20"], ["time-control", "20"]]
    assert printed.endswith("0 tracebacks\n")


def test_one_input_in_twenty_is_valid_and_all_depend_on_the_seed_alone() -> None:
    seeds = PARSERS["dimacs"].examples()
    first, again = ([mutated(random.Random(f"x/{n}"), seeds) for n in range(200)] for _ in range(2))
    assert first == again
    assert 3 <= sum(content in seeds for content in first) <= 40
