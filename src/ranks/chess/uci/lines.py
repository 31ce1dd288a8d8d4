"""The lines of the UCI protocol that carry more than one word, read and written."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ranks.chess.players.player import Info

if TYPE_CHECKING:
    from ranks.chess.board import Board

OPTION_WORDS = ("name", "type", "default", "min", "max", "var")


@dataclass(frozen=True)
class Option:
    """Something that can be set in a program."""

    name: str
    kind: str
    """check, spin, combo, button or string."""
    default: str = ""
    least: int | None = None
    most: int | None = None
    choices: tuple[str, ...] = ()

    def refusal(self, value: str) -> str | None:
        """What is wrong with a value, or None."""
        if self.kind == "check" and value.lower() not in ("true", "false"):
            return f"'{value}' is neither true nor false"
        if self.kind == "spin":
            try:
                number = int(value)
            except ValueError:
                return f"'{value}' is not a number"
            if (self.least is not None and number < self.least) or (self.most is not None and number > self.most):
                return f"{value} is not from {self.least} to {self.most}"
        if self.kind == "combo" and value.lower() not in [choice.lower() for choice in self.choices]:
            return f"'{value}' is none of {', '.join(self.choices)}"
        return None

    def line(self) -> str:
        """How it is announced."""
        words = [f"option name {self.name} type {self.kind}"]
        if self.kind != "button":
            words.append(f"default {self.default}")
        if self.least is not None and self.most is not None:
            words.append(f"min {self.least} max {self.most}")
        return " ".join([*words, *(f"var {choice}" for choice in self.choices)])


def parse_option(line: str) -> Option | None:
    """The option that a line announces, or None."""
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
    bounds: dict[str, int | None] = {"min": None, "max": None}
    for word in bounds:
        with contextlib.suppress(KeyError, ValueError):
            bounds[word] = int(texts[word])
    return Option(texts["name"], texts["type"], texts.get("default", ""), bounds["min"], bounds["max"], tuple(choices))


def parse_info(text: str, board: Board | None) -> Info | None:
    """What stands behind `info`, or None where no exact score does.

    The line of moves is read only with the board where the search began: that takes longer than all the rest."""
    tokens = text.split()
    numbers = {"depth": 0, "multipv": 1, "nodes": 0, "time": 0}
    scores: dict[str, int] = {}
    pv: tuple[int, ...] = ()
    position = 0
    while position < len(tokens):
        word, rest = tokens[position], tokens[position + 1 :]
        position += 1
        if word == "string":
            break
        if word in ("lowerbound", "upperbound"):
            return None
        if word == "pv":
            pv = _legal_line(rest, board) if board else ()
            break
        with contextlib.suppress(ValueError, IndexError):
            if word in numbers:
                numbers[word] = int(rest[0])
            elif word == "score":
                scores[rest[0]] = int(rest[1])
    if not scores.keys() & {"cp", "mate"}:
        return None
    score_cp = None if "mate" in scores else scores["cp"]
    seconds = numbers["time"] / 1000
    return Info(numbers["depth"], score_cp, scores.get("mate"), numbers["nodes"], seconds, pv, numbers["multipv"])


def _legal_line(texts: list[str], board: Board) -> tuple[int, ...]:
    """Moves as far as they are legal one after the other."""
    after = board.copy()
    line: list[int] = []
    with contextlib.suppress(ValueError):
        for text in texts:
            move = after.parse_move(text)
            after.push(move)
            line.append(move)
    return tuple(line)


def format_info(info: Info, moves: list[str], *, several_lines: bool) -> str:
    """An `info` line; moves: the line in the words of UCI."""
    words = [f"info depth {info.depth}"]
    if several_lines:
        words.append(f"multipv {info.line}")
    if info.mate_in is not None:
        words.append(f"score mate {info.mate_in}")
    elif info.score_cp is not None:
        words.append(f"score cp {info.score_cp}")
    milliseconds = round(1000 * info.elapsed_s)
    nodes_per_second = round(info.nodes / max(info.elapsed_s, 1e-6))
    words.append(f"nodes {info.nodes} nps {nodes_per_second} time {milliseconds}")
    return " ".join([*words, "pv", *moves] if moves else words)
