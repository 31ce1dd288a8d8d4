"""The app file of a request: a function on Modal's GPUs that trains, evaluates and exports; a volume keeps the runs."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ranks.renting.job_commands import doctor_command, result_commands
from ranks.renting.request import Request

ORIGIN_FLAGS: Mapping[str, tuple[str, str]] = {
    "max_positions": ("int", "--max-positions"),
    "stockfish_games": ("int", "--stockfish-games"),
    "batch_size": ("int", "--global-batch"),
}
"""Flags of the original program's Modal app -> the type, and the flag of `ranks train` that they set."""

TEXT = '''\
{head}
from __future__ import annotations

import shlex
import signal
import subprocess

import modal

NAME = {name}
RUNS = "/runs"
TRAIN = {train}
SAVE_S = {save_s}    # before Modal ends the call, the run is asked to save

app = modal.App({app})
volume = modal.Volume.from_name("ranks-runs", create_if_missing=True)
image = (
    modal.Image.from_registry({image})
    .entrypoint([])    # Modal starts Python in the image, and not ranks
    .workdir("/root"){copies}
)


@app.function(
    image=image,
{devices}
    volumes={{RUNS: volume}},
    timeout={timeout_s},
    retries=modal.Retries(max_retries={retries}, initial_delay=10.0),    # each try resumes from the newest checkpoint
{secrets})
def train(more: list[str]) -> int:
    """Examine the machine, train or continue, then evaluate and export. Raises where a part fails, so that Modal
    tries again."""
    check({doctor})
    run = subprocess.Popen([*TRAIN, *more])
    saved = False
    try:
        code = run.wait(timeout={timeout_s} - SAVE_S)
    except subprocess.TimeoutExpired:
        run.send_signal(signal.SIGTERM)    # save and stop; the next try goes on from there
        code, saved = run.wait(), True
    keep()
    if code == 2:    # bad input, which another try does not change
        return code
    if saved or code:
        raise RuntimeError(f"not finished: exit code {{code}}; saved in the volume ranks-runs")
    check({after})
    keep()
    return code


def keep() -> None:
    """Commit the volume. Outside Modal there is none."""
    if not modal.is_local():
        volume.commit()


def check(command: str) -> None:
    """Run shell commands. Raises CalledProcessError where they fail."""
    subprocess.run(command, shell=True, check=True)


@app.local_entrypoint()
def main({parameters}) -> None:
    """modal run FILE {usage}"""
    more: list[str] = []
{appends}    if train.remote(more):
        raise SystemExit("ranks train refused its flags: read its message above")
    print(f"bring it home: modal volume get ranks-runs {{NAME}} runs/")
'''


@dataclass(frozen=True)
class ModalApp:
    """What the file says besides the request. `gpu`: as Modal writes it, empty for CPUs. `files`: of the user, copied
    into the image's working folder. `secrets`: names of Modal's own secrets."""

    gpu: str
    image: str
    files: Sequence[str]
    secrets: Sequence[str]
    flags: Sequence[str]
    """Those of ORIGIN_FLAGS that the workload has."""


def app_text(request: Request, app: ModalApp, command: str, path: str) -> str:
    """The file. `command`: what wrote it; `path`: where it is written."""
    machine = request.machine
    start = f"modal run --detach {shlex.quote(path)}"
    head = [f"# Written by: {command}", f"# Read it, change it, start it: {start}"]
    head += [f"# {line}" for line in request.price_lines()]
    train = ["ranks", "train", request.workload, *request.train, "--name", request.name, "--runs-dir", "/runs"]
    train += ["--ranks", str(machine.ranks), *([] if machine.gpu else ["--gpus", "none"])]
    copies = "".join(f"\n    .add_local_{_kind(file)}({_text(file)}, {_text(f'/root/{file}')})" for file in app.files)
    parameters = [f"{flag}: {ORIGIN_FLAGS[flag][0]} | None = None" for flag in app.flags]
    timeout_s = int(3600 * request.hours)
    return TEXT.format(
        head="\n".join(head),
        name=_text(request.name),
        train=_list(train),
        app=_text(f"ranks-{request.name}"),
        image=_text(app.image),
        copies=copies,
        devices=f"    gpu={_text(app.gpu)}," if machine.gpu else f"    cpu={machine.ranks}.0,",
        timeout_s=timeout_s,
        save_s=min(600, timeout_s // 4),
        retries=request.starts - 1,
        secrets=_secrets(app.secrets),
        doctor=_text(doctor_command(machine, "/runs")),
        after=_text(result_commands(shlex.quote(request.name), "/runs", machine, request.then)),
        parameters=", ".join([*parameters, 'train_flags: str = ""']),
        usage=" ".join([*(f"[--{flag.replace('_', '-')} N]" for flag in app.flags), "[--train-flags FLAGS]"]),
        appends=_appends(app.flags),
    )


def _kind(file: str) -> str:
    return "dir" if Path(file).is_dir() else "file"


def _text(text: str) -> str:
    """A string of Python in double quotes."""
    return json.dumps(text, ensure_ascii=False)


def _list(words: Sequence[str]) -> str:
    return f"[{', '.join(map(_text, words))}]"


def _secrets(names: Sequence[str]) -> str:
    if not names:
        return ""
    listed = ", ".join(f"modal.Secret.from_name({_text(name)})" for name in names)
    return f"    secrets=[{listed}],\n"


def _appends(flags: Sequence[str]) -> str:
    lines = [
        f'    if {flag} is not None:\n        more += ["{ORIGIN_FLAGS[flag][1]}", str({flag})]\n' for flag in flags
    ]
    return "".join([*lines, "    more += shlex.split(train_flags)\n"])
