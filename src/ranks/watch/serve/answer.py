"""The JSON that the page asks for: texts, and what is new in the curves."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from ranks.engine.files.jsonl import strict
from ranks.errors import clean
from ranks.progress import duration
from ranks.watch.lines import episode_reward, size, speeds
from ranks.watch.live_run import LiveRun
from ranks.watch.metric_groups import BY_RANK, RANK, TIME_HEADING, by_group, heading, of_ranks, phase
from ranks.watch.run_facts import RunFacts
from ranks.watch.thinning import Extremes, Thinned

LONGEST_TEXT = 400


def answer(live: LiveRun, since: str, price: float | None, now: float) -> dict[str, Any]:
    """Everything that has changed since an answer whose `next` was `since`; everything at all where that is empty or
    of another generation. It changes nothing.

    `curves` are [name, how many of the page's points stay, the points after them, the newest value]. `layout` and
    `history` are left out where they are as before."""
    generation, _, count = since.partition("-")
    known = int(count) if generation == live.generation and re.fullmatch(r"\d{1,15}", count) else -1
    facts = live.facts
    out: dict[str, Any] = {
        "next": f"{live.generation}-{live.changes}",
        "reset": known < 0,
        "name": facts.name,
        "state": "deleted" if live.deleted else facts.state,
        "problem": live.problem,
        "unread": live.unread,
        "share": min(1.0, facts.sums.iterations / facts.goal) if facts.goal else None,
        "tiles": list(_tiles(live, facts, price, now)),
        "table": list(facts.facts(price, now)),
        "curves": [[name, *_new_points(curve, known)] for name, curve in live.curves.items()],
        "phases": [0, []],
    }
    out["curves"] = [curve for curve in out["curves"] if curve[2]]
    if live.phase_names:
        start, buckets = live.phases.since(known)
        out["phases"] = [start, [bucket.point(live.phase_names) for bucket in buckets]]
    out["phase_names"] = [phase(name) for name in live.phase_names]
    if live.curves_changed > known:
        out["layout"] = layout(list(live.curves))
        out["time_heading"] = TIME_HEADING
    if live.events_changed > known:
        out["history"] = [list(event) for event in facts.history()]
    return _plain(strict(out))


def layout(names: list[str]) -> list[tuple[str, list[tuple[str, list[tuple[str, str]]]]]]:
    """[(heading, [(title of a picture, [(metric, label of its line)])])]; a picture of one line has no label."""
    single = [name for name in names if not RANK.search(name)]
    found = [
        (heading(group), [(name, [(name, "")]) for name in members]) for group, members in by_group(single).items()
    ]
    lines = of_ranks(names).items()
    pictures = [(title, [(name, f"rank {rank}") for rank, name in members]) for title, members in lines]
    return [*found, (BY_RANK, pictures)] if pictures else found


def _tiles(live: LiveRun, facts: RunFacts, price: float | None, now: float) -> Iterator[tuple[str, str]]:
    """(what, value): the large numbers at the head of the page."""
    newest = live.newest
    yield "iterations", facts.iterations
    yield "now", live.inside
    if facts.in_use:
        yield "time left", duration(live.time_left.seconds(facts.goal))
    yield "speed", ", ".join(speeds(newest))
    yield "loss", _number(newest.get("train/loss"))
    yield "episode reward", _number(episode_reward(newest))
    yield "time", duration(facts.wall_s(now))
    yield "goodput", f"{facts.goodput(now):.1%}" if facts.sums.kept_s else ""
    yield "cost", f"{cost.total:,.2f}" if (cost := facts.cost(price, now)) is not None else ""
    yield "peak memory", size(newest.get("memory/peak_bytes"))
    if facts.in_use:
        yield "newest row", f"{age} ago" if (age := duration(live.row_age_s)) else ""


def _new_points(curve: Thinned[Extremes], known: int) -> tuple[int, list[list[float]], float | None]:
    start, buckets = curve.since(known)
    return start, [bucket.point() for bucket in buckets], curve.newest.mean if curve.newest else None


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.4g}"


def _plain(value: Any) -> Any:
    """With all texts printable and short."""
    if isinstance(value, str):
        return clean(value[:LONGEST_TEXT])
    if isinstance(value, dict):
        return {name: _plain(part) for name, part in value.items()}
    return [_plain(part) for part in value] if isinstance(value, list) else value
