"""Labelled positions that stream from files larger than what memory should hold.

    python -m benchmarks.chess_value.parts                   10 million generated positions (1.1 GB), 300 batches
    python -m benchmarks.chess_value.parts --millions 100    11 GB on disk

Writes files of generated positions, opens them, and gathers batches in the order of a stream: random ids of an epoch.
Anonymous memory (RssAnon of /proc) is what the process needs; mapped pages (RssFile) are the system's cache, which it
takes back at any time. Both are measured at a tenth of the size and at the whole: the first must not grow with it.
Writes benchmarks/results/chess_parts_DATE.json. Linux only.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.measure import origin, write_result
from ranks.engine.sharding import rng
from ranks.workloads.chess_value.labels.label import Labelled
from ranks.workloads.chess_value.positions.part_files import PART_POSITIONS, PartFiles, PartWriter, as_batch
from tests.chess_value.boards import random_boards

CHUNK = 1 << 16


def memory_mib() -> dict[str, float]:
    """Of this process, now."""
    text = Path("/proc/self/status").read_text()
    return {name: int(kib) / 1024 for name, kib in re.findall(r"^(RssAnon|RssFile):\s+(\d+) kB", text, re.MULTILINE)}


def generated(count: int, first: int, boards_N13: np.ndarray[Any, np.dtype[np.uint64]]) -> Labelled:
    """Different positions: those of real games with other keys and clocks. The score is the id, modulo 20,001."""
    ids = np.arange(first, first + count)
    boards = boards_N13[ids % len(boards_N13)].copy()
    boards[:, 12] = ids.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    return Labelled(
        boards, (ids % 20_001 - 10_000).astype(np.int16), (ids % 3 - 1).astype(np.int8), np.zeros(count, np.int8)
    )


def measured(folder: Path, positions: int, batches: int, batch: int) -> dict[str, Any]:
    """Write, open and stream so many positions."""
    boards_N13 = random_boards(2000)
    writer, first_s = PartWriter(folder, "train"), time.perf_counter()
    for first in range(0, positions, CHUNK):
        writer.add(generated(min(CHUNK, positions - first), first, boards_N13))
    files = writer.end()
    written_s = time.perf_counter() - first_s
    del writer
    parts = PartFiles(files, as_batch)
    assert len(parts) == positions
    before, most, first_s = memory_mib(), 0.0, time.perf_counter()
    for step in range(batches):
        ids_B = rng.integers(rng.key(0, "benchmark", step), torch.arange(batch), 1, positions)[:, 0]
        found = parts.gather(ids_B)
        assert torch.equal(found.cp_B.to(torch.int64), ids_B % 20_001 - 10_000)
        if step % 10 == 0:
            most = max(most, memory_mib()["RssAnon"])
    return {
        "positions": positions,
        "files": len(files),
        "bytes": sum(file.stat().st_size for file in files),
        "written_per_second": round(positions / written_s),
        "gathered_per_second": round(batches * batch / (time.perf_counter() - first_s)),
        "anonymous_mib_before": before["RssAnon"],
        "anonymous_mib_most": most,
        "mapped_mib_after": memory_mib()["RssFile"],
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--millions", type=float, default=10.0)
    parser.add_argument("--batches", type=int, default=300)
    parser.add_argument("--batch", type=int, default=8192)
    parser.add_argument("--folder", type=Path, help="for the files, which are removed; by default a temporary folder")
    args = parser.parse_args()
    about, sizes = origin() | {"positions_of_a_file": PART_POSITIONS}, []
    for share in (0.1, 1.0):
        with tempfile.TemporaryDirectory(dir=args.folder) as folder:
            sizes.append(measured(Path(folder), int(args.millions * 1e6 * share), args.batches, args.batch))
        print({name: round(value, 1) for name, value in sizes[-1].items()}, flush=True)
    growth = sizes[1]["anonymous_mib_most"] - sizes[0]["anonymous_mib_most"]
    print(f"10 times the positions: {growth:+.1f} MiB of memory")
    path = write_result(f"chess_parts_{about['date'][:10]}", about | {"sizes": sizes})
    print(f"results: {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
