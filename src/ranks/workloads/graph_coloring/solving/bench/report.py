"""The report of a bench: a table of colours, and counts of which solver was better than which.

A solver without a proper colouring counts as worse than every solver with one.
"""

from __future__ import annotations

import csv
import re
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from typing import TextIO

RIVALS = ("DSATUR", "TabuCol", "HEAD")
WITHOUT_NET = {"net + repair": "random + repair", "net + TabuCol": "TabuCol", "net + HEAD": "HEAD"}
"""The same solver with random colours in place of those of the net."""
MAX_NAMED = 8
"""A line of the summary names this many instances and counts the others."""
NO_COLOURING = float("inf")
"""The number of colours of a solver without a proper colouring."""
OTHERS = "others"
"""The family of instances that are the only ones of their family."""
Key = tuple[str, int]
"""(instance, seed)"""


@dataclass(frozen=True)
class BenchResult:
    """The result of one solver on one instance with one seed; a row of the CSV file.

    `colours`: None if no proper colouring was found.
    """

    instance: str
    nodes: int
    edges: int
    clique: int
    """The size of a clique: no colouring has fewer colours."""
    best_known: int | None
    proven: bool | None
    """Whether `best_known` is proven to be the chromatic number."""
    solver: str
    seed: int
    colours: int | None
    conflicts: int
    """Conflicting edges of the best colouring, as the independent checker counts them."""
    seconds: float
    cpu_s: float
    found_s: float | None
    moves: int
    note: str


class CsvWriter:
    """Writes each row at once, so that an interrupted bench keeps its results."""

    def __init__(self, file: TextIO) -> None:
        self._file = file
        self._writer = csv.DictWriter(file, [field.name for field in fields(BenchResult)], lineterminator="\n")
        self._writer.writeheader()

    def write(self, result: BenchResult) -> None:
        self._writer.writerow(asdict(result))
        self._file.flush()


def log_line(result: BenchResult) -> str:
    """The log line of a result."""
    outcome = f"{result.colours} colours" if result.colours is not None else f"- ({result.conflicts} conflicts)"
    found = f" after {result.found_s:.3g} s" if result.colours is not None and result.found_s is not None else ""
    speed = f", {result.moves / result.seconds / 1e6:.2f} M moves/s" if result.moves and result.seconds > 0 else ""
    note = f" ({result.note})" if result.note else ""
    time = f"in all {result.seconds:.3g} s, CPU {result.cpu_s:.3g} s"
    return f"  seed {result.seed}, {result.solver}: {outcome}{found}; {time}{speed}{note}"


def table(results: Sequence[BenchResult]) -> list[str]:
    """A line for each instance: colours and seconds of each solver; medians over seeds."""
    solvers = _unique(result.solver for result in results)
    lines = [["instance", "n", "m", "clique", "best", *solvers, "fewest"]]
    for instance in _unique(result.instance for result in results):
        of_instance = [result for result in results if result.instance == instance]
        one = of_instance[0]
        best = "" if one.best_known is None else f"{one.best_known}{'*' if one.proven else ''}"
        median = {solver: _median([r for r in of_instance if r.solver == solver]) for solver in solvers}
        fewest = min(colours for colours, _ in median.values())
        winners = [solver for solver in solvers if median[solver][0] == fewest]
        won = "all" if len(winners) == len(solvers) else winners[0] if len(winners) == 1 else f"{len(winners)} solvers"
        cells = [_cell(*median[solver]) for solver in solvers]
        won = "none" if fewest == NO_COLOURING else won
        lines.append([instance, str(one.nodes), f"{one.edges:,}", str(one.clique), best, *cells, won])
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    left = (0, len(widths) - 1)
    return [
        "  ".join(
            c.ljust(w) if i in left else c.rjust(w) for i, (c, w) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    ]


def summary(results: Sequence[BenchResult]) -> list[str]:
    """What each solver reached, compared with DSATUR, TabuCol and itself without the net.

    The last line names the instances where only TabuCol is best.
    """
    solvers = _unique(result.solver for result in results)
    lines = [_reached(solver, [result for result in results if result.solver == solver]) for solver in solvers]
    for rival in RIVALS:
        if rival in solvers:
            lines += [_against(solver, rival, results) for solver in solvers if solver != rival]
    others = {solver: rival for solver, rival in WITHOUT_NET.items() if rival not in RIVALS}
    lines += [_against(solver, rival, results) for solver, rival in others.items() if {solver, rival} <= set(solvers)]
    if len(solvers) > 1 and "TabuCol" in solvers:
        lines.append(f"TabuCol alone has the fewest colours on: {_where_best_alone('TabuCol', results)}")
    return lines


def gaps(results: Sequence[BenchResult]) -> dict[str, list[float]]:
    """Colours above the best known, by "family, solver"; NaN without a proper colouring.

    The family of an instance is the letters of its name (queen8_8 and queen9_9: queen). Families of
    one instance are merged. Instances without a best known value are skipped.
    """
    known = [result for result in results if result.best_known is not None]
    names_of: dict[str, set[str]] = {}
    for result in known:
        names_of.setdefault(_letters(result.instance), set()).add(result.instance)
    families = {name: name for name, instances in names_of.items() if len(instances) > 1}
    found: dict[tuple[str, str], list[float]] = {}
    for result in known:
        gap = float("nan") if result.colours is None else float(result.colours - (result.best_known or 0))
        found.setdefault((families.get(_letters(result.instance), OTHERS), result.solver), []).append(gap)
    ordered = sorted(found.items(), key=lambda item: (item[0][0] == OTHERS, item[0][0]))
    return {f"{family}, {solver}": of for (family, solver), of in ordered}


def _letters(instance: str) -> str:
    letters = re.search("[A-Za-z]+", instance)
    return letters[0] if letters else instance


def _colours(result: BenchResult) -> float:
    return NO_COLOURING if result.colours is None else result.colours


def _unique(names: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(names))


def _median(results: Sequence[BenchResult]) -> tuple[float, float | None]:
    times = [result.found_s for result in results if result.found_s is not None and result.colours is not None]
    return statistics.median_high([_colours(result) for result in results]), statistics.median(times) if times else None


def _cell(colours: float, found_s: float | None) -> str:
    if colours == NO_COLOURING:
        return "-"
    return f"{colours:.0f}" if found_s is None else f"{colours:.0f}  {found_s:.{2 if found_s < 10 else 1}f}s"


def _reached(solver: str, results: Sequence[BenchResult]) -> str:
    proper = [result for result in results if result.colours is not None]
    known = [result for result in results if result.best_known is not None]
    reached = sum(_colours(result) <= (result.best_known or 0) for result in known)
    gaps = [_colours(result) - (result.best_known or 0) for result in known if result.colours is not None]
    gap = f" (where proper {statistics.mean(gaps):.2f} above it on average)" if gaps else ""
    seconds, cpu_s = sum(result.seconds for result in results), sum(result.cpu_s for result in results)
    parts = [f"{solver}: proper {len(proper)} of {len(results)}"]
    if known:
        parts.append(f"best known {reached} of {len(known)}{gap}")
    return "; ".join([*parts, f"{seconds:.1f} s, CPU {cpu_s:.1f} s in all"])


def compared(solver: str, rival: str, results: Sequence[BenchResult]) -> tuple[list[Key], list[Key], list[Key]]:
    """The instances and seeds where a solver has fewer colours than its rival, as many, and more."""
    theirs = {(result.instance, result.seed): _colours(result) for result in results if result.solver == rival}
    own = {(result.instance, result.seed): _colours(result) for result in results if result.solver == solver}
    return (
        [key for key, colours in own.items() if colours < theirs[key]],
        [key for key, colours in own.items() if colours == theirs[key]],
        [key for key, colours in own.items() if colours > theirs[key]],
    )


def net_comparison(results: Sequence[BenchResult]) -> dict[str, str]:
    """Where each solver with a net has fewer, as many, and more colours than without the net."""
    found: dict[str, str] = {}
    measured = {result.solver for result in results}
    for solver, rival in WITHOUT_NET.items():
        if not {solver, rival} <= measured:
            continue
        groups = zip(("fewer", "as many", "more"), compared(solver, rival, results), strict=True)
        named = [(group, _unique(instance for instance, _ in keys)) for group, keys in groups]
        texts = (f"{group} colours on {len(names)} ({', '.join(names) or 'none'})" for group, names in named)
        found[f"{solver} against {rival}"] = "; ".join(texts)
    return found


def _against(solver: str, rival: str, results: Sequence[BenchResult]) -> str:
    better, equal, worse = compared(solver, rival, results)
    where = f" ({_named(instance for instance, _ in worse)})" if worse else ""
    return f"{solver} against {rival}: better {len(better)}, equal {len(equal)}, worse {len(worse)}{where}"


def _where_best_alone(solver: str, results: Sequence[BenchResult]) -> str:
    """The instances where, with some seed, every other solver needs more colours."""
    found: list[str] = []
    for instance, seed in dict.fromkeys((result.instance, result.seed) for result in results):
        here = {
            result.solver: _colours(result) for result in results if (result.instance, result.seed) == (instance, seed)
        }
        if all(here[solver] < colours for other, colours in here.items() if other != solver):
            found.append(instance)
    return _named(found) or "none"


def _named(instances: Iterable[str]) -> str:
    names = _unique(instances)
    more = f" and {len(names) - MAX_NAMED} more" if len(names) > MAX_NAMED else ""
    return ", ".join(names[:MAX_NAMED]) + more
