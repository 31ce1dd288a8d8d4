"""Curves in one line of text."""

from __future__ import annotations

import pytest

from ranks.watch.sparkline import ASCII, BLOCKS, levels_of, sparkline


def test_the_lowest_and_the_highest_value_get_the_first_and_the_last_level() -> None:
    assert sparkline([0.0, 7.0], 8) == "▁█"
    assert sparkline(list(range(8)), 8) == BLOCKS
    assert sparkline([3.0, -4.0, 3.0], 8) == "█▁█"
    assert sparkline([1.0, 0.0], 8, ASCII) == "#_"
    assert sparkline([5.0, 5.0, 5.0], 8) == "▅▅▅"
    assert sparkline([], 8) == ""


def test_neighbours_share_a_character_where_there_are_more_values_than_room() -> None:
    assert sparkline([0.0, 2.0, 4.0, 4.0], 2) == "▁█"
    assert len(sparkline([float(n) for n in range(500)], 32)) == 32
    assert sparkline([-1e308, 1e308], 8) == "▁█", "no overflow"
    assert sparkline([1e308] * 5, 2) == "▅▅"


@pytest.mark.parametrize(("encoding", "levels"), [("utf-8", BLOCKS), ("ascii", ASCII), (None, ASCII), ("x", ASCII)])
def test_output_that_has_no_blocks_gets_other_characters(encoding: str | None, levels: str) -> None:
    assert levels_of(encoding) == levels
    assert len(levels) == 8
