"""Labelled positions that stream from files larger than what memory should hold.

    python -m benchmarks.chess_value.parts                   10 million generated positions (1.1 GB), 300 batches
    python -m benchmarks.chess_value.parts --millions 100    11 GB on disk

Writes files of generated positions and reads them in the two ways that a run does: random ids, as batches are drawn
from the window, and from the first to the last, as `--sources.parts` are, each once. Anonymous memory (RssAnon of
/proc) is what the process needs; mapped pages (RssFile) are the system's cache, which it takes back at any time. Both
are measured at a tenth of the size and at the whole. For batches the first must not grow with it; a stream remembers
the key of each position, which is 8 bytes and up to 8 more while keys are merged.
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
from ranks.workloads.chess_value.positions.part_files import PART_POSITIONS, TRAIN, open_parts
from ranks.workloads.chess_value.positions.part_folder import files_of, writing_parts
from ranks.workloads.chess_value.positions.read_files import SourcePaths, read_files
from ranks.workloads.chess_value.positions.sourced import SourceOptions
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
    boards_N13, first_s = random_boards(2000), time.perf_counter()
    with writing_parts(folder) as writers:
        for first in range(0, positions, CHUNK):
            writers[TRAIN].add(generated(min(CHUNK, positions - first), first, boards_N13))
    written_s = time.perf_counter() - first_s
    files = files_of(folder, verify=False)[TRAIN]
    del writers
    parts = open_parts(files)
    assert len(parts) == positions
    before, most, first_s = memory_mib(), 0.0, time.perf_counter()
    for step in range(batches):
        ids_B = rng.integers(rng.key(0, "benchmark", step), torch.arange(batch), 1, positions)[:, 0].numpy()
        found = parts.read(ids_B)
        assert np.array_equal(found.cp_N, ids_B % 20_001 - 10_000)
        if step % 10 == 0:
            most = max(most, memory_mib()["RssAnon"])
    drawn_s, streamed, streaming_mib, first_s = time.perf_counter() - first_s, 0, 0.0, time.perf_counter()
    for step, chunk in enumerate(read_files(SourcePaths(parts=[folder]), SourceOptions(quiet=False))):
        streamed += chunk.num_positions
        if step % 100 == 0:
            streaming_mib = max(streaming_mib, memory_mib()["RssAnon"])
    assert streamed == positions
    return {
        "positions": positions,
        "files": len(files),
        "bytes": sum(file.stat().st_size for file in files),
        "written_per_second": round(positions / written_s),
        "drawn_per_second": round(batches * batch / drawn_s),
        "streamed_per_second": round(streamed / (time.perf_counter() - first_s)),
        "anonymous_mib_before": before["RssAnon"],
        "anonymous_mib_most": most,
        "anonymous_mib_streaming": streaming_mib,
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
    streaming = sizes[1]["anonymous_mib_streaming"] - sizes[0]["anonymous_mib_streaming"]
    print(f"10 times the positions: {growth:+.1f} MiB for batches, {streaming:+.1f} MiB for the stream")
    path = write_result(f"chess_parts_{about['date'][:10]}", about | {"sizes": sizes})
    print(f"results: {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
