"""`ranks prove table`: a workload's results next to other methods, each compared with its bar."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ranks.errors import UserError
from ranks.prove.report import Report, table_lines
from ranks.workloads import load

NOT_SHOWN = ("bar", "passed")


def prove_table(workload: str, *, quick: bool, instances: Path | None, out: Path, seeds: int | None = None) -> int:
    """Make the tables of a workload and compare each row with its bar; the exit code. Raises UserError."""
    table: Callable[..., Mapping[str, Any]] | None = getattr(load(workload), "table", None)
    if table is None:
        raise UserError(
            f"ranks prove table {workload}", "the workload has no table", "define table(quick) in its module"
        )
    more: dict[str, Path | int] = {}
    if seeds is not None:
        if "seeds" not in inspect.signature(table).parameters:
            raise UserError(f"--seeds {seeds}", f"the table of {workload} takes no seeds", "leave the flag out")
        more["seeds"] = seeds
    if instances is not None:
        if "instances" not in inspect.signature(table).parameters:
            raise UserError(
                f"--instances {instances}", f"the table of {workload} takes no instances", "leave the flag out"
            )
        more["instances"] = instances
    report = Report("table", workload, {"quick": quick} | ({} if seeds is None else {"seeds": seeds}))
    result = table(quick=quick, **more)
    tables: Mapping[str, Sequence[Mapping[str, Any]]] = result["tables"]
    for title, rows in tables.items():
        columns = [name for name in rows[0] if name not in NOT_SHOWN]
        report.section(title)
        for line in table_lines(columns, [[shown(row[name]) for name in columns] for row in rows]):
            report.say(line)
    report.section("Bars")
    for row in (row for rows in tables.values() for row in rows if row.get("passed") is not None):
        name = " ".join(str(value) for value in row.values() if isinstance(value, str) and value != row["bar"])
        figures = ", ".join(f"{n} {shown(row[n])}" for n in row if n not in NOT_SHOWN and not isinstance(row[n], str))
        report.check(name, figures, str(row["bar"]), bool(row["passed"]))
    report.check("table", "all rows", "the table's own verdict", bool(result["passed"]))
    for name, fact in result.get("facts", {}).items():
        report.say(f"{name}: {fact}")
    report.raw = dict(result)
    return report.finish(out)


def shown(value: Any) -> str:
    """A value as text, numbers with four digits."""
    return f"{value:.4g}" if isinstance(value, float) else str(value)
