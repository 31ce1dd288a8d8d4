"""Random damage of example inputs: the same for the same random numbers."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence

WORD = re.compile(rb"-?\d+|[A-Za-z]+|[^\sA-Za-z0-9]")
ODD_WORDS = (
    *(b"0", b"-1", b"1", b"9223372036854775807", b"-9223372036854775809", b"1e999", b"nan", b"-inf", b"1_0", b"0x1"),
    *(b"9" * 30, b"9" * 5000, b"\xd9\xa3", "\u0663".encode(), b"\x00", b"\xff\xfe", b"\xef\xbb\xbf", b"", b"%s", b"{}"),
    *(b"null", b"true", b'"', b"'", b"[", b"{", b"}", b"(", b")", b"<a>", b"\\", b"\r", b"\n\n", b"\x1a", b"x" * 300),
    *(b"[" * 2000, b'{"a":' * 2000, b"(" * 2000),
)


def mutated(rng: random.Random, seeds: Sequence[bytes]) -> bytes:
    """An example with up to six random faults; one in twenty stays as it is."""
    content = rng.choice(seeds)
    if rng.random() < 0.05:
        return content
    for _ in range(rng.choice((1, 1, 1, 2, 3, 6))):
        content = rng.choice(FAULTS)(rng, content, seeds)
    return content


def flip(rng: random.Random, content: bytes, seeds: Sequence[bytes]) -> bytes:
    """Another byte at one place."""
    at = rng.randrange(len(content) + 1)
    return content[:at] + bytes([rng.randrange(256)]) + content[at + 1 :]


def cut(rng: random.Random, content: bytes, seeds: Sequence[bytes]) -> bytes:
    """Without a part, often the end."""
    first, last = sorted(rng.randrange(len(content) + 1) for _ in range(2))
    return content[:first] + (b"" if rng.random() < 0.5 else content[last:])


def replace_word(rng: random.Random, content: bytes, seeds: Sequence[bytes]) -> bytes:
    """An odd word, or a word of an example, in place of a word."""
    words = list(WORD.finditer(content))
    if not words:
        return content
    old = rng.choice(words)
    others = WORD.findall(rng.choice(seeds))
    new = rng.choice(ODD_WORDS) if rng.random() < 0.5 or not others else rng.choice(others)
    return content[: old.start()] + new + content[old.end() :]


def insert(rng: random.Random, content: bytes, seeds: Sequence[bytes]) -> bytes:
    """An odd word between two bytes."""
    at = rng.randrange(len(content) + 1)
    return content[:at] + rng.choice((b"", b" ")) + rng.choice(ODD_WORDS) + content[at:]


def change_lines(rng: random.Random, content: bytes, seeds: Sequence[bytes]) -> bytes:
    """A line left out, repeated, moved, or taken from an example."""
    lines = content.split(b"\n")
    at = rng.randrange(len(lines))
    line = lines.pop(at)
    new = rng.choice(([], [line, line], [rng.choice(rng.choice(seeds).split(b"\n"))]))
    place = rng.choice((at, rng.randrange(len(lines) + 1)))
    return b"\n".join([*lines[:place], *new, *lines[place:]])


def join(rng: random.Random, content: bytes, seeds: Sequence[bytes]) -> bytes:
    """The start of one example and the end of another."""
    other = rng.choice(seeds)
    return content[: rng.randrange(len(content) + 1)] + other[rng.randrange(len(other) + 1) :]


FAULTS: tuple[Callable[[random.Random, bytes, Sequence[bytes]], bytes], ...] = (
    flip,
    cut,
    replace_word,
    replace_word,
    insert,
    change_lines,
    join,
)
