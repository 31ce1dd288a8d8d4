"""Split PGN text into games: tags, move texts, comments and result. Moves are not parsed here."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from ranks.bounded_file import DamagedGzip
from ranks.chess.pgn.game import TERMINATIONS

_TAG = re.compile(r'\[\s*(\w+)\s*"((?:[^"\\]|\\.)*)"\s*\]')
_LOOSE_TAG = re.compile(r'\[\s*(\w+)\s*"(.*)"\s*\]')
"""A tag whose value holds quotes that are not escaped by a backslash."""
_TOKEN = re.compile(
    r"\d+(?![-/\d])[.…]*|[.…!?]+|\$\d+|e\. ?p\.|"  # ignored: move numbers, glyphs, "e.p."
    r"(\{[^}]*\}?|;.*|[()*]|[^\s{}();.…$*]+)"
)

MOST_WORDS = 20_000
"""Moves that are kept of a game. The longest game possible has some 11,800 plies; text that is no PGN has no end."""


@dataclass
class RawGame:
    """The text of one game, as far as it has been read."""

    line: int = 0
    """The number of its first line, from 1; 0 if it has not started."""
    headers: dict[str, str] = field(default_factory=dict[str, str])
    words: list[str] = field(default_factory=list[str])
    """The moves of the main line as text."""
    comments: dict[int, str] = field(default_factory=dict[int, str])
    """By the number of moves before the comment."""
    depth: int = 0
    """The number of open variations."""
    open_comment: list[str] | None = None
    """The lines of a comment that is not closed yet."""
    result: str | None = None
    error: str | None = None
    """The first error, except in the moves."""

    @property
    def holds_a_game(self) -> bool:
        """Whether there is a game, and not only a comment between two games."""
        return bool(self.headers or self.words or self.depth or self.error)

    def ends_before(self, tag_line: str, *, after_blank: bool) -> bool:
        """Whether tags start the next game: after moves, or after a blank line and repeating a
        tag."""
        if self.words or self.comments or self.depth or self.open_comment is not None:
            return True
        return after_blank and any(name in self.headers for name, _ in _TAG.findall(tag_line))

    def add_tags(self, line: str) -> None:
        """Read the tags of a line, usually one."""
        tags: list[tuple[str, str]] = _TAG.findall(line)
        if not tags or _TAG.sub("", line).strip():
            loose = _LOOSE_TAG.fullmatch(line.strip())
            if loose is None:
                return self.fail(f"no tag can be read from {line.strip()}")
            tags = [(loose[1], loose[2])]
        self.headers |= {name: re.sub(r"\\(.)", r"\1", value) for name, value in tags}
        return None

    def add_comment(self, text: str) -> None:
        """Add a comment. Comments in variations are dropped."""
        words = text.split()
        if words and not self.depth:
            before = self.comments.get(len(self.words))
            self.comments[len(self.words)] = " ".join([before, *words] if before else words)

    def end_comment(self, line: str) -> str:
        """Continue the open comment.

        Returns the rest of the line after its end, '' if it stays open."""
        assert self.open_comment is not None
        inside, brace, rest = line.partition("}")
        self.open_comment.append(inside)
        if brace:
            self.add_comment(" ".join(self.open_comment))
            self.open_comment = None
        return rest

    def take(self, tokens: list[str]) -> list[str]:
        """Read moves, comments and variations.

        Returns the tokens after the result, [] if there is no result yet."""
        for index, token in enumerate(tokens):
            mark = token[:1]
            if not mark:
                continue
            if mark == "{":
                if token[-1] == "}":
                    self.add_comment(token[1:-1])
                else:
                    self.open_comment = [token[1:]]
            elif mark == ";":
                self.add_comment(token[1:].replace("}", ")"))
            elif mark == "(":
                self.depth += 1
            elif mark == ")":
                self.depth -= 1
                if self.depth < 0:
                    self.depth = 0
                    self.fail("a variation is closed that was never opened")
            elif self.depth:
                continue
            elif token in TERMINATIONS:
                self.result = token
                return tokens[index + 1 :]
            elif len(self.words) < MOST_WORDS:
                self.words.append(token)
            else:
                self.fail(f"no result after {MOST_WORDS:,} moves")
        return []

    def fail(self, reason: str) -> None:
        """Keep the first reason why the game cannot be read."""
        self.error = self.error or reason

    def close(self) -> RawGame:
        """End the game. Unclosed comments and variations and a missing result are errors."""
        if self.open_comment is not None:
            self.fail("a comment is never closed")
        elif self.depth:
            self.fail("a variation is never closed")
        elif self.result is None:
            self.fail("the moves end without a result")
        return self


def raw_games(lines: Iterable[str]) -> Iterator[RawGame]:
    """Split lines into games: after a result, and before a tag that must be of the next game. Raises DamagedGzip after
    the game in which a compressed file is damaged."""
    raw, after_blank = RawGame(), True
    try:
        for number, line in enumerate(lines, 1):
            if line.startswith("%"):
                continue
            if number == 1:
                line = line.removeprefix("\ufeff")
            was_blank, after_blank = after_blank, line.isspace()
            if raw.open_comment is not None and not (was_blank and line.startswith("[Event ")):
                line = raw.end_comment(line)
            elif line.lstrip().startswith("["):
                if raw.ends_before(line, after_blank=was_blank):
                    if raw.holds_a_game:
                        yield raw.close()
                    raw = RawGame()
                raw.line = raw.line or number
                raw.add_tags(line)
                continue
            tokens = _TOKEN.findall(line)
            while tokens:
                raw.line = raw.line or number
                tokens = raw.take(tokens)
                if raw.result:
                    yield raw.close()
                    raw = RawGame()
    except DamagedGzip as error:
        raw.fail(f"the compressed file is damaged: {error.found}")
        yield raw.close()
        raise
    if raw.holds_a_game:
        yield raw.close()
