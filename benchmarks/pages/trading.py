"""The tables of docs/stock-trading.md, from the committed results of its proof, benchmark and walk-forward test."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ranks.workloads.stock_trading.reports.walk_forward import ALL_FOLDS, INTERVALS

MAKES = {
    "table_stock-trading": "ranks prove table stock-trading",
    "trading_recurrent_ppo": "python -m benchmarks.on_policy.trading --peer PYTHON --finrl FOLDER",
    "walk_forward": "ranks stock-trading walk-forward",
}
"""Prefixes of result files, and the command that writes them."""
MEASURES = ("return", "cagr", "volatility", "sharpe", "max_drawdown", "turnover", "costs")
COUNTS = ("trades_per_year", "trading_days_per_year")
"""Columns of results since actions are changes of weights."""
HEADINGS = {"what": "quantity", "found": "result", "bar": "required"}
"""Columns of a proof's table -> their headings here."""
WIDTH = 100
SIDES = {
    "ours": "ranks",
    "sb3": "RecurrentPPO on the same batched market",
    "finrl": "RecurrentPPO on FinRL's environment",
}


def trading(*folders: Path) -> Iterator[str]:
    """All sections, each from the newest result of its kind in these folders."""
    for kind, command in MAKES.items():
        files = [path for folder in folders for path in folder.glob(f"{kind}*.json")]
        if not files:
            yield from [f"No result of `{command}` is committed yet.", ""]
            continue
        found = json.loads(max(files, key=lambda path: path.name).read_text(encoding="utf-8"))
        yield from PARTS[kind](found)
        yield ""


def wrapped(text: str) -> list[str]:
    """The lines of a paragraph."""
    return textwrap.wrap(text, WIDTH, break_on_hyphens=False)


def where(found: Mapping[str, Any]) -> str:
    """Command, date, hardware and torch version of a result."""
    origin = found.get("origin", found)
    hardware = origin["hardware"]
    device = hardware.get("gpu") or f"{hardware['cores']} cores of {hardware['cpu']}"
    return f"`{origin['command']}`, {origin['date'][:10]}, {device}, torch {origin['versions']['torch']}."


def known(found: Mapping[str, Any]) -> Iterator[str]:
    """Reference values, and synthetic markets whose optimal policy is known."""
    for title, rows in found["raw"]["tables"].items():
        yield from [f"**{title}**", "", *grid(rows, leave_out=("passed",)), ""]
    facts = found["raw"].get("facts", {})
    yield from [f"- {name}: {fact}" for name, fact in facts.items()]
    yield from ["", *wrapped(f"{found['verdict']}. {where(found)}")]


def speed(found: Mapping[str, Any]) -> Iterator[str]:
    """Environment steps a CPU second of all sides, and Sharpe ratios after the same number of samples."""
    rounds = found["peak_share"]["n"]
    yield from [
        f"**Speed, compared with sb3-contrib's RecurrentPPO** (one core; medians with quartiles, n = {rounds})",
        "",
    ]
    settings = list(dict.fromkeys(n for rates in found["steps_per_cpu_s"].values() for n in rates))
    yield from ["| environment steps a CPU second, accounts x days of a rollout | " + " | ".join(settings) + " |"]
    yield "|" + "---|" * (len(settings) + 1)
    for side, rates in found["steps_per_cpu_s"].items():
        yield f"| {SIDES[side]} | " + " | ".join(rate(rates.get(n)) for n in settings) + " |"
    yield ""
    for side, one in found["ratios"].items():
        verdict = "met" if one["ratio"] >= one["goal"] and one["counts"] else "not met"
        text = f"{one['ratio']:.1f}x the best of {SIDES[side]}; goal {one['goal']:g}x, {verdict}."
        yield f"- ranks with {one['setting']}: {text}"
    yield f"- ranks reaches {found['peak_share']['median']:.0%} of the speed of large matrix products on this core."
    yield from [
        "",
        f"| Sharpe ratios after {found['samples']:,} samples | accounts x days | one for each seed |",
        "|---|---|---|",
    ]
    for market, one in found["sharpe"].items():
        for setting, scores in one["ours"].items():
            yield f"| {market}, ranks | {setting} | {', '.join(f'{score:.2f}' for score in scores)} |"
        for setting, peer in one["peers"].items():
            low, high = peer["interval"]
            theirs = ", ".join(f"{score:.2f}" for score in peer["scores"])
            yield f"| {market}, RecurrentPPO | {setting} | {theirs}; interval {low:.2f} to {high:.2f} |"
    yield from ["", *wrapped(where(found))]


def rate(found: Mapping[str, float] | None) -> str:
    """'1,654 (1,582 to 1,657)', or nothing where it was not measured."""
    return "" if found is None else f"{found['median']:,.0f} ({found['p25']:,.0f} to {found['p75']:,.0f})"


def forward(found: Mapping[str, Any]) -> Iterator[str]:
    """All folds joined, and the Sharpe ratio in each."""
    whole, folds = found["all_folds"], found["folds"]
    columns = [*MEASURES, *(name for name in COUNTS if name in whole["over_seeds"])]
    title = f"**Walk-forward test**, preset {found['preset']}, seeds {', '.join(whole['policy'])}."
    yield from [
        *wrapped(f"{title} {found['title']}"),
        "",
    ]
    yield f"| all folds | {' | '.join(name.replace('_', ' ') for name in columns)} |"
    yield "|" + "---|" * (len(columns) + 1)
    yield f"| policy, mean over seeds | {' | '.join(over_seeds(whole, name) for name in columns)} |"
    for baseline, metrics in whole["baselines"].items():
        yield f"| {baseline} | {' | '.join(show(name, metrics[name]) for name in columns)} |"
    yield from ["", f"| Sharpe ratio | {' | '.join(' to '.join(fold['test']) for fold in folds)} |"]
    yield "|" + "---|" * (len(folds) + 1)
    yield f"| policy, mean over seeds | {' | '.join(over_seeds(fold, 'sharpe') for fold in folds)} |"
    for baseline in whole["baselines"]:
        yield f"| {baseline} | {' | '.join(show('sharpe', fold['baselines'][baseline]['sharpe']) for fold in folds)} |"
    for text in (found["verdict"], f"{ALL_FOLDS[0].upper()}{ALL_FOLDS[1:]}. {INTERVALS}", where(found)):
        yield from ["", *wrapped(text)]


def over_seeds(part: Mapping[str, Any], name: str) -> str:
    """'0.54 (0.53 to 0.56)'."""
    values = part["over_seeds"][name]
    return f"{show(name, values['mean'])} ({show(name, values.get('low'))} to {show(name, values.get('high'))})"


def show(name: str, value: float | None) -> str:
    """A metric as text: a percentage, or a ratio with two digits."""
    if value is None:
        return "-"
    if name in COUNTS:
        return f"{value:,.0f}"
    return f"{value:.2f}" if name == "sharpe" else f"{value:.1%}"


def grid(rows: Sequence[Mapping[str, Any]], leave_out: Sequence[str] = ()) -> Iterator[str]:
    """A Markdown table of rows with the same names."""
    columns = [name for name in rows[0] if name not in leave_out]
    yield "| " + " | ".join(HEADINGS.get(name, name).replace("_", " ") for name in columns) + " |"
    yield "|" + "---|" * len(columns)
    for row in rows:
        yield "| " + " | ".join(cell(row[name]) for name in columns) + " |"


def cell(value: Any) -> str:
    """A number with three digits, or text."""
    return f"{value:.3g}" if isinstance(value, float) else "" if value is None else str(value)


PARTS = {"table_stock-trading": known, "trading_recurrent_ppo": speed, "walk_forward": forward}
