"""What it costs to open an iteration and to save with a large replay window.

    python window_cost.py --positions 10000000 --cores 0 --folder FOLDER

The window is filled with generated parts of chess positions (30 legal moves each, random content) inside a run with the
tiny net's learner. Then iterations that add nothing: seconds and bytes (read and written by system calls of this
process, from /proc) of opening one, and of a save. At the end seconds of gathering a batch of BATCH positions.
"""

from __future__ import annotations

import argparse
import json
import shutil
import time
from pathlib import Path
from typing import Any

from pace import keep_to

MOVES, GAME_PLIES, BATCH, BATCHES = 30, 100, 256, 100


def generated(iteration: int, positions: int) -> Any:
    """Games with this many positions, of no meaning."""
    import numpy as np

    from ranks.chess.core.rules import CHESS
    from ranks.selfplay.games import NO_KIND, Games
    from ranks.selfplay.records import Records

    rng = np.random.default_rng(iteration)
    number = positions // GAME_PLIES
    positions = number * GAME_PLIES
    game_N = np.arange(number, dtype=np.int64)
    records = Records(
        game_P=np.repeat(game_N, GAME_PLIES),
        ply_P=np.tile(np.arange(GAME_PLIES, dtype=np.int32), number),
        iteration_P=np.full(positions, iteration, np.int32),
        state_PW=rng.integers(0, 2**63, (positions, len(CHESS.initial)), np.uint64),
        move_P=np.zeros(positions, np.uint16),
        full_P=np.ones(positions, np.bool_),
        value_P=rng.random(positions, np.float32),
        kl_P=np.zeros(positions, np.float32),
        num_moves_P=np.full(positions, MOVES, np.uint16),
        legal_E=rng.integers(0, 4096, positions * MOVES, np.uint16),
        share_E=rng.integers(0, 4096, positions * MOVES, np.uint16),
    )
    return Games(
        iteration,
        game_N,
        plies_N=np.full(number, GAME_PLIES, np.int32),
        outcome_N=np.zeros(number, np.int8),
        truncated_N=np.zeros(number, np.bool_),
        resigned_N=np.zeros(number, np.bool_),
        draw_kind_N=np.full(number, NO_KIND, np.int8),
        draw_kinds=CHESS.draw_kinds,
        records=records,
    )


def bytes_moved() -> int:
    """Bytes of all reads and writes of this process."""
    lines = Path("/proc/self/io").read_text(encoding="ascii").split()
    return int(lines[1]) + int(lines[3])


def measure(asked: argparse.Namespace) -> dict[str, Any]:
    """Medians over iterations."""
    import statistics

    import numpy as np
    import torch
    from our_nets import joined, net_and_encoding

    from ranks import Learner, OptimConfig
    from ranks.chess.core.rules import CHESS
    from ranks.engine.runs.run import Run
    from ranks.selfplay import ReplayConfig, ReplayWindow, SelfPlay, SelfPlayConfig

    free = shutil.disk_usage(asked.folder).free
    if free < asked.positions * 300 * 1.5:
        return {"left_out": f"{free / 2**30:.1f} GiB of disk are free"}
    world = joined(asked.folder, f"window{asked.positions}")
    net, encoding = net_and_encoding("tiny", 0)
    learner = Learner(net, OptimConfig(schedule="constant"), world, global_batch=64)
    cfg = ReplayConfig(positions=asked.positions)
    selfplay = SelfPlay(CHESS, encoding, 64, 16, SelfPlayConfig(), world)
    window = ReplayWindow(CHESS, cfg, world)
    parts = -(-asked.positions // asked.part)
    part = -(-asked.positions // parts // GAME_PLIES) * GAME_PLIES
    opening: list[tuple[float, int]] = []
    saving: list[tuple[float, int]] = []
    fill_s = 0.0
    with Run.open(cfg, world, keep=dict(learner=learner, selfplay=selfplay, window=window)) as run:
        total = parts + 2 * asked.iterations
        start, moved = time.perf_counter(), bytes_moved()
        for iteration in run.iterations(total, long=True):
            seconds, number = time.perf_counter() - start, bytes_moved() - moved
            if iteration < parts:
                games = generated(iteration, part)
                start = time.perf_counter()
                window.add(games)
                fill_s += time.perf_counter() - start
            elif iteration > parts:
                # A save is asked for in every second iteration and happens at its end.
                (saving if (iteration - parts) % 2 == 0 else opening).append((seconds, number))
            if iteration >= parts and (iteration - parts) % 2 == 1:
                run.save()
            start, moved = time.perf_counter(), bytes_moved()
        run.finish()
        gather_s = []
        for number in range(BATCHES):
            start = time.perf_counter()
            window.gather(torch.from_numpy(np.random.default_rng(number).integers(0, len(window), BATCH)))
            gather_s.append(time.perf_counter() - start)
        positions, held = len(window), sum(file.size for file in window._kept.files)
    open_s, save_s = (statistics.median(s for s, _ in of) for of in (opening, saving))
    found = {
        "positions": positions,
        "parts": len(window.parts),
        "window_bytes": held,
        "fill_s": round(fill_s, 2),
        "open_s": open_s,
        "open_bytes": statistics.median(b for _, b in opening),
        "save_s": save_s - open_s,
        "save_bytes": statistics.median(b for _, b in saving) - statistics.median(b for _, b in opening),
        "gather_s": statistics.median(gather_s),
        "open_rounds_s": [round(s, 6) for s, _ in opening],
        "save_rounds_s": [round(s, 6) for s, _ in saving],
    }
    world.leave()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--positions", type=int, required=True)
    parser.add_argument("--part", type=int, default=160_000, help="positions of a part")
    parser.add_argument("--iterations", type=int, default=15, help="openings, and as many saves")
    parser.add_argument("--cores", default="0")
    parser.add_argument("--folder", type=Path, required=True)
    asked = parser.parse_args()
    keep_to(asked.cores)
    print(json.dumps(measure(asked)), flush=True)


if __name__ == "__main__":
    main()
