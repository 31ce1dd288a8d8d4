"""`ranks chess-value weights`: a run's net as the files that the engine loads."""

from __future__ import annotations

from pathlib import Path


def weights(run: str, /, *, out: Path) -> int:
    """Write the net of a run as nnue.safetensors and config.json, as they lie in the package.

    Args:
        run: RUN or RUN/ITERATION; without ITERATION the best checkpoint.
        out: The folder of the two files.
    """
    from ranks.workloads.chess_value.net.quantise import quantise
    from ranks.workloads.chess_value.players.saved_net import MODEL, from_run, nnue_of, to_files

    asked = f"ranks chess-value weights {run}"
    saved = from_run(run, asked)
    to_files(quantise(nnue_of(saved.model, asked)), saved.source, out, asked)
    print(f"{out}: {saved.source}, {(out / MODEL).stat().st_size / 1e6:.2f} MB")
    return 0
