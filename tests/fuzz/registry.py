"""The table of parsers that are fuzzed, and what feeds files to them."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ranks.errors import UserError

Examples = Callable[[], list[bytes]]
Run = Callable[[bytes, Path], None]


@dataclass(frozen=True)
class Parser:
    """A parser, and what feeds an input to it. `refuses`: the errors that it declares."""

    name: str
    examples: Examples
    run: Run
    refuses: tuple[type[BaseException], ...] = (UserError,)


PARSERS: dict[str, Parser] = {}


def parser(name: str, examples: Examples, *refuses: type[BaseException]) -> Callable[[Run], Run]:
    """Add a parser to PARSERS."""

    def add(run: Run) -> Run:
        PARSERS[name] = Parser(name, examples, run, refuses or (UserError,))
        return run

    return add


def written(folder: Path, name: str, content: bytes) -> Path:
    """A file with this content."""
    path = folder / name
    path.write_bytes(content)
    return path


def packed_or_plain(examples: list[bytes]) -> list[bytes]:
    """Examples for `packed`: in plain ones the text is damaged, in packed ones the gzip file."""
    return [*examples, *(gzip.compress(text, mtime=0) for text in examples)]


def packed(content: bytes) -> bytes:
    """A damaged gzip file as it is, anything else packed."""
    return content if content[:1] == b"\x1f" else gzip.compress(content, mtime=0)


def texts(*examples: str) -> Examples:
    return lambda: [example.encode() for example in examples]
