"""The process of one check: `python -m ranks.hardware.doctor.child CHECK ASKED LIMIT_S`.

It prints the facts as one line of JSON. Shortly before its limit it writes its Python stack to standard error, so that
a hang has a place.
"""

from __future__ import annotations

import faulthandler
import json
import sys
from dataclasses import asdict
from importlib import import_module

from ranks.hardware.doctor.finding import Asked

MARK = "facts: "
"""Begins the line of the result: libraries may print other lines."""


def main(argv: list[str]) -> None:
    """Run `measure` of a module of `checks/` and print what it returns."""
    faulthandler.enable()
    faulthandler.dump_traceback_later(max(0.1, float(argv[2]) - 0.3), file=sys.stderr)
    module = import_module(f"ranks.hardware.doctor.checks.{argv[0]}")
    facts = module.measure(Asked(**json.loads(argv[1])))
    print(f"\n{MARK}{json.dumps(asdict(facts))}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
