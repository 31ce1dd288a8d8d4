"""Which metrics are shown together, in which order, and which of them are phases of the time of an iteration."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

HEADINGS: Mapping[str, str] = {
    "train": "Training",
    "val": "Evaluation",
    "match": "Matches",
    "rollout": "Rollouts and games",
    "selfplay": "Self-play",
    "spikes": "Spikes",
}
"""The groups of metrics that come first, in this order; other groups follow."""
SPEED_GROUP, SPEED_HEADING = "speed", "Speed and memory"
TIME_HEADING = "Time of an iteration"
SPEED, PHASE_SUFFIX, NO_PHASES = "_per_second", "_s", ("time/iteration_s",)

RANK = re.compile(r"(?:^|(?<=/))rank(\d{1,6})(?:/|$)")
BY_RANK = "By rank"
"""The heading of metrics with a rank in their names: use/rank0/cpu_percent and use/rank1/cpu_percent are two lines of
one picture."""


def of_ranks(names: Iterable[str]) -> dict[str, list[tuple[int, str]]]:
    """[(rank, metric)] by the title of their picture: use/cpu_percent."""
    found: dict[str, list[tuple[int, str]]] = {}
    for name in names:
        if rank := RANK.search(name):
            found.setdefault(RANK.sub("", name, count=1).rstrip("/") or name, []).append((int(rank[1]), name))
    return {title: sorted(members) for title, members in found.items()}


def of_ranks_use(name: str) -> bool:
    """Whether a number of telemetry.jsonl says what a rank uses."""
    return name.startswith("use/") and RANK.search(name) is not None


def by_group(names: Iterable[str]) -> dict[str, list[str]]:
    """The metrics that have a curve, by the part of their names before the first slash, in the order of a page.

    Speeds and memory are the last group. Phases of the time have no curve of their own.
    """
    found: dict[str, list[str]] = {name: [] for name in HEADINGS}
    speeds: list[str] = []
    for name in filter(has_curve, names):
        group = name.partition("/")[0]
        (speeds if group in ("time", "memory") else found.setdefault(group, [])).append(name)
    found.setdefault(SPEED_GROUP, []).extend(sorted(speeds, key=lambda name: not name.endswith(SPEED)))
    return {group: members for group, members in found.items() if members}


def has_curve(name: str) -> bool:
    """Whether a number of a row is drawn as a curve: it has a group, and of the time it is a speed."""
    group, slash, _ = name.partition("/")
    return bool(slash) and (group != "time" or name.endswith(SPEED))


def heading(group: str) -> str:
    """Above the curves of a group."""
    return SPEED_HEADING if group == SPEED_GROUP else HEADINGS.get(group, group)


def is_phase(name: str) -> bool:
    """Whether a metric is the seconds of one phase of an iteration, such as `time/compute_s`."""
    return name.startswith("time/") and name.endswith(PHASE_SUFFIX) and name not in NO_PHASES


def phase(name: str) -> str:
    """'time/compute_s' -> 'compute'."""
    return name.removeprefix("time/").removesuffix(PHASE_SUFFIX)
