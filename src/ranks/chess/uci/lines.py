"""The structured lines of UCI, `option` and `info`: parsed and formatted."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ranks.chess.players.player import Info

if TYPE_CHECKING:
    from ranks.chess.board import Board

MAX_DIGITS = 15
"""Longer numbers are no numbers of this protocol, and would not fit into the search's 64 bits."""
OPTION_WORDS = ("name", "type", "default", "min", "max", "var")


def whole_number(text: str) -> int | None:
    """A whole number of at most MAX_DIGITS digits; None for any other text."""
    digits = text.removeprefix("-")
    return int(text) if digits.isascii() and digits.isdecimal() and len(digits) <= MAX_DIGITS else None


@dataclass(frozen=True)
class Option:
    """A UCI option of an engine."""

    name: str
    kind: str
    """check, spin, combo, button or string."""
    default: str = ""
    least: int | None = None
    most: int | None = None
    choices: tuple[str, ...] = ()

    def refusal(self, value: str) -> str | None:
        """Why a value is invalid, or None if it is valid."""
        if self.kind == "check" and value.lower() not in ("true", "false"):
            return f"'{value}' is neither true nor false"
        if self.kind == "spin":
            number = whole_number(value)
            if number is None:
                return f"'{value[:40]}' is not a number"
            if (self.least is not None and number < self.least) or (self.most is not None and number > self.most):
                return f"{value} is not from {self.least} to {self.most}"
        if self.kind == "combo" and value.lower() not in [choice.lower() for choice in self.choices]:
            return f"'{value}' is none of {', '.join(self.choices)}"
        return None

    def line(self) -> str:
        """The line that announces the option."""
        words = [f"option name {self.name} type {self.kind}"]
        if self.kind != "button":
            words.append(f"default {self.default}")
        if self.least is not None and self.most is not None:
            words.append(f"min {self.least} max {self.most}")
        return " ".join([*words, *(f"var {choice}" for choice in self.choices)])


def parse_option(line: str) -> Option | None:
    """Parse an `option` line; None if it is not one."""
    if not line.startswith("option "):
        return None
    fields: dict[str, list[str]] = {}
    choices: list[str] = []
    word: str | None = None
    for token in line.split()[1:]:
        if token in OPTION_WORDS:
            if word == "var":
                choices.append(" ".join(fields.pop("var")))
            word = token
            fields[word] = []
        elif word is not None:
            fields[word].append(token)
    if word == "var":
        choices.append(" ".join(fields.pop("var")))
    texts = {word: " ".join(tokens) for word, tokens in fields.items()}
    if not texts.get("name") or not texts.get("type"):
        return None
    least, most = whole_number(texts.get("min", "")), whole_number(texts.get("max", ""))
    return Option(texts["name"], texts["type"], texts.get("default", ""), least, most, tuple(choices))


def parse_info(text: str, board: Board | None) -> Info | None:
    """Parse the words after `info`; None if they hold no exact score.

    The principal variation is parsed only if `board`, the position of the search, is given, since
    it is the slow part."""
    tokens = text.split()
    numbers = {"depth": 0, "multipv": 1, "nodes": 0, "time": 0}
    scores: dict[str, int] = {}
    pv: tuple[int, ...] = ()
    position = 0
    while position < len(tokens):
        word = tokens[position]
        position += 1
        following = [*tokens[position : position + 2], "", ""]
        if word == "string":
            break
        if word in ("lowerbound", "upperbound"):
            return None
        if word == "pv":
            pv = _legal_line(tokens[position:], board) if board else ()
            break
        if word in numbers:
            number = whole_number(following[0])
            numbers[word] = numbers[word] if number is None else number
        elif word == "score" and (score := whole_number(following[1])) is not None:
            scores[following[0]] = score
    if not scores.keys() & {"cp", "mate"}:
        return None
    score_cp = None if "mate" in scores else scores["cp"]
    seconds = numbers["time"] / 1000
    return Info(numbers["depth"], score_cp, scores.get("mate"), numbers["nodes"], seconds, pv, numbers["multipv"])


def _legal_line(texts: list[str], board: Board) -> tuple[int, ...]:
    """The moves of a line, up to the first illegal one."""
    after = board.copy()
    line: list[int] = []
    with contextlib.suppress(ValueError):
        for text in texts:
            move = after.parse_uci(text)
            after.push(move)
            line.append(move)
    return tuple(line)


def format_info(info: Info, moves: list[str], *, with_multipv: bool) -> str:
    """Format an `info` line; moves: the principal variation in UCI notation."""
    words = [f"info depth {info.depth}"]
    if with_multipv:
        words.append(f"multipv {info.multipv}")
    if info.mate_in is not None:
        words.append(f"score mate {info.mate_in}")
    elif info.score_cp is not None:
        words.append(f"score cp {info.score_cp}")
    if info.is_lower_bound:
        words.append("lowerbound")
    words.append(_speed(info.nodes, info.elapsed_s))
    return " ".join([*words, "pv", *moves] if moves else words)


def format_progress(nodes: int, elapsed_s: float) -> str:
    """Format an `info` line without a score."""
    return f"info {_speed(nodes, elapsed_s)}"


def _speed(nodes: int, elapsed_s: float) -> str:
    return f"nodes {nodes} nps {round(nodes / max(elapsed_s, 1e-6))} time {round(1000 * elapsed_s)}"
