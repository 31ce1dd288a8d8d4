"""The model card: README.md of a published model, with what the run has measured and the commands for it."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from ranks.engine.export.about import ExportAbout
from ranks.engine.files.jsonl import number
from ranks.hub.publish import LocalFile
from ranks.progress import duration
from ranks.watch.metric_groups import RANK, by_group, heading
from ranks.workloads import WORKLOADS

Row = Mapping[str, Any]
ENGINE_FLAGS = ("seed", "exact", "shards", "precision")
"""Settings of a run, besides those of its workload, on which its result depends."""
PATH = re.compile(r"(?<![\w.:/])[/~](?:[^\s=/]*/)*(?=[^\s/])")
"""The folders of an absolute path in a command line."""


@dataclass(frozen=True)
class CardFacts:
    """What the card says of a run. `rows`: of metrics.jsonl up to the checkpoint."""

    about: ExportAbout
    rows: Sequence[Row]
    provenance: Row
    """run.json."""
    plan: Row
    """Of the last start; empty without one."""
    train_command: str
    evaluation: Mapping[str, float] | None
    """What `ranks evaluate` printed for the same checkpoint."""
    player: str | None
    """The word of `ranks chess` that names the fetched model, if it plays chess."""


def card(facts: CardFacts, repo_id: str, files: Iterable[LocalFile], license_id: str | None) -> str:
    """The text of README.md. `files`: those besides the card itself."""
    about = facts.about
    place = f"models/{repo_id}"
    front = ["---", "library_name: pytorch"] + ([f"license: {license_id}"] if license_id else [])
    tags = ["tags:", "- ranks", f"- {about.workload.removesuffix('.py')}", "---"]
    parts = [
        "\n".join([*front, *tags]),
        f"# {repo_id.partition('/')[2]}",
        f"A model that `ranks` has trained: workload `{about.workload}`, run "
        f"`{about.run}`, iteration {about.iteration:,}.",
        "## Measured",
        *measured(facts),
        "## Use",
        _block(use_lines(facts, repo_id, place)),
        "`model.py` is code. Read it before you import it. Nothing here is a pickle.",
        "## Training",
        _block([facts.train_command + (" --init-from FOLDER" if initial_sha256(facts) else "")]),
        table(("", ""), training_rows(facts)),
        "## Files",
        table(("file", "bytes", "sha256"), ((f"`{f.name}`", f"{f.num_bytes:,}", f"`{f.sha256}`") for f in files)),
    ]
    return "\n\n".join(parts) + "\n"


def measured(facts: CardFacts) -> Iterator[str]:
    """Tables of the evaluation, and of the newest value of each metric by group."""
    if facts.evaluation:
        yield "`ranks evaluate` on this checkpoint:"
        yield table(("metric", "value"), ((f"`{k}`", f"{v:.6g}") for k, v in facts.evaluation.items()))
    newest = newest_values(facts.rows)
    for group, names in by_group(newest).items():
        yield f"{heading(group)}, the newest value up to this checkpoint:"
        yield table(
            ("metric", "value", "iteration"),
            ((f"`{name}`", f"{newest[name][1]:.6g}", f"{newest[name][0]:,}") for name in names),
        )
    if not facts.evaluation and not newest:
        yield "Nothing was measured up to this checkpoint."


def newest_values(rows: Sequence[Row]) -> dict[str, tuple[int, float]]:
    """(iteration, value) of each metric that no rank has alone, by name."""
    found: dict[str, tuple[int, float]] = {}
    for row in rows:
        for name in row:
            value = number(row, name)
            if value is not None and RANK.search(name) is None:
                found[name] = int(row["iteration"]), value
    return found


def use_lines(facts: CardFacts, repo_id: str, place: str) -> Iterator[str]:
    """The commands for a fetched model."""
    extras = ["hub", *([facts.about.workload] if facts.about.workload in WORKLOADS else [])]
    yield f"pip install 'ranks[{','.join(extras)}]'"
    yield f"ranks fetch {repo_id}"
    yield f"cd {place} && python -c 'from model import load; print(load(\".\"))'    # needs torch only"
    yield f"{facts.train_command} --name more --init-from {place}    # train on from it"
    if facts.player:
        yield f"ranks chess play --player {facts.player}:{place}"


def training_rows(facts: CardFacts) -> Iterator[tuple[str, str]]:
    """How, on what and for how long the run has trained."""
    plan, last = facts.plan, facts.rows[-1] if facts.rows else {}
    devices = plan.get("devices")
    kinds = ", ".join(sorted({*map(str, cast("list[Any]", devices))})) if isinstance(devices, list) else "?"
    yield "ranks", f"{plan.get('ranks', '?')} on {kinds}, {plan.get('mode', '?')} mode"
    if isinstance(plan.get("parameters"), int):
        yield "parameters", f"{plan['parameters']:,}"
    yield "time of training", duration(last.get("time_s")) or "-"
    if (sha256 := initial_sha256(facts)) is not None:
        yield "began with", f"the export in FOLDER whose weights have the sha256 {sha256}"
    for name in ("versions", "hardware"):
        part = facts.provenance.get(name)
        if isinstance(part, dict):
            yield name, ", ".join(f"{key} {value}" for key, value in cast("dict[str, Any]", part).items())
    yield "commit", str(facts.provenance.get("git") or "-")


def initial_sha256(facts: CardFacts) -> str | None:
    """The sha256 of the weights with which the run began (`--init-from`); None for new ones."""
    identity = facts.provenance.get("identity")
    found = cast("dict[str, Any]", identity).get("init_from") if isinstance(identity, dict) else None
    return found if isinstance(found, str) else None


def train_command(workload: str, settings: Mapping[str, Any], defaults: Mapping[str, Any]) -> str:
    """`ranks train` with the settings that differ from their defaults, as flags. Both: {"engine": ..., "config": ...},
    without folders of this machine."""
    flags: list[str] = []
    for part in ("engine", "config"):
        before = dict(leaves(defaults[part]))
        for name, value in leaves(settings[part]):
            if before.get(name) != value and (part == "config" or name in ENGINE_FLAGS):
                flags += _flag(name.replace("_", "-"), value)
    return shlex.join(["ranks", "train", _file(workload), *flags])


def leaves(tree: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """('optim.lr', 0.1) for {'optim': {'lr': 0.1}}."""
    for key, value in tree.items():
        if isinstance(value, dict):
            yield from leaves(cast("dict[str, Any]", value), f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def without_folders(value: Any) -> Any:
    """Settings without the folders of this machine: an absolute path becomes its last part, in a command line too."""
    if isinstance(value, dict):
        return {key: without_folders(inner) for key, inner in cast("dict[str, Any]", value).items()}
    if isinstance(value, list | tuple):
        return [without_folders(inner) for inner in cast("list[Any]", value)]
    if not isinstance(value, str):
        return value
    is_path = value.startswith(("/", "~")) and " -" not in value
    return Path(value).name if is_path else PATH.sub("", value)


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of Markdown."""
    lines = [head, ["---"] * len(head), *([cell.replace("|", "\\|") for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _block(lines: Iterable[str]) -> str:
    return "\n".join(["```", *lines, "```"])


def _file(workload: str) -> str:
    return f"./{workload}" if workload.endswith(".py") else workload


def _flag(name: str, value: Any) -> list[str]:
    if isinstance(value, bool):
        parent, dot, last = name.rpartition(".")
        return [f"--{name}" if value else f"--{parent}{dot}no-{last}"]
    if isinstance(value, list):
        return [f"--{name}", ",".join(map(str, cast("list[Any]", value)))]
    return [f"--{name}", "none" if value is None else str(value)]
