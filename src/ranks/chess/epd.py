"""Positions with operations: EPD (Edwards 1994, PGN standard 16.2)."""

from __future__ import annotations

import re
from typing import NamedTuple

_OPERATION = re.compile(r'(?:"[^"]*"|[^;"]|")+')
"""Up to the next semicolon that is not between quotation marks."""


class EpdLine(NamedTuple):
    """A line of EPD. The position is not checked."""

    fen: str
    """Six fields; the clocks are those of hmvc and fmvn, else `0 1`."""
    operations: dict[str, str]
    """Operation code -> operand, without quotation marks: {'bm': 'Nf3', 'id': 'test 1'}."""


def parse_epd(line: str) -> EpdLine | None:
    """Parse a line of EPD (four fields and operations), or a FEN (six fields); None for an empty line."""
    fields = line.split()
    if not fields:
        return None
    if len(fields) >= 6 and fields[4].isdecimal() and fields[5].rstrip(";").isdecimal():
        clocks, rest = [fields[4], fields[5].rstrip(";")], fields[6:]
    else:
        clocks, rest = [], fields[4:]
    operations: dict[str, str] = {}
    for operation in _OPERATION.findall(" ".join(rest)):
        code, _, operand = operation.strip().partition(" ")
        if code:
            operations[code] = operand.strip().strip('"')
    halfmove_clock, full_move = clocks or (operations.get("hmvc", "0"), operations.get("fmvn", "1"))
    return EpdLine(" ".join([*fields[:4], halfmove_clock, full_move]), operations)
