"""The tables of docs/stock-trading.md, from its table, its benchmark and its walk forward."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

MAKES = {
    "table_stock-trading": "ranks prove table stock-trading",
    "trading_recurrent_ppo": "python benchmarks/trading_recurrent_ppo.py --peer PYTHON",
    "walk_forward": "ranks stock-trading walk-forward",
}
"""Result files by the beginning of their names, and the command that makes one."""
MEASURES = ("return", "cagr", "volatility", "sharpe", "max_drawdown", "turnover", "costs")
SIDES = {"ours": "ranks", "sb3": "sb3-contrib's RecurrentPPO"}


def trading(*folders: Path) -> Iterator[str]:
    """All parts, each from the newest file of its kind in these folders."""
    for kind, command in MAKES.items():
        files = [path for folder in folders for path in folder.glob(f"{kind}*.json")]
        if not files:
            yield from [f"No result of `{command}` is committed yet.", ""]
            continue
        found = json.loads(max(files, key=lambda path: path.name).read_text(encoding="utf-8"))
        yield from PARTS[kind](found)
        yield ""


def where(found: Mapping[str, Any]) -> str:
    """The command, date, hardware and version of torch of a result."""
    origin = found.get("origin", found)
    hardware = origin["hardware"]
    device = hardware.get("gpu") or f"{hardware['cores']} cores of {hardware['cpu']}"
    return f"`{origin['command']}`, {origin['date'][:10]}, {device}, torch {origin['versions']['torch']}."


def known(found: Mapping[str, Any]) -> Iterator[str]:
    """Reference values, and markets whose best policy is known."""
    for title, rows in found["raw"]["tables"].items():
        yield from [f"**{title}**", "", *grid(rows, leave_out=("passed",)), ""]
    facts = found["raw"].get("facts", {})
    yield from [f"- {name}: {fact}" for name, fact in facts.items()]
    yield from ["", f"{found['verdict']}. {where(found)}"]


def speed(found: Mapping[str, Any]) -> Iterator[str]:
    """Environment steps a second of both sides, and what they learned from equal samples."""
    yield from ["**Speed, beside sb3-contrib's RecurrentPPO** (medians with quartiles)", ""]
    accounts = list(found["steps_per_s"]["ours"])
    yield from ["| environment steps/s | " + " | ".join(f"{n} accounts" for n in accounts) + " |"]
    yield "|" + "---|" * (len(accounts) + 1)
    for side, rates in found["steps_per_s"].items():
        cells = [f"{rates[n]['median']:,.0f} ({rates[n]['p25']:,.0f} to {rates[n]['p75']:,.0f})" for n in accounts]
        yield f"| {SIDES[side]} | " + " | ".join(cells) + " |"
    ratio, goal = found["ratio_of_best"], found["goal"]
    yield from ["", f"The best of each: {ratio:.1f}x; goal {goal:g}x, {'met' if ratio >= goal else 'not met'}.", ""]
    for side, scores in found["scores"].items():
        if scores:
            ratios = ", ".join(f"{score:.2f}" for score in scores)
            yield f"- Sharpe ratios on fresh mean-reverting days, one for each seed, {SIDES[side]}: {ratios}."
    yield from ["", where(found)]


def forward(found: Mapping[str, Any]) -> Iterator[str]:
    """All folds, one after the other, and the Sharpe ratio in each."""
    whole, folds = found["all_folds"], found["folds"]
    yield from [f"**Walk forward**, preset {found['preset']}, seeds {', '.join(whole['policy'])}. {found['title']}", ""]
    yield f"| all folds | {' | '.join(name.replace('_', ' ') for name in MEASURES)} |"
    yield "|" + "---|" * (len(MEASURES) + 1)
    yield f"| policy, mean over seeds | {' | '.join(over_seeds(whole, name) for name in MEASURES)} |"
    for other, measures in whole["beside"].items():
        yield f"| {other} | {' | '.join(told(name, measures[name]) for name in MEASURES)} |"
    yield from ["", f"| Sharpe ratio | {' | '.join(' to '.join(fold['test']) for fold in folds)} |"]
    yield "|" + "---|" * (len(folds) + 1)
    yield f"| policy, mean over seeds | {' | '.join(over_seeds(fold, 'sharpe') for fold in folds)} |"
    for other in whole["beside"]:
        yield f"| {other} | {' | '.join(told('sharpe', fold['beside'][other]['sharpe']) for fold in folds)} |"
    yield from ["", found["verdict"], "", told_rules(found["rules"]), "", where(found)]


def told_rules(rules: Mapping[str, str]) -> str:
    """What the last fold's edge does, and what intervals tell."""
    edges = rules["all_folds"]
    return f"{edges[0].upper()}{edges[1:]}. {rules['over_seeds']}"


def over_seeds(part: Mapping[str, Any], name: str) -> str:
    """'0.54 (0.53 to 0.56)'."""
    values = part["over_seeds"][name]
    return f"{told(name, values['mean'])} ({told(name, values.get('low'))} to {told(name, values.get('high'))})"


def told(name: str, value: float | None) -> str:
    """A measure as people write it."""
    if value is None:
        return "-"
    return f"{value:.2f}" if name == "sharpe" else f"{value:.1%}"


def grid(rows: Sequence[Mapping[str, Any]], leave_out: Sequence[str] = ()) -> Iterator[str]:
    """Rows of equal names as a table."""
    columns = [name for name in rows[0] if name not in leave_out]
    yield "| " + " | ".join(column.replace("_", " ") for column in columns) + " |"
    yield "|" + "---|" * len(columns)
    for row in rows:
        yield "| " + " | ".join(cell(row[name]) for name in columns) + " |"


def cell(value: Any) -> str:
    """Numbers with three digits."""
    return f"{value:.3g}" if isinstance(value, float) else "" if value is None else str(value)


PARTS = {"table_stock-trading": known, "trading_recurrent_ppo": speed, "walk_forward": forward}
