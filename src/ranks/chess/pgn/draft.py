"""PGN cut into games, line by line, before anything is known about their moves."""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from ranks.chess.pgn.game import TERMINATIONS

_TAG = re.compile(r'\[\s*(\w+)\s*"((?:[^"\\]|\\.)*)"\s*\]')
_LOOSE_TAG = re.compile(r'\[\s*(\w+)\s*"(.*)"\s*\]')
"""A tag whose value holds quotes without a backslash before them."""
_TOKEN = re.compile(
    r"\d+(?![-/\d])[.…]*|[.…!?]+|\$\d+|e\. ?p\.|"  # passed over: move numbers, glyphs, a capture's "en passant"
    r"(\{[^}]*\}?|;.*|[()*]|[^\s{}();.…$*]+)"
)


@dataclass
class Draft:
    """What has been read of one game."""

    line: int = 0
    """Where it begins, from 1 on; 0: not yet."""
    headers: dict[str, str] = field(default_factory=dict[str, str])
    words: list[str] = field(default_factory=list[str])
    """The moves of the main line as text."""
    comments: dict[int, str] = field(default_factory=dict[int, str])
    """By the number of moves before them."""
    depth: int = 0
    """How many variations are open."""
    open_comment: list[str] | None = None
    """The lines so far of a comment that is not yet closed."""
    result: str | None = None
    damage: str | None = None
    """The first thing that is wrong, moves apart."""

    @property
    def holds_a_game(self) -> bool:
        """Whether there is more than a comment between two games."""
        return bool(self.headers or self.words or self.depth or self.damage)

    def ends_before(self, tag_line: str, *, behind_blank: bool) -> bool:
        """Whether a line of tags belongs to the next game: it stands behind moves, or behind a blank and says again
        what is said already."""
        if self.words or self.comments or self.depth or self.open_comment is not None:
            return True
        return behind_blank and any(name in self.headers for name, _ in _TAG.findall(tag_line))

    def add_tags(self, line: str) -> None:
        """The tags of a line, mostly one."""
        tags: list[tuple[str, str]] = _TAG.findall(line)
        if not tags or _TAG.sub("", line).strip():
            loose = _LOOSE_TAG.fullmatch(line.strip())
            if loose is None:
                return self.damaged(f"no tag can be read from {line.strip()}")
            tags = [(loose[1], loose[2])]
        self.headers |= {name: re.sub(r"\\(.)", r"\1", value) for name, value in tags}
        return None

    def add_comment(self, text: str) -> None:
        """A comment; those in variations are dropped."""
        words = text.split()
        if words and not self.depth:
            before = self.comments.get(len(self.words))
            self.comments[len(self.words)] = " ".join([before, *words] if before else words)

    def end_comment(self, line: str) -> str:
        """Go on with the open comment; returns what stands behind it, '' where it stays open."""
        assert self.open_comment is not None
        inside, brace, behind = line.partition("}")
        self.open_comment.append(inside)
        if brace:
            self.add_comment(" ".join(self.open_comment))
            self.open_comment = None
        return behind

    def take(self, tokens: list[str]) -> list[str]:
        """Read moves, comments and variations; returns what stands behind the result, [] where it is not reached."""
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
                    self.damaged("a variation ends that has not begun")
            elif self.depth:
                continue
            elif token in TERMINATIONS:
                self.result = token
                return tokens[index + 1 :]
            else:
                self.words.append(token)
        return []

    def damaged(self, reason: str) -> None:
        """Keep the first reason why this game cannot be read."""
        self.damage = self.damage or reason

    def close(self) -> Draft:
        """The draft, in which nothing may be open now."""
        if self.open_comment is not None:
            self.damaged("a comment is never closed")
        elif self.depth:
            self.damaged("a variation is never closed")
        elif self.result is None:
            self.damaged("the moves end without a result")
        return self


def drafts(lines: Iterable[str]) -> Iterator[Draft]:
    """Cut lines into games: behind a result, and before a tag that cannot belong to the same game."""
    draft, behind_blank = Draft(), True
    try:
        for number, line in enumerate(lines, 1):
            if line.startswith("%"):
                continue
            if number == 1:
                line = line.removeprefix("\ufeff")
            was_blank, behind_blank = behind_blank, line.isspace()
            if draft.open_comment is not None and not (was_blank and line.startswith("[Event ")):
                line = draft.end_comment(line)
            elif line.lstrip().startswith("["):
                if draft.ends_before(line, behind_blank=was_blank):
                    if draft.holds_a_game:
                        yield draft.close()
                    draft = Draft()
                draft.line = draft.line or number
                draft.add_tags(line)
                continue
            tokens = _TOKEN.findall(line)
            while tokens:
                draft.line = draft.line or number
                tokens = draft.take(tokens)
                if draft.result:
                    yield draft.close()
                    draft = Draft()
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        draft.damaged(f"the compressed file is damaged: {error}")
    if draft.holds_a_game:
        yield draft.close()
