"""Following a file that grows and is cut back."""

from __future__ import annotations

import json
from pathlib import Path

from ranks.watch.tail import News, Tail


def rows(*numbers: int) -> str:
    return "".join(json.dumps({"iteration": n}) + "\n" for n in numbers)


def numbers(news: News) -> list[int]:
    return [row["iteration"] for row in news.rows]


def test_only_whole_rows_and_each_once(tmp_path: Path) -> None:
    path = tmp_path / "m.jsonl"
    tail = Tail(path)
    assert tail.read() == News([])
    path.write_text(rows(0, 1) + '{"iterat')
    assert numbers(tail.read()) == [0, 1]
    path.write_text(rows(0, 1, 2))
    assert tail.read() == News([{"iteration": 2}])
    assert tail.read() == News([])


def test_a_cut_is_seen_by_length_and_behind_new_rows_too(tmp_path: Path) -> None:
    path = tmp_path / "m.jsonl"
    tail = Tail(path)
    path.write_text(rows(0, 1, 2, 3))
    tail.read()
    path.write_text(rows(0, 1))
    news = tail.read()
    assert (news.cut, numbers(news)) == (True, [0, 1])
    path.write_text(rows(0, 5, 6, 7, 8))  # cut back to one row and grown beyond the old length between two looks
    news = tail.read()
    assert (news.cut, numbers(news)) == (True, [0, 5, 6, 7, 8])
    path.write_text("")
    assert tail.read() == News([], cut=True)


def test_what_is_no_row_is_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "m.jsonl"
    path.write_text("no json\n[1]\n\n" + rows(4))
    assert numbers(Tail(path).read()) == [4]
