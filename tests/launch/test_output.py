"""Which output of a rank reaches the terminal, and when."""

from __future__ import annotations

import io
import os
import re
from collections.abc import Iterator

import pytest

from ranks.launch import output
from ranks.launch.output import HELD_S, Output


class Pipe:
    """An Output whose rank is this test."""

    def __init__(self) -> None:
        reader, self.writer = os.pipe()
        self.shown = ""
        self.log = io.BytesIO()
        self.output = Output(0, "err", reader, self.log, self._show)

    def _show(self, rank: int, channel: str, text: str) -> None:
        self.shown += text

    def write(self, text: str, now_s: float = 0.0) -> None:
        os.write(self.writer, text.encode())
        assert self.output.pump(now_s)


@pytest.fixture
def pipe() -> Iterator[Pipe]:
    pipe = Pipe()
    yield pipe
    os.close(pipe.writer)


TRACEBACK = "Traceback (most recent call last):\n  File 'x'\nValueError: x\n"


def test_whole_lines_pass_at_once_and_a_part_after_two_ticks(pipe: Pipe) -> None:
    pipe.write("one\ntw")
    assert pipe.shown == "one\n"
    pipe.output.tick(1.0)
    assert pipe.shown == "one\n", "the line may end at once"
    pipe.write("o")
    pipe.output.tick(2.0)
    assert pipe.shown == "one\ntw"
    pipe.output.tick(3.0)
    assert pipe.shown == "one\ntwo"
    pipe.output.close()
    assert pipe.log.getvalue() == b"one\ntwo"


def test_a_line_that_ends_between_two_ticks_is_not_torn(pipe: Pipe) -> None:
    pipe.output.tick(1.0)
    for part in ("first", "second"):
        pipe.write('{"a": ')
        pipe.output.tick(2.0)
        pipe.write(f'"{part}"}}\n')
        assert pipe.shown.endswith(f'{{"a": "{part}"}}\n')
        assert not pipe.shown.endswith('{"a": ')
    pipe.output.close()


def test_a_character_of_several_bytes_is_not_torn(pipe: Pipe) -> None:
    first, second = "é".encode()
    for part in (first, second):
        os.write(pipe.writer, bytes([part]))
        assert pipe.output.pump(0.0)
        for now_s in (1.0, 2.0):
            pipe.output.tick(now_s)
    assert pipe.shown == "é"
    pipe.output.close()


@pytest.mark.parametrize("prefix", ["", "[rank0]: "])
def test_the_traceback_of_a_rank_that_ends_is_not_shown(pipe: Pipe, prefix: str) -> None:
    pipe.write("before\n" + prefix + TRACEBACK[:20])
    pipe.write(TRACEBACK[20:])
    pipe.output.close("")
    assert pipe.shown == "before\n"
    assert pipe.log.getvalue().endswith(TRACEBACK.encode())
    assert TRACEBACK.encode() in pipe.output.tail


def test_the_traceback_of_a_rank_that_lives_on_is_shown(pipe: Pipe) -> None:
    pipe.write(TRACEBACK, now_s=0.0)
    pipe.output.tick(HELD_S / 2)
    assert pipe.shown == ""
    pipe.output.tick(HELD_S * 2)
    assert pipe.shown == TRACEBACK
    pipe.write("after\n")
    pipe.output.close()
    assert pipe.shown == TRACEBACK + "after\n"


def test_only_the_reported_traceback_is_left_out(pipe: Pipe) -> None:
    handled = TRACEBACK.replace("ValueError", "KeyError")
    pipe.write(handled + "a last line\n" + TRACEBACK + "after\n")
    pipe.output.close(TRACEBACK)
    assert pipe.shown == handled + "a last line\nafter\n"


def test_a_traceback_that_was_printed_in_another_form_is_left_out(pipe: Pipe) -> None:
    pipe.write("before\n" + TRACEBACK)
    pipe.output.close(TRACEBACK.upper())
    assert pipe.shown == "before\n"


class CountingPattern:
    """A pattern that counts the bytes that it searches."""

    def __init__(self, pattern: re.Pattern[bytes]) -> None:
        self.pattern, self.searched = pattern, 0

    def search(self, text: bytes, start: int = 0) -> re.Match[bytes] | None:
        self.searched += len(text) - start
        return self.pattern.search(text, start)


def test_a_line_of_8_mb_is_searched_once(pipe: Pipe, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not again from its start for each block that arrives, which takes minutes."""
    pattern = CountingPattern(output.TRACEBACK)
    monkeypatch.setattr(output, "TRACEBACK", pattern)
    block = "x" * 50_000
    for _ in range(160):
        pipe.write(block)
    assert pipe.shown == ""
    pipe.write("\n" + TRACEBACK)
    assert pipe.shown == block * 160 + "\n"
    assert len(pipe.shown) <= pattern.searched <= 2 * len(pipe.shown)
