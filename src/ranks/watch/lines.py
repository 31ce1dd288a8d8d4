"""Facts of a run in words: pure functions from rows of events.jsonl and metrics.jsonl to lines of text.

Any field may be missing; then its part of the line is left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

Row = Mapping[str, Any]


def plan_lines(plan: Row) -> list[str]:
    """What is about to run, before its first step."""
    devices = [str(d) for d in cast("list[Any]", plan.get("devices") or [])]
    shards, items = _number(plan.get("shards")), _per_shard(plan.get("items_per_shard"))
    batch, start = _number(plan.get("global_batch")), _number(plan.get("start_iteration") or None)
    base = _number(plan.get("base_batch"))
    rule = clean(str(plan.get("lr_rule") or "")) + (f" against a base batch of {base}" if base else "")
    rows = [
        ("ranks", _join(_number(plan.get("ranks")), _on(devices), _counted(plan.get("threads"), "thread", " each"))),
        ("shards", shards),
        ("global batch", f"{batch} = {shards} shards x {items} items" if batch and shards and items else batch),
        ("parameters", _number(plan.get("parameters"))),
        ("learning rate", _join(_number(plan.get("lr")), f"rule {rule}" if rule else "")),
        ("precision", _number(plan.get("precision"))),
        ("mode", _number(plan.get("mode"))),
        ("iterations", _join(_number(plan.get("iterations")), f"from {start}" if start else "")),
        ("expected time", duration(plan.get("expected_s"))),
    ]
    return ["plan", *(f"  {name:<14} {text}" for name, text in rows if text)]


def event_line(event: Row) -> str | None:
    """One line for what happened, None for events that are not shown (plan and finished have lines of their own)."""
    at = f"iteration {_number(event.get('iteration'))}" if event.get("iteration") is not None else ""
    match event.get("event"):
        case "saved":
            return (
                f"saved {clean(str(event['checkpoint']))}" if event.get("checkpoint") else _join("saved", at, comma=" ")
            )
        case "resumed":
            return _join("resumed from", at or "the newest checkpoint", comma=" ")
        case "skipped_update":
            who = f"rank {event['rank']}" if event.get("rank") is not None else "a rank"
            tensor = f" in {clean(str(event['tensor']))}" if event.get("tensor") else ""
            problem = f": {clean(str(event['problem']))}" if event.get("problem") else f" had non-finite values{tensor}"
            return _join(f"update skipped: {who}{problem}", at)
        case "warning":
            return f"warning: {clean(str(event.get('text', '')))}"
        case "note":
            return clean(str(event.get("text", "")))
        case "stopped":
            return _join("stopped after a save", at, "the same command goes on from there")
        case _:
            return None


def progress_line(row: Row, iterations: int | None, remaining_s: float | None) -> str:
    """One line of a log: iterations done, how well, how fast, how long still."""
    total = f"/{iterations:,}" if iterations else ""
    loss = row.get("train/loss")
    return _join(
        f"iteration {_done(row)}{total}",
        f"loss {_number(loss)}" if loss is not None else "",
        _speed(row),
        f"{duration(remaining_s)} left" if remaining_s is not None else "",
    )


def validation_line(row: Row) -> str | None:
    """The evaluations in a row, if it has any."""
    values = {name: value for name, value in row.items() if name.startswith("val/")}
    if not values:
        return None
    return _join(f"iteration {_done(row)}", *(f"{n} {_number(v)}" for n, v in values.items()))


def summary_lines(finished: Row, run_dir: Path) -> list[str]:
    """What came out, where the time went, where everything is, what to type next."""
    metrics = cast("dict[str, Any]", finished.get("metrics") or {})
    split = cast("dict[str, float]", finished.get("time_split") or {})
    total_s = sum(split.values())
    parts = ", ".join(
        f"{name} {value / total_s:.0%}" for name, value in split.items() if total_s > 0 and value / total_s >= 0.005
    )
    goodput = finished.get("goodput")
    name = run_dir.name if run_dir.parent == Path("runs") else str(run_dir)
    rows = [
        *((clean(key), _number(value)) for key, value in metrics.items()),
        ("time", _join(duration(finished.get("seconds")), parts)),
        (
            "goodput",
            f"{goodput:.1%} of the wall time of all sessions was useful work" if isinstance(goodput, float) else "",
        ),
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
        else "ended at the time limit; the same command goes on from there",
        *(f"  {title:<{width}} {text}" for title, text in rows if text),
        "next",
        f"  ranks evaluate {name}",
        f"  ranks export {name}",
        f"  tensorboard --logdir {run_dir / 'tensorboard'}",
    ]


def duration(seconds: Any) -> str:
    """12.3 -> '12 s', 200 -> '3 min 20 s', 7260 -> '2 h 01 min'; '' for what is no number."""
    if not isinstance(seconds, int | float) or isinstance(seconds, bool):
        return ""
    if seconds < 9.95:
        return f"{max(0.0, seconds):.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02} min"


def size(num_bytes: Any) -> str:
    """Bytes in MiB or GiB; '' for what is no number."""
    if not isinstance(num_bytes, int | float) or isinstance(num_bytes, bool):
        return ""
    return f"{num_bytes / 2**30:.1f} GiB" if num_bytes >= 2**30 else f"{num_bytes / 2**20:.0f} MiB"


def clean(text: str) -> str:
    """Without control characters, which a terminal would obey."""
    return "".join(c if c.isprintable() else "?" for c in text.expandtabs(4))


def _done(row: Row) -> str:
    """Iterations finished with this row."""
    iteration = row.get("iteration")
    return f"{iteration:,}" if isinstance(iteration, int) else "?"


def _number(value: Any) -> str:
    if isinstance(value, bool) or value is None:
        return "" if value is None else str(value)
    if isinstance(value, int) or (isinstance(value, float) and value.is_integer() and abs(value) < 1e15):
        return f"{int(value):,}"
    return f"{value:.4g}" if isinstance(value, float) else clean(str(value))


def _per_shard(items: Any) -> str:
    """64.0 -> '64', 1.56 -> '1 or 2': shards differ by one item at most."""
    if not isinstance(items, int | float) or float(items).is_integer():
        return _number(items)
    return f"{int(items):,} or {int(items) + 1:,}"


def _speed(row: Row) -> str:
    speeds = {k[len("time/") : -len("_per_second")]: v for k, v in row.items() if k.endswith("_per_second")}
    return ", ".join(f"{v:,.0f} {k.replace('_', ' ')}/s" for k, v in speeds.items() if isinstance(v, int | float))


def _on(devices: list[str]) -> str:
    kinds = list(dict.fromkeys(devices))
    return f"on {', '.join(kinds)}" if kinds else ""


def _counted(count: Any, word: str, tail: str) -> str:
    return f"{count:,} {word}{'' if count == 1 else 's'}{tail}" if isinstance(count, int) else ""


def _join(*parts: str, comma: str = ", ") -> str:
    return comma.join(part for part in parts if part)
