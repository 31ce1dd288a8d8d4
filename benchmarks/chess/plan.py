"""The comparisons: the sides of each, their goals, and the differences in their work."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

LIBRARIES = (
    "chess",
    "open-spiel",
    "rust-chess",
    "bulletchess",
    "spooky-chess",
    "cozy-chess-py",
    "fastchess",
    "pyrust-chess",
)
"""Rules of chess that pip installs, by their names on PyPI."""
MCTX_BATCHES = {32: (16, 64, 256), 100: (64,)}
"""Games in mctx's batch, by simulations; with 100 only one, since a search of it takes half a
minute."""

TREE_GAMES = {1: "256", 2: "1024"}
"""Games that ours searches at once without a net, by threads: a thread is not given fewer than
256."""


@dataclass(frozen=True)
class Side:
    """One way to do the work of a comparison."""

    name: str
    argv: tuple[str, ...]
    """A script in peers/ and its arguments."""
    goal: float | None = None
    """Ours should be so many times as fast."""
    single: bool = True
    """It runs on one thread, so that two threads are two processes."""


@dataclass(frozen=True)
class Comparison:
    """Sides that do the same work; the first is ours."""

    name: str
    unit: str
    threads: int
    sides: tuple[Side, ...]
    slice_s: float = 1.0
    """At least so long is each side measured in a round."""
    differs: str = ""
    """Where the work is not the same."""


def comparisons() -> Iterable[Comparison]:
    """All that is compared, in the order in which it is measured."""
    for threads in (1, 2):
        goals = {"chess": 300.0, "open-spiel": 45.0}
        rules = [Side(name, ("random_games.py", name), goals.get(name, 15.0)) for name in LIBRARIES]
        yield Comparison(
            "random games",
            "games/s",
            threads,
            (Side("ranks", ("ours.py", "games"), single=False), *rules),
            differs="Ours and OpenSpiel's C++ loop choose the moves in compiled code, the others in Python. What a "
            "library lacks (`lacks`) is not checked in its games.",
        )
    for threads in (1, 2):
        for simulations in (100, 400):
            budget = ("--simulations", str(simulations))
            sides = [
                Side("ranks", ("ours.py", "tree", "--games", TREE_GAMES[threads], *budget), single=False),
                Side("OpenSpiel, Python MCTSBot", ("openspiel_tree.py", str(simulations)), 20.0),
            ]
            if simulations == 100:
                sides.append(Side("OpenSpiel, C++ MCTSBot", ("openspiel_tree.py", str(simulations), "--cpp")))
            yield Comparison(
                f"tree only, {simulations} simulations",
                "simulations/s",
                threads,
                tuple(sides),
                differs="Ours lists the moves of every new leaf, OpenSpiel only when it is visited a second time. "
                "OpenSpiel's C++ bot takes no evaluator but a random game for each simulation.",
            )
    for threads in (2, 1):
        for simulations, goal in ((32, 35.0), (100, 200.0)):
            if threads == 1 and simulations == 100:
                continue
            budget = ("--simulations", str(simulations))
            batches = MCTX_BATCHES[simulations] if threads == 2 else (64,)
            peers = [
                Side(f"mctx + pgx, batch {batch}", ("mctx_pgx.py", "--games", str(batch), *budget), goal, single=False)
                for batch in batches
            ]
            yield Comparison(
                f"tiny net, 64 games x {simulations} simulations",
                "simulations/s",
                threads,
                (Side("ranks", ("ours.py", "net", "--games", "64", *budget), single=False), *peers),
                differs="pgx computes its 119 planes, of which the net takes 19. mctx evaluates finished positions "
                "too, ours backs them up without the net; its simulations that reach one are counted all the same.",
            )


SPLIT = Side("ranks", ("ours.py", "net", "--games", "256", "--simulations", "100"), single=False)
SPLIT_GOAL = 0.10
"""Share of the wall time that trees and rules may take."""
