"""The sbatch file of a request: the doctor, the run, and what follows it. A run that reaches the time limit is saved
and queued again."""

from __future__ import annotations

import math
import shlex

from ranks.renting.job_commands import doctor_command, result_commands
from ranks.renting.request import Request
from ranks.renting.slurm.cluster import SlurmFit

CPUS_PER_GPU = 4
"""Where the cluster was not asked: most nodes have more. Without a number many clusters give a job one core."""
SIGNAL_S = 120
"""How long before the time limit Slurm sends USR1, which it may do a minute earlier."""
DOCTOR = """# Examine each node, so that a fault costs a minute and not the time limit.
# A later start only prints what is found."""
AGAIN = '[ "${SLURM_RESTART_COUNT:-0}" -gt 0 ]'
TRAP = """
# USR1 comes before the time limit: the run saves, and the job is queued again and continues.
again=no run=
trap 'again=yes; [ -z "$run" ] || {stop}' USR1"""
STOP_LAUNCHER = 'kill -TERM "$run"'
STOP_STEPS = 'scancel --signal=TERM "$SLURM_JOB_ID"'
"""To the ranks themselves: srun that gets SIGTERM kills them at once."""
TRAIN = """
# Train.
{train} &
run=$!
code=138    # what `wait` returns when USR1 interrupts it
while [ "$code" = 138 ]; do
    wait "$run"
    code=$?
done
if [ "$again" = yes ] && [ "$code" = 143 ]; then
    if [ "${{SLURM_RESTART_COUNT:-0}}" -lt {restarts} ]; then
        echo "saved before the time limit; queued again"
        scontrol requeue "$SLURM_JOB_ID" && exit 0
        echo "Slurm does not queue it again: submit this file again to continue"
        exit 143
    fi
    echo "saved before the time limit; that was start {starts} of {starts}: submit this file again to continue"
fi
[ "$code" = 0 ] || exit "$code"
"""


def sbatch_text(
    request: Request, command: str, *, partition: str | None, fit: SlurmFit, options: tuple[str, ...], setup: str
) -> str:
    """The file. `command`: what wrote it; `options`: more options of sbatch; `setup`: shell lines before the first
    command."""
    machine, several = request.machine, request.nodes > 1
    name = shlex.quote(request.name) + ("-seed$SLURM_ARRAY_TASK_ID" if request.seeds else "")
    lines = ["#!/bin/bash", f"# Written by: {command}", "# Read it, change it, start it with sbatch."]
    lines += [f"# {line}" for line in request.price_lines()]
    lines += [f"#SBATCH {option}" for option in _options(request, partition, fit, options)]
    lines += ["", f"name={name}"]
    if several:
        lines.append("export OMP_NUM_THREADS=${SLURM_CPUS_PER_TASK:-1}")
    lines += setup.splitlines()
    doctor = doctor_command(machine, request.runs_dir)
    on_each = ""
    if several:
        cores = f" --cpus-per-task={machine.ranks * _cpus(fit)}" if machine.gpu else ""
        on_each = f"srun --nodes={request.nodes} --ntasks={request.nodes} --ntasks-per-node=1{cores} "
    lines += [TRAP.format(stop=STOP_STEPS if several else STOP_LAUNCHER), "", DOCTOR]
    lines.append(f"{on_each}{doctor} || {AGAIN} || exit 1")
    text = "\n".join(lines) + "\n"
    text += TRAIN.format(train=_train(request), restarts=request.starts - 1, starts=request.starts)
    results = result_commands('"$name"', shlex.quote(request.runs_dir), machine, request.then)
    about = "# What comes home: the held-out metrics, and weights that plain PyTorch loads."
    return f"{text}\n{about}\n{results}\n"


def _cpus(fit: SlurmFit) -> int:
    return fit.cpus_per_gpu or CPUS_PER_GPU


def _options(request: Request, partition: str | None, fit: SlurmFit, options: tuple[str, ...]) -> list[str]:
    machine, several = request.machine, request.nodes > 1
    tasks = machine.ranks if several else 1
    cpus, known = 0 if several else machine.ranks, True
    if machine.gpu is not None:
        cpus, known = _cpus(fit) * (1 if several else machine.ranks), fit.cpus_per_gpu is not None
    minutes = math.ceil(request.hours * 60)
    seeds = ",".join(map(str, request.seeds))
    return [
        f"--job-name={request.name}",
        *([f"--partition={partition}"] if partition else []),
        f"--nodes={request.nodes}",
        f"--ntasks-per-node={tasks}" + ("    # one rank for each GPU" if several and machine.gpu else ""),
        *(
            [f"--gres={':'.join(filter(None, ['gpu', fit.kind, str(machine.ranks)]))}    # on each node"]
            if machine.gpu
            else []
        ),
        *([f"--cpus-per-task={cpus}" + ("" if known else "    # cores: a guess, change it")] if cpus else []),
        f"--time={minutes // 1440}-{minutes // 60 % 24:02}:{minutes % 60:02}:00",
        f"--signal=B:USR1@{min(SIGNAL_S, 20 * minutes)}    # so many seconds before the time limit",
        "--requeue",
        "--open-mode=append",
        f"--output={request.name}-%{'A_%a' if seeds else 'j'}.out",
        *([f"--array={seeds}    # seeds"] if seeds else []),
        *map(shlex.quote, options),
    ]


def _train(request: Request) -> str:
    machine, several = request.machine, request.nodes > 1
    words = ["ranks", "train", request.workload, *request.train, "--runs-dir", request.runs_dir]
    if machine.gpu is None:
        words += ["--gpus", "none"]
    if not several:
        words += ["--ranks", str(machine.ranks)]
    seed = " --seed $SLURM_ARRAY_TASK_ID" if request.seeds else ""
    step = "srun --kill-on-bad-exit=1 " if several else ""
    step += '--cpus-per-task="$SLURM_CPUS_PER_TASK" ' if several and machine.gpu else ""  # srun does not inherit it
    return f'{step}{shlex.join(words)} --name "$name"{seed}'
