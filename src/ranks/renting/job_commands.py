"""The shell commands around a run that every written file has: the doctor before it, evaluation and export after it."""

from __future__ import annotations

import shlex

from ranks.renting.request import Machine


def doctor_command(machine: Machine, runs_dir: str) -> str:
    """Examines a node before anything else, so that a fault costs a minute and not the whole time. On a machine that
    hangs it ends after a quarter of an hour."""
    words = ["timeout", "15m", "ranks", "doctor", "--runs-dir", runs_dir, "--ranks", str(machine.ranks)]
    words += ["--expect", f"{machine.gpu_word.upper()}:{machine.ranks}"] if machine.gpu else ["--gpus", "0"]
    return shlex.join(words)


def result_commands(name: str, runs_dir: str, machine: Machine, then: str | None) -> str:
    """What comes home: the held-out metrics, and weights that plain PyTorch loads. `name` and `runs_dir` are words of
    the shell, in quotes where they need them. `then`: a command of the user after them."""
    gpus = "" if machine.gpu else " --gpus none"
    folder = f"--runs-dir {runs_dir}"
    results = f"ranks evaluate {name} {folder}{gpus} && ranks export {name} {folder}"
    return results if then is None else f"{results} && {{ {then}; }}"
