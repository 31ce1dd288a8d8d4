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


def use_part(row: JsonRow) -> str:
    """'GPU 98 97 12 99 %', one number for each rank; of the CPU where no GPU is known. Empty for a row without."""
    lines = of_ranks(name for name in row if of_ranks_use(name))
    for title, word in SHOWN.items():
        values = [value for _, name in lines.get(title, []) if (value := number(row, name)) is not None]
        if len(values) > MOST_LISTED:
            return f"{word} {min(values):.0f} to {max(values):.0f} %"
        if values:
            return f"{word} {' '.join(f'{value:.0f}' for value in values)} %"
    return ""
