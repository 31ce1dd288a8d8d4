"""The UCI options of our engine, and their values."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from ranks.chess.uci.lines import Option

if TYPE_CHECKING:
    from ranks.chess.players.player import Limits
    from ranks.chess.players.strength import Strength

OPTIONS = (
    Option("Hash", "spin", "16", 1, 4096),
    Option("Clear Hash", "button"),
    Option("Threads", "spin", "1", 1, 256),
    Option("MultiPV", "spin", "1", 1, 218),
    Option("Move Overhead", "spin", "30", 0, 5000),
    Option("Ponder", "check", "false"),
)
LIMIT_STRENGTH, ELO = "uci_limitstrength", "uci_elo"
_STRENGTH = "strength is not limited by an Elo number, since none was measured: limit nodes, depth or time"
_TABLEBASES = "tablebases are not supported"
REFUSED_OPTIONS = {
    LIMIT_STRENGTH: _STRENGTH,
    ELO: _STRENGTH,
    "uci_chess960": "Chess960 is not supported",
    "syzygypath": _TABLEBASES,
    "nalimovpath": _TABLEBASES,
    "gaviotatbpath": _TABLEBASES,
}
"""Options that GUIs often set, with what is said instead."""


class Options:
    """The options that a player has. Names are compared without case."""

    def __init__(self, strength: Strength | None) -> None:
        """`strength`: which nodes have which Elo, if that was measured for the player."""
        self._strength = strength
        known = [*OPTIONS]
        if strength is not None:
            known.append(Option("UCI_LimitStrength", "check", "false"))
            known.append(Option("UCI_Elo", "spin", str(strength.most), strength.least, strength.most))
        self._known = {option.name.lower(): option for option in known}
        self._values = {name: option.default for name, option in self._known.items()}

    def lines(self) -> Iterator[str]:
        """The lines that announce the options."""
        return (option.line() for option in self._known.values())

    def number(self, name: str) -> int:
        """The value of a spin."""
        return int(self._values[name.lower()])

    def is_button(self, name: str) -> bool:
        option = self._known.get(name.lower())
        return option is not None and option.kind == "button"

    def change(self, name: str, value: str) -> str | None:
        """Set an option. What is wrong with it, or None."""
        option = self._known.get(name.lower())
        if option is None:
            return REFUSED_OPTIONS.get(name.lower(), f"no option '{name}'")
        refusal = option.refusal(value)
        if refusal is None:
            self._values[name.lower()] = value
        return refusal

    @property
    def limits_strength(self) -> bool:
        """Whether UCI_LimitStrength is on."""
        return self._values.get(LIMIT_STRENGTH, "false").lower() == "true"

    def weakened(self, limits: Limits) -> Limits:
        """The limits of the matches in which UCI_Elo was measured: so many nodes, one thread, nothing is kept."""
        assert self._strength is not None
        nodes = self._strength.nodes_for(self.number(ELO))
        return replace(limits, nodes=min(nodes, limits.nodes or nodes), threads=1, forget=True)
