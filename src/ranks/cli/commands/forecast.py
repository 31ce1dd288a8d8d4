"""`ranks forecast WORKLOAD`: what a run will take and cost on 1, 2, 4, ... GPUs, before they are rented."""

from __future__ import annotations

from collections.abc import Sequence

from ranks.cli.flags.parse import parse
from ranks.cli.forecasting.flags import ForecastFlags, LedgerFlags

PROG = "ranks forecast"


def forecast(argv: Sequence[str]) -> int:
    """Print a forecast, or with --ledger forecasts and facts."""
    if "--ledger" in argv:
        ledger_flags = parse(LedgerFlags, argv, prog=PROG)
        from ranks.cli.forecasting.run import print_ledger

        return print_ledger(ledger_flags.runs_dir, in_json=ledger_flags.json)
    flags = parse(ForecastFlags, argv, prog=PROG)
    if flags.shares is not None or "+" in (flags.on or "") or "*" in (flags.on or ""):
        from ranks.cli.forecasting.unequal import print_unequal

        return print_unequal(flags)
    from ranks.cli.forecasting.run import print_forecast  # it imports torch, which --help does not need

    return print_forecast(flags)
