"""What telemetry.jsonl says: what each rank uses, as the launcher samples it."""

from __future__ import annotations

from collections.abc import Mapping

from ranks.engine.files.jsonl import number
from ranks.watch.lines import JsonRow
from ranks.watch.metric_groups import of_ranks, of_ranks_use

SHOWN: Mapping[str, str] = {"use/gpu_percent": "GPU", "use/cpu_percent": "CPU"}
"""The metric of a progress line, the first one that is known, and its name there."""
MOST_LISTED = 8
"""More ranks are shown as a range."""


def use_parts(row: JsonRow) -> list[str]:
    """Parts of a progress line: 'GPU 98 97 12 99 %', or CPU where no GPU is known, and 'batches ready 8/8 8/8 1/8 8/8'
    of ranks whose data workers read ahead. Empty for a row without."""
    return [part for part in (_processors(row), _queues(row)) if part]


def _processors(row: JsonRow) -> str:
    for metric, word in SHOWN.items():
        values = list(_by_rank(row, metric).values())
        if len(values) > MOST_LISTED:
            return f"{word} {min(values):.0f} to {max(values):.0f} %"
        if values:
            return f"{word} {' '.join(f'{value:.0f}' for value in values)} %"
    return ""


def _queues(row: JsonRow) -> str:
    ready, ahead = _by_rank(row, "use/batches_ready"), _by_rank(row, "use/batches_ahead")
    pairs = [(ready[rank], most) for rank, most in ahead.items() if rank in ready and most > 0]
    if len(pairs) > MOST_LISTED:
        shares = [has / most for has, most in pairs]
        return f"batches ready {min(shares):.0%} to {max(shares):.0%}"
    return f"batches ready {' '.join(f'{has:.0f}/{most:.0f}' for has, most in pairs)}" if pairs else ""


def _by_rank(row: JsonRow, metric: str) -> dict[int, float]:
    """{rank: value} of the ranks that have a number."""
    names = of_ranks(name for name in row if of_ranks_use(name)).get(metric, [])
    return {rank: value for rank, name in names if (value := number(row, name)) is not None}
