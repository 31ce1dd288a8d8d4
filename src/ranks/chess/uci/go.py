"""The `go` command of UCI, parsed and written."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass

from ranks.chess.players.player import Clock, Limits
from ranks.chess.uci.lines import whole_number

NUMBERS = ("wtime", "btime", "winc", "binc", "movestogo", "movetime", "nodes", "depth", "mate")
MOVE = re.compile("[a-h][1-8][a-h][1-8][nbrq]?")


@dataclass(frozen=True)
class GoCommand:
    """A parsed `go` command."""

    numbers: dict[str, int]
    infinite: bool
    ponder: bool
    searchmoves: tuple[str, ...] | None = None
    """The words after `searchmoves` that look like moves; None without that word."""

    @classmethod
    def parse(cls, words: Sequence[str]) -> GoCommand:
        """Parse the words after `go`. Unknown words and invalid numbers are ignored."""
        numbers: dict[str, int] = {}
        for word, value in itertools.pairwise(words):
            number = whole_number(value) if word in NUMBERS else None
            if number is not None:
                numbers[word] = number
        searchmoves = None
        if "searchmoves" in words:
            after = words[list(words).index("searchmoves") + 1 :]
            searchmoves = tuple(itertools.takewhile(MOVE.fullmatch, after))
        return cls(numbers, "infinite" in words, "ponder" in words, searchmoves)

    def limits(self, white_to_move: bool, overhead_s: float) -> Limits:
        """The limits that it sets. A command without any limit means `go infinite`."""
        n = self.numbers
        own, other = ("w", "b") if white_to_move else ("b", "w")
        clock = None
        if f"{own}time" in n:
            clock = Clock(
                n[f"{own}time"] / 1000,
                n.get(f"{other}time", n[f"{own}time"]) / 1000,
                max(n.get(f"{own}inc", 0), 0) / 1000,
                max(n.get(f"{other}inc", 0), 0) / 1000,
                n["movestogo"] if n.get("movestogo", 0) > 0 else None,
                overhead_s,
            )
        limited = clock is not None or n.keys() & {"nodes", "depth", "mate", "movetime"}
        return Limits(
            nodes=max(n["nodes"], 1) if "nodes" in n else None,
            depth=max(n["depth"], 1) if "depth" in n else None,
            mate=max(n["mate"], 1) if "mate" in n else None,
            movetime_s=max(n["movetime"], 1) / 1000 if "movetime" in n else None,
            clock=clock,
            infinite=self.infinite or not limited,
        )


def go_command(limits: Limits, white_to_move: bool) -> str:
    """The `go` command for limits."""
    words = ["go"]
    if limits.clock:
        clock = limits.clock
        own = (clock.remaining_s, clock.increment_s)
        other = (clock.other_remaining_s, clock.other_increment_s)
        for colour, (remaining_s, increment_s) in zip(
            "wb", (own, other) if white_to_move else (other, own), strict=True
        ):
            words += [f"{colour}time", str(max(int(1000 * remaining_s), 1))]
            words += [f"{colour}inc", str(int(1000 * increment_s))]
        if clock.moves_to_go:
            words += ["movestogo", str(clock.moves_to_go)]
    if limits.movetime_s is not None:
        words += ["movetime", str(max(int(1000 * limits.movetime_s), 1))]
    if limits.nodes is not None:
        words += ["nodes", str(limits.nodes)]
    if limits.depth is not None:
        words += ["depth", str(limits.depth)]
    if limits.mate is not None:
        words += ["mate", str(limits.mate)]
    return " ".join(words if len(words) > 1 else [*words, "infinite"])
