"""The process of one check: `python -m ranks.hardware.doctor.child CHECK END_S`, with `Asked` as JSON on its input.

It prints the facts as one line of JSON. Shortly before its end, a time of `time.monotonic`, it writes its Python stack
to standard error, so that a hang has a place.
"""

from __future__ import annotations

import faulthandler
import json
import sys
import time
from dataclasses import asdict
from importlib import import_module

from ranks.hardware.doctor.finding import Asked

MARK = "facts: "
"""Begins the line of the result: libraries may print other lines."""
BEFORE_END_S = 1.0


def main(argv: list[str]) -> None:
    """Run `measure` of a module of `checks/` and print what it returns."""
    faulthandler.enable()
    faulthandler.dump_traceback_later(max(0.1, float(argv[1]) - time.monotonic() - BEFORE_END_S), file=sys.stderr)
    module = import_module(f"ranks.hardware.doctor.checks.{argv[0]}")
    facts = module.measure(Asked(**json.load(sys.stdin)))
    print(f"\n{MARK}{json.dumps(asdict(facts))}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
