"""The GPUs that Modal's guide lists (modal.com/docs/guide/gpu, read in November 2026). Modal's own package takes any
name."""

from __future__ import annotations

from collections.abc import Mapping

from ranks.errors import UserError, nearest

MOST: Mapping[str, int] = {
    "T4": 8,
    "L4": 8,
    "A10": 4,
    "L40S": 8,
    "A100-40GB": 8,
    "A100-80GB": 8,
    "RTX-PRO-6000": 8,
    "H100": 8,
    "H200": 8,
    "B200": 8,
}
"""Modal's name -> how many a container can have."""
MOST_HOURS = 24.0
"""Modal ends one call of a function after a day at most (modal.com/docs/guide/timeouts)."""


def modal_gpu(gpus: str) -> str:
    """'b200:4' -> 'B200:4'. Raises UserError with the nearest name, or the greatest number."""
    name, colon, digits = gpus.partition(":")
    name = name.upper()
    listed = f"Modal has {', '.join(MOST)}"
    if not colon or not digits.isdecimal():
        raise UserError(f"--gpus {gpus}", "a kind and a number of GPUs are needed", "write --gpus B200:4")
    if name not in MOST:
        sizes = [known for known in MOST if known.startswith(f"{name}-")]
        do = f"say which: {' or '.join(f'{size}:{digits}' for size in sizes)}" if sizes else ""
        raise UserError(f"--gpus {gpus}", f"Modal has no GPU {name}", do or nearest(name, list(MOST), listed))
    if not 1 <= int(digits) <= MOST[name]:
        do = f"give 1 to {MOST[name]}"
        raise UserError(f"--gpus {gpus}", f"a container of Modal has at most {MOST[name]} x {name}", do)
    return f"{name}:{int(digits)}"
