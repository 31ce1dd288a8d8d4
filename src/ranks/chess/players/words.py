"""The words for players: `NAME[:ARGUMENT][?Option=Value&...]`, in one table that workloads add to."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING
from urllib.parse import unquote

from ranks.errors import UserError

if TYPE_CHECKING:
    from ranks.chess.players.player import Player

PLAYERS: dict[str, str] = {
    "random": "ranks.chess.players.simple:random_player",
    "greedy": "ranks.chess.players.simple:greedy_player",
    "minimax": "ranks.chess.players.alphabeta:minimax_player",
    "alphabeta": "ranks.chess.players.alphabeta:alphabeta_player",
    "mcts": "ranks.chess.players.tree_search:material_player",
    "uci": "ranks.chess.players.program:program_player",
}
"""A name -> "module:function", which is called with (word, argument, options) and returns the player."""
USAGE = (
    "random, greedy, minimax:DEPTH, alphabeta:DEPTH[?evaluation=position], mcts:SIMULATIONS, "
    "uci:COMMAND[@NODES][?Option=Value&...]"
)


@dataclass(frozen=True)
class PlayerWord:
    """A player's word, taken apart."""

    word: str
    """As it was given."""
    name: str
    """A key of PLAYERS."""
    argument: str | None
    options: Mapping[str, str]

    @classmethod
    def parse(cls, word: str) -> PlayerWord:
        """Raises UserError for an unknown name, with the nearest one, and for options that cannot be read."""
        text, _, query = word.strip().partition("?")
        name, colon, argument = text.partition(":")
        if name not in PLAYERS:
            raise UserError(f"the player '{word}'", f"there is no player '{name}'", nearest(name, PLAYERS, USAGE))
        options: dict[str, str] = {}
        for part in query.split("&") if query else ():
            option, equals, value = part.partition("=")
            if not option or not equals:
                found = f"'{part}' is not an option with a value"
                raise UserError(f"the player '{word}'", found, f"write {name}...?Option=Value&Option=Value")
            options[unquote(option)] = unquote(value)
        return cls(word, name, argument if colon else None, options)

    def make(self) -> Player:
        """The player. Raises UserError where argument or options are not right."""
        module, function = PLAYERS[self.name].split(":")
        factory: Callable[[str, str | None, Mapping[str, str]], Player] = getattr(import_module(module), function)
        return factory(self.word, self.argument, self.options)


def make_player(word: str) -> Player:
    """The player of a word such as `alphabeta:3` or `uci:stockfish?Threads=1`. Raises UserError."""
    return PlayerWord.parse(word).make()


def nearest(given: str, known: Sequence[str] | Mapping[str, str], otherwise: str) -> str:
    """'did you mean ...?' for the known word closest to the given one."""
    by_lower_case = {word.lower(): word for word in known}
    close = difflib.get_close_matches(given.lower(), by_lower_case, n=1, cutoff=0.5)
    return f"did you mean {by_lower_case[close[0]]}? ({otherwise})" if close else otherwise


def number(word: str, argument: str | None, least: int, most: int, usage: str) -> int:
    """The number that stands behind a name. Raises UserError."""
    asked = f"the player '{word}'"
    if argument is None:
        raise UserError(asked, "a number is missing", f"write {usage}")
    if not argument.isascii() or not argument.isdecimal() or not least <= int(argument) <= most:
        raise UserError(asked, f"'{argument}' is not a number from {least} to {most}", f"write {usage}")
    return int(argument)


def no_argument(word: str, argument: str | None) -> None:
    """Raises UserError where something stands behind a name that takes nothing."""
    if argument is not None:
        raise UserError(f"the player '{word}'", f"'{argument}' behind the name", f"write {word.partition(':')[0]}")


def no_options(word: str, options: Mapping[str, str]) -> None:
    """Raises UserError for any option of a player that has none."""
    if options:
        found = f"this player has no options, so no '{next(iter(options))}'"
        raise UserError(f"the player '{word}'", found, f"write {word.partition('?')[0]}")
