"""`ranks chess-spiking weights`: a run's net as the files that a player loads."""

from __future__ import annotations

from pathlib import Path


def weights(run: str, /, *, out: Path) -> int:
    """Write the net of a run as model.safetensors and config.json, as they lie in the package.

    Args:
        run: RUN or RUN/ITERATION; without ITERATION the best checkpoint.
        out: The folder of the two files, which are replaced.
    """
    from ranks.workloads.chess_spiking.players.saved_net import MODEL, to_files
    from ranks.workloads.chess_spiking.players.specs import net_of_run

    asked = f"ranks chess-spiking weights {run} --out {out}"
    saved = net_of_run(run, asked)
    to_files(saved, out, asked)
    print(f"{out}: {saved.source}, {(out / MODEL).stat().st_size / 1e6:.2f} MB")
    return 0
