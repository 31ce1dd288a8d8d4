"""Player specs, `NAME[:ARGUMENT][?Option=Value&...]` or `NAME@NUMBER`: parsing them and creating their
players.

This room knows no players. The caller passes the table, which `ranks.chess.commands.players`
assembles.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING
from urllib.parse import unquote

from ranks.errors import UserError

if TYPE_CHECKING:
    from ranks.chess.players.player import Player


@dataclass(frozen=True)
class PlayerSpec:
    """A parsed player spec, e.g. alphabeta:3 or uci:stockfish?Threads=1."""

    text: str
    """The spec as it was given."""
    name: str
    argument: str | None
    """What follows the colon, or all from an @ on that comes before any colon."""
    options: Mapping[str, str]
    factory: str
    """As "module:function". The function is called with (text, argument, options) and returns the
    player."""

    @classmethod
    def parse(cls, text: str, players: Mapping[str, str], usage: str) -> PlayerSpec:
        """Parse a spec.

        `players` maps names to factories. Raises UserError for unknown names and unreadable
        options."""
        head, _, query = text.strip().partition("?")
        name = name_of(text)
        argument = head[len(name) :]
        if name not in players:
            raise UserError(f"the player '{text}'", f"there is no player '{name}'", nearest(name, players, usage))
        options: dict[str, str] = {}
        for part in query.split("&") if query else ():
            option, equals, value = part.partition("=")
            if not option or not equals:
                found = f"'{part}' is not an option with a value"
                raise UserError(f"the player '{text}'", found, f"write {name}...?Option=Value&Option=Value")
            options[unquote(option)] = unquote(value)
        return cls(text, name, argument.removeprefix(":") if argument else None, options, players[name])

    def make(self) -> Player:
        """Create the player. Raises UserError for a wrong argument or option."""
        module, function = self.factory.split(":")
        factory: Callable[[str, str | None, Mapping[str, str]], Player] = getattr(import_module(module), function)
        return factory(self.text, self.argument, self.options)


def name_of(text: str) -> str:
    """The name in a spec: all before a colon, an @ or a question mark."""
    return re.split("[:@?]", text.strip(), maxsplit=1)[0]


def nearest(given: str, known: Sequence[str] | Mapping[str, str], otherwise: str) -> str:
    """'did you mean ...?' with the known word closest to the given one, else `otherwise`."""
    by_lower_case = {word.lower(): word for word in known}
    close = difflib.get_close_matches(given.lower(), by_lower_case, n=1, cutoff=0.5)
    return f"did you mean {by_lower_case[close[0]]}? ({otherwise})" if close else otherwise


def number(spec: str, argument: str | None, least: int, most: int, usage: str) -> int:
    """The number after a player's name. Raises UserError if it is missing or out of range."""
    asked = f"the player '{spec}'"
    if argument is None:
        raise UserError(asked, "a number is missing", f"write {usage}")
    is_number = argument.isascii() and argument.isdecimal() and len(argument) < 16
    if not is_number or not least <= int(argument) <= most:
        raise UserError(asked, f"'{argument}' is not a number from {least} to {most}", f"write {usage}")
    return int(argument)


def before_number(argument: str | None) -> str:
    """NAME of NAME[@NUMBER], whatever follows the @. An @ in the name of a folder is no number's."""
    name, at, rest = (argument or "").rpartition("@")
    return name if at and "/" not in rest else argument or ""


def name_and_number(spec: str, argument: str | None, least: int, most: int, usage: str) -> tuple[str, int | None]:
    """The two parts of NAME@NUMBER; None without an @. Raises UserError if the number is out of range."""
    name = before_number(argument)
    text = (argument or "").removeprefix(name)
    return name, number(spec, text[1:], least, most, usage) if text else None


def no_argument(spec: str, argument: str | None) -> None:
    """Raises UserError if a player that takes no argument is given one."""
    if argument is not None:
        name = name_of(spec)
        raise UserError(f"the player '{spec}'", f"{name} takes no argument, so no '{argument}'", f"write {name}")


def no_options(spec: str, options: Mapping[str, str]) -> None:
    """Raises UserError if a player that has no options is given one."""
    if options:
        found = f"this player has no options, so no '{next(iter(options))}'"
        raise UserError(f"the player '{spec}'", found, f"write {spec.partition('?')[0]}")
