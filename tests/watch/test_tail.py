"""Following a file that grows and is truncated."""

from __future__ import annotations

import json
import os
from pathlib import Path

from ranks.watch.tail import READ_BYTES, JsonlTail, NewRows


def rows(*numbers: int) -> str:
    return "".join(json.dumps({"iteration": n}) + "\n" for n in numbers)


def numbers(new: NewRows) -> list[int]:
    return [row["iteration"] for row in new.rows]


def test_only_whole_rows_and_each_once(tmp_path: Path) -> None:
    path = tmp_path / "m.jsonl"
    tail = JsonlTail(path)
    assert tail.read() == NewRows([])
    path.write_text(rows(0, 1) + '{"iterat')
    assert numbers(tail.read()) == [0, 1]
    path.write_text(rows(0, 1, 2))
    assert tail.read() == NewRows([{"iteration": 2}])
    assert tail.read() == NewRows([])


def test_a_truncation_is_noticed_also_if_the_file_has_grown_since(tmp_path: Path) -> None:
    path = tmp_path / "m.jsonl"
    tail = JsonlTail(path)
    path.write_text(rows(0, 1, 2, 3))
    tail.read()
    path.write_text(rows(0, 1))
    new = tail.read()
    assert (new.truncated, numbers(new)) == (True, [0, 1])
    path.write_text(rows(0, 5, 6, 7, 8))  # truncated to one row, and longer than before at the next read
    new = tail.read()
    assert (new.truncated, numbers(new)) == (True, [0, 5, 6, 7, 8])
    path.write_text("")
    assert tail.read() == NewRows([], truncated=True)


def test_lines_that_are_not_rows_are_skipped(tmp_path: Path) -> None:
    path = tmp_path / "m.jsonl"
    path.write_text("no json\n[1]\n\n" + rows(4))
    assert numbers(JsonlTail(path).read()) == [4]


def test_a_line_without_end_does_not_hold_up_the_rows_after_it(tmp_path: Path) -> None:
    path = tmp_path / "m.jsonl"
    path.write_bytes(rows(0).encode())
    tail = JsonlTail(path)
    assert numbers(tail.read()) == [0]
    with path.open("ab") as file:
        file.write(b"x" * (READ_BYTES + 10) + b"\n" + rows(1, 2).encode())
    assert numbers(tail.read()) + numbers(tail.read()) == [1, 2]


def test_a_fifo_does_not_block(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "m.jsonl")
    assert JsonlTail(tmp_path / "m.jsonl").read() == NewRows([])
