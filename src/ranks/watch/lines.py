"""The text of the console view: pure functions from rows of events.jsonl and metrics.jsonl to lines.

Any field may be missing. Its part of the line is then left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias, cast

from ranks.engine.files.jsonl import number
from ranks.errors import clean
from ranks.progress import duration

JsonRow: TypeAlias = Mapping[str, Any]
EPISODE_REWARD = "rollout/episode_reward"
"""The mean reward of an episode. A workload of yours may have another name with `reward` or `return` in it."""
SMALL_NETWORK = 100_000
"""Networks with fewer parameters gain nothing from more than one CPU thread."""
SHORT_UPDATE_S = 0.02
"""Below this the time of one update says little about the time of an iteration."""
PER_SECOND = "_per_second"


def plan_lines(plan: JsonRow) -> list[str]:
    """The plan of a run, shown before its first step."""
    devices = [str(d) for d in cast("list[Any]", plan.get("devices") or [])]
    start = _number(plan.get("start_iteration") or None)
    exact = plan.get("mode") == "exact"
    rows = [
        ("ranks", _join(_number(plan.get("ranks")), _on(devices), _counted(plan.get("threads"), "thread", " each"))),
        ("hint", _threads_hint(plan, devices)),
        *(_rollout(plan) or [*_self_play(plan), ("global batch", _batch(plan))]),
        ("shards", _number(plan.get("shards")) if exact else ""),
        ("parameters", _number(plan.get("parameters"))),
        ("learning rate", _join(_number(plan.get("lr")), *_schedule(plan))),
        ("precision", _number(plan.get("precision"))),
        ("mode", _number(plan.get("mode"))),
        ("iterations", _join(_number(plan.get("iterations")), f"from {start}" if start else "")),
        ("expected time", _expected(plan)),
    ]
    return ["plan", *(f"  {name:<14} {text}" for name, text in rows if text)]


def event_line(event: JsonRow) -> str | None:
    """One line for an event; None for events that are not shown (plan and finished have several lines)."""
    at = f"iteration {_number(event.get('iteration'))}" if event.get("iteration") is not None else ""
    match event.get("event"):
        case "saved":
            return (
                f"saved {clean(str(event['checkpoint']))}" if event.get("checkpoint") else _join("saved", at, comma=" ")
            )
        case "resumed":
            if event.get("iteration") == 0:
                return "started again from the beginning: no iteration was saved"
            return _join("resumed from", at or "the newest checkpoint", comma=" ")
        case "skipped_update":
            return _skipped_update(event)
        case "warning":
            return f"warning: {clean(str(event.get('text', '')))}"
        case "note":
            return clean(str(event.get("text", "")))
        case "stopped":
            return _join("stopped after a save", at, "the same command resumes from there")
        case _:
            return None


def progress_parts(row: JsonRow, iterations: int | None, remaining_s: float | None) -> list[str]:
    """How far a run is, how well and how fast it trains; the most important part first."""
    total = f"/{iterations:,}" if iterations else ""
    loss, reward = row.get("train/loss"), episode_reward(row)
    parts = (
        f"iteration {_done(row)}{total}" if row else "",
        f"loss {_number(loss)}" if loss is not None else "",
        f"episode reward {_number(reward)}" if reward is not None else "",
        f"{duration(remaining_s)} left" if remaining_s is not None else "",
        *speeds(row),
    )
    return [part for part in parts if part]


def progress_line(row: JsonRow, iterations: int | None, remaining_s: float | None) -> str:
    """The progress of a run as one line of a log."""
    return _join(*progress_parts(row, iterations, remaining_s))


def validation_line(row: JsonRow) -> str | None:
    """The results of an evaluation or a match in a row, None where it has none."""
    values = {name: value for name, value in row.items() if name.startswith(("val/", "match/"))}
    if not values:
        return None
    return _join(f"iteration {_done(row)}", *(f"{n} {_number(v)}" for n, v in values.items()))


def summary_lines(finished: JsonRow, run_dir: Path) -> list[str]:
    """The end of a run: results, where the time went, the files, and commands to use next."""
    metrics = cast("dict[str, Any]", finished.get("metrics") or {})
    of_iteration = cast("dict[str, int]", finished.get("metric_iterations") or {})
    last = max(of_iteration.values(), default=None)
    older = {key: f" (iteration {_number(at)})" for key, at in of_iteration.items() if at != last}
    split = cast("dict[str, float]", finished.get("time_split") or {})
    total_s = sum(split.values())
    parts = ", ".join(
        f"{name} {value / total_s:.0%}" for name, value in split.items() if total_s > 0 and value / total_s >= 0.005
    )
    goodput = finished.get("goodput")
    kept = f"{goodput:.1%} of the time of all sessions went into kept iterations" if isinstance(goodput, float) else ""
    name = run_dir.name if run_dir.parent == Path("runs") else str(run_dir)
    rows = [
        *((clean(key), _number(value) + older.get(key, "")) for key, value in metrics.items()),
        ("time", _join(duration(finished.get("seconds")), parts)),
        ("goodput", kept),
        ("peak memory", size(finished.get("peak_memory_bytes"))),
        ("run folder", str(run_dir)),
        ("checkpoints", str(run_dir / "checkpoints")),
        ("export", clean(str(finished["export"])) if finished.get("export") else ""),
        ("fingerprint", clean(str(finished["fingerprint"])) if finished.get("fingerprint") else ""),
    ]
    width = max(len(title) for title, _ in rows)
    return [
        "finished"
        if finished.get("complete", True)
        else "ended at its limit of time or cost; the same command resumes from there",
        *(f"  {title:<{width}} {text}" for title, text in rows if text),
        "next",
        f"  ranks evaluate {name}",
        *([] if finished.get("export") else [f"  ranks export {name}"]),
        f"  tensorboard --logdir {run_dir / 'tensorboard'}",
    ]


def resume_line(run_dir: Path, iteration: int) -> str:
    """From where the same command resumes after a failure. `iteration`: of the newest checkpoint, 0 or -1 where none
    was saved after the start."""
    if iteration <= 0:
        return "no iteration was saved: the same command starts from the beginning"
    return f"the same command resumes from iteration {iteration:,} ({run_dir / 'checkpoints' / f'{iteration:08d}'})"


def episode_reward(row: JsonRow) -> float | None:
    """The mean reward of an episode in a row of an RL run; None where no episode ended."""
    others = (n for n in row if n.startswith("rollout/") and ("reward" in n or "return" in n) and "step" not in n)
    name = next((n for n in (EPISODE_REWARD, *others) if n in row), None)
    return number(row, name) if name is not None else None


def speeds(row: JsonRow) -> list[str]:
    """Every speed in a row, with what it counts: `time/env_steps_per_second` -> '9,000 env steps/s'.

    `samples` are what the updates took. They are left out where the row has a more specific speed.
    """
    found = {
        name.removeprefix("time/").removesuffix(PER_SECOND): value
        for name in row
        if name.startswith("time/") and name.endswith(PER_SECOND) and (value := number(row, name)) is not None
    }
    shown = {name: value for name, value in found.items() if name != "samples"} or found
    return [f"{value:,.0f} {name.replace('_', ' ')}/s" for name, value in shown.items()]


def size(num_bytes: Any) -> str:
    """Bytes in KiB, MiB or GiB; empty for anything that is not a number."""
    if not isinstance(num_bytes, int | float) or isinstance(num_bytes, bool):
        return ""
    if num_bytes >= 2**30:
        return f"{num_bytes / 2**30:.1f} GiB"
    return f"{num_bytes / 2**20:.0f} MiB" if num_bytes >= 2**20 else f"{num_bytes / 2**10:.0f} KiB"


def iterations_done(row: JsonRow) -> int | None:
    """How many iterations are finished with this row of metrics.jsonl."""
    iteration = row.get("iteration")
    return iteration if isinstance(iteration, int) else None


def _done(row: JsonRow) -> str:
    done = iterations_done(row)
    return f"{done:,}" if done is not None else "?"


def _skipped_update(event: JsonRow) -> str:
    """'update 17 skipped: the loss is NaN on rank 1': the event's `problem` names the loss before any tensor."""
    update = _join("update", _number(event.get("update")), "skipped", comma=" ")
    problem = clean(str(event.get("problem") or "a loss or a gradient is not finite"))
    who = f"on rank {event['rank']}" if event.get("rank") is not None else ""
    return f"{update}: {_join(problem, who, comma=' ')}"


def _threads_hint(plan: JsonRow, devices: Sequence[str]) -> str:
    """On a busy machine, threads that wait for each other make the updates of a small network many times slower."""
    parameters, threads = plan.get("parameters"), plan.get("threads")
    if not isinstance(parameters, int) or not isinstance(threads, int) or set(devices) != {"cpu"}:
        return ""
    return "so small a network trains best with --threads 1" if threads > 1 and parameters < SMALL_NETWORK else ""


def _rollout(plan: JsonRow) -> list[tuple[str, str]]:
    """The environments, rollouts and updates of PPO, with the names of Stable-Baselines3; empty for other runs."""
    names = ("n_envs", "n_steps", "epochs", "minibatches")
    sizes = [plan.get(name) for name in names]
    if not all(isinstance(size, int) and size > 0 for size in sizes):
        return []
    n_envs, n_steps, epochs, minibatches = cast("list[int]", sizes)
    steps, updates = n_envs * n_steps, epochs * minibatches
    return [
        ("environments", _join(f"{n_envs:,}", _per_rank(cast("list[int]", plan.get("envs_per_rank") or [])))),
        ("rollout", f"{steps:,} steps = {n_steps:,} steps (n_steps) x {n_envs:,} environments (n_envs)"),
        (
            "updates",
            f"{updates:,} a rollout = {epochs:,} epochs (n_epochs) x {minibatches:,} minibatches "
            f"of {steps // minibatches:,} steps (batch_size)",
        ),
    ]


def _self_play(plan: JsonRow) -> list[tuple[str, str]]:
    """The games, the search and the replay window of self-play; empty for other runs."""
    slots, search = plan.get("slots"), plan.get("search")
    if not isinstance(slots, int) or not isinstance(search, str):
        return []
    per_rank = _per_rank(cast("list[int]", plan.get("slots_per_rank") or []))
    games = _counted(plan.get("games_per_iteration"), "game", " or more an iteration")
    simulations = _counted(plan.get("simulations"), "simulation", "") if plan.get("simulations") else ""
    positions = _counted(plan.get("window_positions"), "position", "")
    reuse = f"each new one used {plan['reuse']:g} times" if isinstance(plan.get("reuse"), int | float) else ""
    return [
        ("self-play", _join(f"{slots:,} games at a time", per_rank, games)),
        ("search", _join(clean(search), simulations)),
        ("replay window", _join(positions, reuse)),
    ]


def _expected(plan: JsonRow) -> str:
    """The time of all updates. For short updates it is left out: the loop around them takes as long."""
    iteration_s = plan.get("iteration_s")
    if isinstance(iteration_s, float) and iteration_s < SHORT_UPDATE_S:
        return ""
    return _join(duration(plan.get("expected_s")), "evaluations not counted") if plan.get("expected_s") else ""


def _batch(plan: JsonRow) -> str:
    """The global batch and its division: between shards in exact mode, between ranks in fast mode."""
    batch, shards = plan.get("global_batch"), plan.get("shards")
    if not isinstance(batch, int):
        return ""
    if plan.get("mode") == "exact" and isinstance(shards, int) and shards > 0:
        items = [batch * (s + 1) // shards - batch * s // shards for s in range(shards)]
        return f"{batch:,} = {shards:,} shards x {_range(items)} items"
    return _join(f"{batch:,}", _per_rank(cast("list[int]", plan.get("items_per_rank") or [])))


def _per_rank(items: Sequence[int]) -> str:
    """[16, 16] -> '16 on each of 2 ranks', [20, 12] -> '20 + 12 on 2 ranks'; empty for one rank."""
    if len(items) < 2:
        return ""
    if max(items) - min(items) <= 1:
        return f"{_range(items)} on each of {len(items)} ranks"
    return f"{' + '.join(f'{n:,}' for n in items)} on {len(items)} ranks"


def _range(counts: Sequence[int]) -> str:
    """[4, 4] -> '4', [1, 2, 1] -> '1 or 2'."""
    low, high = min(counts), max(counts)
    return f"{low:,}" if low == high else f"{low:,} or {high:,}"


def _schedule(plan: JsonRow) -> list[str]:
    """How the learning rate was scaled to the batch, and how it changes over the updates."""
    rule, base, schedule = plan.get("lr_rule"), _number(plan.get("base_batch")), plan.get("schedule")
    warmup, end = plan.get("warmup_updates"), _number(plan.get("schedule_updates"))
    scaled = f"scaled by the {clean(str(rule))} rule" + (f" from a base batch of {base}" if base else "")
    shape = f"{clean(str(schedule))} to update {end}" if end and schedule != "constant" else clean(str(schedule))
    return [
        scaled if rule and rule != "none" else "",
        shape if schedule else "",
        f"warm-up {_number(warmup)}" if warmup is not None else "",
    ]


def _number(value: Any) -> str:
    if isinstance(value, bool) or value is None:
        return "" if value is None else str(value)
    if isinstance(value, int) or (isinstance(value, float) and value.is_integer() and abs(value) < 1e15):
        return f"{int(value):,}"
    return f"{value:.4g}" if isinstance(value, float) else clean(str(value))


def _on(devices: list[str]) -> str:
    kinds = list(dict.fromkeys(devices))
    return f"on {', '.join(kinds)}" if kinds else ""


def _counted(count: Any, word: str, tail: str) -> str:
    return f"{count:,} {word}{'' if count == 1 else 's'}{tail}" if isinstance(count, int) else ""


def _join(*parts: str, comma: str = ", ") -> str:
    return comma.join(part for part in parts if part)
