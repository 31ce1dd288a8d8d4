"""What a bench found, as a table and as plain counts of who was better than whom.

A way that found no proper colouring counts as worse than every way that found one.
"""

from __future__ import annotations

import csv
import re
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from typing import TextIO

RIVALS = ("DSATUR", "TabuCol")
WITHOUT_NET = {"net + repair": "random + repair", "net + TabuCol": "TabuCol"}
"""The way that does the same with random colours in place of the net's."""
NAMED = 8
"""Instances that a line of the summary names before it only counts."""
NOTHING = float("inf")
"""Colours of a way that found no proper colouring."""
OTHERS = "others"
"""Instances that are the only ones of their family."""
Key = tuple[str, int]
"""(instance, seed)"""


@dataclass(frozen=True)
class Row:
    """One way on one instance from one seed; `colours` is none where no proper colouring was found."""

    instance: str
    nodes: int
    edges: int
    clique: int
    """Nodes of a clique: no colouring has fewer colours."""
    best_known: int | None
    proven: bool | None
    """Whether `best_known` is proven to be the chromatic number."""
    way: str
    seed: int
    colours: int | None
    conflicts: int
    """Of the best colouring that the way came to, as the independent checker counts them."""
    seconds: float
    cpu_s: float
    found_s: float | None
    moves: int
    note: str


class CsvWriter:
    """Rows as they come: a bench that is interrupted keeps what it has measured."""

    def __init__(self, file: TextIO) -> None:
        self._file = file
        self._writer = csv.DictWriter(file, [field.name for field in fields(Row)], lineterminator="\n")
        self._writer.writeheader()

    def write(self, row: Row) -> None:
        self._writer.writerow(asdict(row))
        self._file.flush()


def told(row: Row) -> str:
    """One line for a log."""
    result = f"{row.colours} colours" if row.colours is not None else f"- ({row.conflicts} conflicts)"
    found = f" after {row.found_s:.3g} s" if row.colours is not None and row.found_s is not None else ""
    speed = f", {row.moves / row.seconds / 1e6:.2f} M moves/s" if row.moves and row.seconds > 0 else ""
    note = f" ({row.note})" if row.note else ""
    return (
        f"  seed {row.seed}, {row.way}: {result}{found}; in all {row.seconds:.3g} s, CPU {row.cpu_s:.3g} s{speed}{note}"
    )


def table(rows: Sequence[Row]) -> list[str]:
    """A line for each instance: colours of each way, and seconds until they were found; medians over seeds."""
    ways = _unique(row.way for row in rows)
    lines = [["instance", "n", "m", "clique", "best", *ways, "fewest"]]
    for instance in _unique(row.instance for row in rows):
        of = [row for row in rows if row.instance == instance]
        one = of[0]
        best = "" if one.best_known is None else f"{one.best_known}{'*' if one.proven else ''}"
        middle = {way: _median([row for row in of if row.way == way]) for way in ways}
        fewest = min(colours for colours, _ in middle.values())
        winners = [way for way in ways if middle[way][0] == fewest]
        won = "all" if len(winners) == len(ways) else winners[0] if len(winners) == 1 else f"{len(winners)} ways"
        cells = [_cell(*middle[way]) for way in ways]
        won = "none" if fewest == NOTHING else won
        lines.append([instance, str(one.nodes), f"{one.edges:,}", str(one.clique), best, *cells, won])
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    left = (0, len(widths) - 1)
    return [
        "  ".join(
            c.ljust(w) if i in left else c.rjust(w) for i, (c, w) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    ]


def summary(rows: Sequence[Row]) -> list[str]:
    """What each way reached, how it stands against DSATUR, TabuCol and itself without the net, and where TabuCol alone
    is best."""
    ways = _unique(row.way for row in rows)
    lines = [_reached(way, [row for row in rows if row.way == way]) for way in ways]
    for rival in RIVALS:
        if rival in ways:
            lines += [_against(way, rival, rows) for way in ways if way != rival]
    others = {way: rival for way, rival in WITHOUT_NET.items() if rival not in RIVALS}
    lines += [_against(way, rival, rows) for way, rival in others.items() if {way, rival} <= set(ways)]
    if len(ways) > 1 and "TabuCol" in ways:
        lines.append(f"TabuCol alone has the fewest colours on: {_alone('TabuCol', rows)}")
    return lines


def gaps(rows: Sequence[Row]) -> dict[str, list[float]]:
    """Colours above the fewest known, NaN without a proper colouring: by "family, way". A family is the letters of the
    instances' names (queen8_8, queen9_9); those that stand alone are one. Without a known value a row is left out."""
    known = [row for row in rows if row.best_known is not None]
    names_of: dict[str, set[str]] = {}
    for row in known:
        names_of.setdefault(_letters(row.instance), set()).add(row.instance)
    families = {name: name for name, instances in names_of.items() if len(instances) > 1}
    found: dict[tuple[str, str], list[float]] = {}
    for row in known:
        gap = float("nan") if row.colours is None else float(row.colours - (row.best_known or 0))
        found.setdefault((families.get(_letters(row.instance), OTHERS), row.way), []).append(gap)
    ordered = sorted(found.items(), key=lambda item: (item[0][0] == OTHERS, item[0][0]))
    return {f"{family}, {way}": of for (family, way), of in ordered}


def _letters(instance: str) -> str:
    letters = re.search("[A-Za-z]+", instance)
    return letters[0] if letters else instance


def _colours(row: Row) -> float:
    return NOTHING if row.colours is None else row.colours


def _unique(names: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(names))


def _median(rows: Sequence[Row]) -> tuple[float, float | None]:
    times = [row.found_s for row in rows if row.found_s is not None and row.colours is not None]
    return statistics.median_high([_colours(row) for row in rows]), statistics.median(times) if times else None


def _cell(colours: float, found_s: float | None) -> str:
    if colours == NOTHING:
        return "-"
    return f"{colours:.0f}" if found_s is None else f"{colours:.0f}  {found_s:.{2 if found_s < 10 else 1}f}s"


def _reached(way: str, rows: Sequence[Row]) -> str:
    proper = [row for row in rows if row.colours is not None]
    known = [row for row in rows if row.best_known is not None]
    reached = sum(_colours(row) <= (row.best_known or 0) for row in known)
    gaps = [_colours(row) - (row.best_known or 0) for row in known if row.colours is not None]
    gap = f" (where proper {statistics.mean(gaps):.2f} above it on average)" if gaps else ""
    seconds, cpu_s = sum(row.seconds for row in rows), sum(row.cpu_s for row in rows)
    parts = [f"{way}: proper {len(proper)} of {len(rows)}"]
    if known:
        parts.append(f"best known {reached} of {len(known)}{gap}")
    return "; ".join([*parts, f"{seconds:.1f} s, CPU {cpu_s:.1f} s in all"])


def compared(way: str, rival: str, rows: Sequence[Row]) -> tuple[list[Key], list[Key], list[Key]]:
    """Where a way has fewer colours than its rival, as many, and more."""
    theirs = {(row.instance, row.seed): _colours(row) for row in rows if row.way == rival}
    mine = {(row.instance, row.seed): _colours(row) for row in rows if row.way == way}
    return (
        [key for key, colours in mine.items() if colours < theirs[key]],
        [key for key, colours in mine.items() if colours == theirs[key]],
        [key for key, colours in mine.items() if colours > theirs[key]],
    )


def worth_of_the_net(rows: Sequence[Row]) -> dict[str, str]:
    """Of each way of the net by name: where it has fewer colours than the same without the net, as many, more."""
    found: dict[str, str] = {}
    for way, rival in WITHOUT_NET.items():
        parts = zip(("fewer", "as many", "more"), compared(way, rival, rows), strict=True)
        named = [(part, _unique(instance for instance, _ in keys)) for part, keys in parts]
        told = (f"{part} colours on {len(names)} ({', '.join(names) or 'none'})" for part, names in named)
        found[f"{way} against {rival}"] = "; ".join(told)
    return found


def _against(way: str, rival: str, rows: Sequence[Row]) -> str:
    better, equal, worse = compared(way, rival, rows)
    where = f" ({_named(instance for instance, _ in worse)})" if worse else ""
    return f"{way} against {rival}: better {len(better)}, equal {len(equal)}, worse {len(worse)}{where}"


def _alone(way: str, rows: Sequence[Row]) -> str:
    """The instances where, from some seed, every other way needs more colours."""
    found: list[str] = []
    for instance, seed in dict.fromkeys((row.instance, row.seed) for row in rows):
        here = {row.way: _colours(row) for row in rows if (row.instance, row.seed) == (instance, seed)}
        if all(here[way] < colours for other, colours in here.items() if other != way):
            found.append(instance)
    return _named(found) or "none"


def _named(instances: Iterable[str]) -> str:
    names = _unique(instances)
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return ", ".join(names[:NAMED]) + more
