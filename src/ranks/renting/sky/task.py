"""The task file of a request: the machine, what is copied there, the watcher that ends it, the run and its results."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from ranks.renting.autodown.run_state import RESULTS
from ranks.renting.job_commands import doctor_command, result_commands
from ranks.renting.request import Request

IDLE_MINUTES = 5
"""After its job has ended, SkyPilot ends the machine when it has been idle for so long."""
WORK = "~/work"
"""The folder on the machine for the files of the user."""
PORT = 29500
YAML_WORDS = ("true", "false", "yes", "no", "on", "off", "null", "~", "y", "n")
"""Words that mean something else in YAML."""

RUN = """\
cd {work}
{doctor} || exit 1
code=1 over=
trap 'exit $code' TERM
mkdir -p {folder} && touch {mark}    # the watcher waits until it is gone
# The watcher ends this job when the run is over, stuck, or at its limit. Without it nothing is trained.
{watch} || exit 1
{train}
code=$?
trap 'over=yes' TERM    # at the limit of time or cost five minutes are left for what follows
{after}
rm -f {mark}
[ -z "$over" ] || exit $code
trap 'exit $code' TERM
# The machine waits for `ranks pull`. The watcher then ends this job, and SkyPilot the machine.
for _ in $(seq {wait_s}); do sleep 1; done
exit $code
"""


@dataclass(frozen=True)
class SkyTask:
    """What the file says besides the request. `files`: of the user, copied to ~/work under their own names. `setup`:
    shell lines. `volume`: a volume of SkyPilot's for the runs. `keep_minutes`: for ranks pull."""

    cloud: str
    accelerator: str
    image: str
    files: Sequence[str]
    setup: str
    volume: str | None
    spot: bool
    disk_gb: int
    max_cost: float | None
    keep_minutes: int
    alarm: str | None
    """A shell command of the user for alarms."""
    secrets: Sequence[str]
    """Names of process variables that hold secrets: SkyPilot hands them on, the file has no value."""


def task_text(request: Request, task: SkyTask, command: str, path: str) -> str:
    """The file. `command`: what wrote it; `path`: where it is written."""
    machine = request.machine
    lines = [f"# Written by: {command}", f"# Read it, change it, start it: {shlex.join(launch(request, task, path))}"]
    lines += [f"# {line}" for line in request.price_lines()]
    lines += [f"name: {_text(request.name)}", f"num_nodes: {request.nodes}", "", "resources:"]
    lines.append(f"  infra: {_text(task.cloud)}")
    if machine.gpu is not None:
        lines.append(f"  accelerators: {_text(f'{task.accelerator}:{machine.ranks}')}    # on each node")
    else:
        lines.append(f"  cpus: {machine.ranks}+")
    lines.append(f"  image_id: {_text('docker:' + task.image)}")
    lines.append(f"  disk_size: {task.disk_gb}    # GB")
    if task.spot:
        lines.append("  use_spot: true    # the cloud may take the machine back; the next one continues the run")
    lines += ["  autostop:", f"    idle_minutes: {IDLE_MINUTES}", "    down: true    # ends the machine"]
    if task.volume is not None:
        lines += ["", "volumes:", f"  /runs: {_text(task.volume)}    # outlives the machine, and all nodes see it"]
    if task.files:
        copied = [f"  {_text(f'{WORK}/{_plain(file)}')}: {_text('./' + _plain(file))}" for file in task.files]
        lines += ["", "file_mounts:", *copied]
    if task.secrets:
        lines += [
            "",
            "secrets:    # --secret NAME hands the value on from your process variables",
            *(f"  {name}: null" for name in task.secrets),
        ]
    setup = f"mkdir -p {WORK}\n{task.setup}\nranks --version\n" if task.setup else f"mkdir -p {WORK}\nranks --version\n"
    lines += ["", "setup: |", *_indented(setup), "", "run: |", *_indented(run_commands(request, task))]
    return "\n".join(lines) + "\n"


def run_commands(request: Request, task: SkyTask) -> str:
    """The shell commands of the job on each node."""
    machine, folder = request.machine, runs_dir(task)
    watch = ["ranks", "autodown", request.name, "--runs-dir", folder, "--provider", "skypilot"]
    watch += ["--idle", f"{IDLE_MINUTES}m", "--keep", f"{task.keep_minutes}m", "--max-hours", f"{request.hours:g}"]
    if request.price is not None:
        watch += ["--price", f"{request.price * request.nodes:g}"]
        watch += ["--max-cost", f"{task.max_cost:g}"] if task.max_cost is not None else []
    watch += ["--alarm", task.alarm] if task.alarm is not None else []
    watched = shlex.join(watch) + " --job $$ --detach"
    after = result_commands(shlex.quote(request.name), folder, machine, request.then)
    after = f'if [ "$code" = 0 ]; then\n    {after}\n    code=$?\nfi'
    if request.nodes > 1:
        watched = f'[ "$SKYPILOT_NODE_RANK" != 0 ] || {watched}'
        after = f'if [ "$SKYPILOT_NODE_RANK" != 0 ]; then exit "$code"; fi    # the first node does the rest\n{after}'
    return RUN.format(
        work=WORK,
        folder=folder,
        mark=f"{folder}/.{shlex.quote(request.name)}.{RESULTS}",
        watch=watched,
        doctor=doctor_command(machine, folder),
        train=_train(request, folder),
        after=after,
        wait_s=60 * task.keep_minutes + 600,
    )


def runs_dir(task: SkyTask) -> str:
    """The folder of the run folders on the machine: on the volume where there is one."""
    return "/runs" if task.volume is not None else "runs"


def launch(request: Request, task: SkyTask, path: str) -> list[str]:
    """The command that starts the file: as a managed job where the cloud may take the machine back."""
    secrets = [word for name in task.secrets for word in ("--secret", name)]
    if task.spot:
        return ["sky", "jobs", "launch", "--name", request.name, *secrets, path]
    end = ["--down", "--idle-minutes-to-autostop", str(IDLE_MINUTES)]
    return ["sky", "launch", "--cluster", request.name, *end, *secrets, path]


def _train(request: Request, folder: str) -> str:
    machine = request.machine
    words = ["ranks", "train", request.workload, *request.train, "--runs-dir", folder, "--name", request.name]
    words += ["--gpus", "none"] if machine.gpu is None else []
    if request.nodes == 1:
        return shlex.join([*words, "--ranks", str(machine.ranks)])
    nodes = f"--nnodes {request.nodes} --nproc-per-node {machine.ranks} --node-rank $SKYPILOT_NODE_RANK"
    first = '--master-addr "$(echo "$SKYPILOT_NODE_IPS" | head -n 1)"'
    return f"{shlex.join(words)} \\\n    {nodes} \\\n    {first} --master-port {PORT} --max-restarts 3"


def _plain(file: str) -> str:
    return file.removeprefix("./").rstrip("/")


def _text(text: str) -> str:
    """A string of YAML, in quotes where it is not a plain word."""
    plain = re.fullmatch(r"[A-Za-z~][\w./~-]*", text, re.ASCII)
    return text if plain and text.lower() not in YAML_WORDS else json.dumps(text)


def _indented(text: str) -> list[str]:
    return [f"  {line}".rstrip() for line in text.rstrip("\n").split("\n")]
