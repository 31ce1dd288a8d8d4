"""Lists of numbers of ranks: --gpus 1,2,4,8, or --ranks 1,2 for CPU cores."""

from __future__ import annotations

from collections.abc import Sequence

from ranks.errors import UserError

MOST_RANKS = 4096


def numbers_of_ranks(prog: str, gpus: Sequence[int] | None, ranks: Sequence[int] | None) -> tuple[list[int], str]:
    """The numbers of ranks, increasing, and what they are called. Raises UserError."""
    if gpus is not None and ranks is not None:
        raise UserError("--gpus with --ranks", "--ranks is for CPU cores", "give one of them")
    name, counts = ("--gpus", gpus) if gpus is not None else ("--ranks", ranks)
    if counts is None:
        raise UserError(prog, "neither --gpus nor --ranks", "give --gpus 1,2,4,8, or --ranks 1,2 for CPU cores")
    wrong = [count for count in counts if not 1 <= count <= MOST_RANKS]
    if wrong or not counts:
        asked = f"{name} {','.join(map(str, counts))}"
        raise UserError(asked, f"numbers from 1 to {MOST_RANKS:,} are needed", f"give {name} 1,2,4,8, for example")
    return sorted(set(counts)), "GPUs" if name == "--gpus" else "ranks"
