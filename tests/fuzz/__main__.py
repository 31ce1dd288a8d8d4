"""Feed damaged inputs to every parser: python -m tests.fuzz [--inputs 100000] [--seed 0] [PARSER ...]

An input must be accepted, or refused by the error that the parser declares. Any other exception, a warning, and an
input that takes more than 10 seconds are findings. Each is printed with the command that repeats it. Exit code 1 where
there are any.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import random
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from tests.fuzz.mutate import mutated
from tests.fuzz.parsers import PARSERS, Parser

SLOW_S = 10.0
SHOWN = 5


@dataclass
class Outcome:
    """What the inputs of one parser did."""

    accepted: int = 0
    refused: int = 0
    seconds: float = 0.0
    slowest: tuple[float, int] = (0.0, 0)
    """(seconds, number of the input)."""
    findings: Counter[str] = field(default_factory=lambda: Counter[str]())
    examples: list[str] = field(default_factory=lambda: list[str]())


def fuzz(parser: Parser, num_inputs: int, seed: int, first: int = 0) -> Outcome:
    """Run inputs `first` to `first + num_inputs - 1`. Input i depends on (parser, seed, i) alone."""
    found = Outcome()
    seeds = parser.examples()
    with tempfile.TemporaryDirectory(prefix="ranks-fuzz-", dir=shared_memory()) as folder:
        for number in range(first, first + num_inputs):
            content = mutated(random.Random(f"{parser.name}/{seed}/{number}"), seeds)
            started_s = time.perf_counter()
            try:
                with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
                    warnings.simplefilter("error")
                    parser.run(content, Path(folder))
                found.accepted += 1
            except parser.refuses:
                found.refused += 1
            except Exception as error:
                note(found, parser, seed, number, error)
            spent_s = time.perf_counter() - started_s
            found.seconds += spent_s
            found.slowest = max(found.slowest, (spent_s, number))
    if found.slowest[0] > SLOW_S:
        found.findings["slow"] += 1
        found.examples.append(repeat(parser, seed, found.slowest[1]))
    return found


def note(found: Outcome, parser: Parser, seed: int, number: int, error: Exception) -> None:
    """Count a finding by its kind and place; keep the traceback of the first of each kind."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    kind = f"{type(error).__name__} at {Path(last.filename).name}:{last.lineno}"
    found.findings[kind] += 1
    if found.findings[kind] == 1 and len(found.examples) < SHOWN:
        found.examples.append(f"{repeat(parser, seed, number)}\n{''.join(traceback.format_exception(error))[-3000:]}")


def repeat(parser: Parser, seed: int, number: int) -> str:
    return f"python -m tests.fuzz {parser.name} --seed {seed} --first {number} --inputs 1"


def shared_memory() -> str | None:
    """A folder in memory, where there is one: 100,000 files then cost no disk."""
    return "/dev/shm" if Path("/dev/shm").is_dir() else None


def main(argv: list[str]) -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("parsers", nargs="*", metavar="PARSER", help=", ".join(PARSERS))
    options.add_argument("--inputs", type=int, default=100_000)
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--first", type=int, default=0, help="the number of the first input, to repeat one")
    given = options.parse_args(argv)
    unknown = set(given.parsers) - set(PARSERS)
    if unknown:
        options.error(f"no parser {', '.join(sorted(unknown))}; there is {', '.join(PARSERS)}")
    print(f"{'parser':<18}{'inputs':>9}{'accepted':>10}{'refused':>9}{'seconds':>9}  slowest            tracebacks")
    tracebacks = 0
    for name in given.parsers or PARSERS:
        found = fuzz(PARSERS[name], given.inputs, given.seed, given.first)
        slowest_s, number = found.slowest
        failed = sum(found.findings.values())
        tracebacks += failed
        counts = f"{given.inputs:>9,}{found.accepted:>10,}{found.refused:>9,}{found.seconds:>9.1f}"
        print(f"{name:<18}{counts}  {1000 * slowest_s:>7.1f} ms #{number:<8}{failed:>7,}", flush=True)
        for kind, times in found.findings.items():
            print(f"    {times:,} x {kind}")
        print("".join(f"    {example}\n" for example in found.examples), end="", flush=True)
    print(f"{tracebacks} tracebacks")
    return 1 if tracebacks else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
