"""`ranks graph-coloring solve`: colour a DIMACS graph with the net, or with DSATUR by name.

The number of colours starts from the net's own estimate and grows until a colouring is found, then shrinks until the
budget ends. No classical colouring is started from or fallen back to.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from ranks.engine.config import seconds
from ranks.engine.draws import numpy_generator
from ranks.errors import UserError
from ranks.workloads.graph_coloring.checker import problems
from ranks.workloads.graph_coloring.classical import dsatur
from ranks.workloads.graph_coloring.decode import best_round
from ranks.workloads.graph_coloring.exact import greedy_clique
from ranks.workloads.graph_coloring.formats import read_col, write_sol
from ranks.workloads.graph_coloring.generators import fresh_noise
from ranks.workloads.graph_coloring.graphs import Graph, Ints, collate
from ranks.workloads.graph_coloring.local_search import repair
from ranks.workloads.graph_coloring.model import ColouringNet
from ranks.workloads.graph_coloring.weights_file import LoadedNet, load_net

ROUNDS = 64
"""Rounds of one try, as in the table."""
TRIES_AT_ONCE, ROWS_AT_ONCE = 8, 60_000
"""Tries run side by side: at most so many, and at most so many rows (nodes x colours) together."""


@dataclass(frozen=True)
class Found:
    """A colouring with at most k colours. `conflicts`: edges that conflict, as checked by the independent checker."""

    k: int
    colours_N: Ints
    conflicts: int
    raw_conflicts: int
    """Conflicts of the same answer before its repair."""
    changes: int
    """Nodes that the repair recoloured."""
    tries: int
    seconds: float

    @property
    def num_colours(self) -> int:
        return len(set(self.colours_N.tolist()))


@dataclass(frozen=True)
class Search:
    """What one graph's searches share. `deadline_s`: on the clock of time.monotonic."""

    graph: Graph
    model: ColouringNet
    seed: int
    deadline_s: float
    device: torch.device

    @property
    def time_left_s(self) -> float:
        return self.deadline_s - time.monotonic()

    def with_colours(self, k: int, first_try: int = 0, max_tries: int | None = None) -> Found:
        """Tries with k colours until one is proper, the tries are used up, or the time is; at least one is made.

        The answer is the best one, judged after its repair.
        """
        start = time.monotonic()
        side_by_side = max(1, min(TRIES_AT_ONCE, max_tries or TRIES_AT_ONCE, ROWS_AT_ONCE // max(1, self.graph.n * k)))
        best: Found | None = None
        tries = 0
        while best is None or (best.conflicts and self.time_left_s > 0 and (max_tries is None or tries < max_tries)):
            numbers = range(first_try + tries, first_try + tries + side_by_side)
            noise = [fresh_noise(self.seed, "solve", number, 0, self.graph.n, k) for number in numbers]
            batch = collate([self.graph] * side_by_side, noise).to(self.device)
            with torch.no_grad():
                answers, _ = best_round(self.model, batch, ROUNDS)
            for number, (colours, raw_conflicts, _) in zip(numbers, answers, strict=True):
                tries += 1
                fixed = repair(self.graph, k, colours, numpy_generator(self.seed, "repair", k, number))
                if best is None or (fixed.conflicts, raw_conflicts) < (best.conflicts, best.raw_conflicts):
                    conflicts = len(
                        problems(self.graph.n, self.graph.edges_E2.tolist(), fixed.colours_N.tolist(), None)
                    )
                    spent = time.monotonic() - start
                    best = Found(k, fixed.colours_N, conflicts, raw_conflicts, fixed.changes, tries, spent)
                if best.conflicts == 0:
                    break
        return best

    def estimate(self) -> int:
        """The chromatic head's estimate, from one try with three colours."""
        batch = collate([self.graph], [fresh_noise(self.seed, "estimate", 0, 0, self.graph.n, 3)]).to(self.device)
        with torch.no_grad():
            _, chromatic_B = best_round(self.model, batch, self.model.rounds)
        return max(1, round(float(chromatic_B[0])))

    def fewest(self, report: Callable[[Found], None]) -> Found:
        """The fewest colours within the time: doubled from the estimate, halved back, then lowered one by one.

        Ends early where a clique of as many nodes proves that fewer colours cannot do.
        """
        clique = max(1, len(greedy_clique(self.graph.bitsets())))
        most = int(self.graph.degrees().max(initial=0)) + 1
        failed, k = clique - 1, max(clique, min(self.estimate(), most))
        found = self.with_colours(k, max_tries=TRIES_AT_ONCE)
        while found.conflicts and k < most:
            failed, k = k, min(2 * k, most)
            found = self.with_colours(k, max_tries=TRIES_AT_ONCE)
        if found.conflicts:
            return found
        report(found)
        while found.num_colours > max(clique, failed + 1) and self.time_left_s > 0:
            middle = (failed + found.num_colours) // 2
            attempt = self.with_colours(middle, max_tries=TRIES_AT_ONCE)
            if attempt.conflicts:
                failed = middle
            else:
                found = attempt
                report(found)
        while found.num_colours > clique and self.time_left_s > 0:
            attempt = self.with_colours(found.num_colours - 1, first_try=TRIES_AT_ONCE)
            if attempt.conflicts:
                break
            found = attempt
            report(found)
        return found


def solve(
    file: str,
    /,
    *,
    run: str | None = None,
    k: int | None = None,
    budget: str = "10s",
    seed: int = 0,
    out: Path | None = None,
    draw: Path | None = None,
    no_net: bool = False,
    drop_self_loops: bool = False,
) -> int:
    """Colour a graph in DIMACS format. Without -k, the number of colours is lowered until the budget ends.

    Args:
        file: A .col or .col.gz file, or - for standard input.
        run: A run's name under runs/, the path of its folder, or a model.safetensors file; without it, the net that
            ships with the package.
        k: Colours allowed.
        budget: Time for the search: 10s, 2m.
        seed: Of the random starts.
        out: Write the colouring here, as a DIMACS .sol file.
        draw: Draw the coloured graph here, as PNG.
        no_net: Colour with DSATUR, a classical algorithm, in place of the net.
        drop_self_loops: Drop edges from a vertex to itself, which no colouring can satisfy, with a warning.

    Returns 0 with a proper colouring, 1 without one.
    """
    budget_s = seconds(budget, "--budget")
    if k is not None and k < 1:
        raise UserError(f"-k {k}", "a colouring needs at least one colour", "give -k 1 or more")
    if no_net and run is not None:
        raise UserError(f"--no-net --run {run}", "--no-net uses no weights", "leave one of them out")
    net = None if no_net else load_net(run)
    print("DSATUR, no net" if net is None else f"weights: {net.name}, sha256 {net.sha256[:12]}", flush=True)
    graph = read_col(file, drop_self_loops=drop_self_loops)
    print(f"{file}: {graph.n} vertices, {graph.num_edges} edges", flush=True)
    found = _with_dsatur(graph, k) if net is None else _with_net(graph, net, k, budget_s, seed)
    proper = found.conflicts == 0 and (k is None or found.num_colours <= k)
    by = "DSATUR" if net is None else f"{net.name}, sha256 {net.sha256}, seed {seed}"
    summary = [f"ranks graph-coloring solve {file}", f"by {by}", *_lines(found, k, by_net=net is not None)]
    print("\n".join(summary[2:]))
    print(f"s col {found.num_colours}" if proper else "s UNKNOWN")
    if out is not None:
        write_sol(out, found.colours_N if proper else None, summary)
        print(f"colouring: {out}")
    if draw is not None:
        from ranks.workloads.graph_coloring.draw import draw_colouring

        draw_colouring(graph, found.colours_N, draw, title=Path(file).name if file != "-" else "standard input")
        print(f"drawing: {draw}")
    return 0 if proper else 1


def _lines(found: Found, k: int | None, *, by_net: bool) -> list[str]:
    allowed = f" (allowed: {k})" if k is not None else ""
    lines = [f"k {found.num_colours}{allowed}, conflicts {found.conflicts}, {found.seconds:.2f} s"]
    if by_net:
        raw = "proper without repair" if found.raw_conflicts == 0 else f"{found.raw_conflicts} conflicts"
        fixed = "" if found.raw_conflicts == 0 else f"; repaired: {found.conflicts} conflicts, {found.changes} changes"
        lines.append(f"raw: {raw}{fixed}; tries with these colours: {found.tries}")
    return lines


def _with_net(graph: Graph, net: LoadedNet, k: int | None, budget_s: float, seed: int) -> Found:
    search = Search(graph, net.model, seed, time.monotonic() + budget_s, torch.device("cpu"))
    if k is not None:
        return search.with_colours(k)
    return search.fewest(lambda f: print(f"  {f.num_colours} colours, {f.seconds:.2f} s", flush=True))


def _with_dsatur(graph: Graph, k: int | None) -> Found:
    start = time.monotonic()
    colours = dsatur(graph)
    conflicts = len(problems(graph.n, graph.edges_E2.tolist(), colours.tolist(), None))
    used = len(np.unique(colours))
    return Found(k or used, colours, conflicts, conflicts, 0, 1, time.monotonic() - start)
