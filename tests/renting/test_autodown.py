"""ranks autodown: when it acts (a table), and what it writes when providers keep their word, lie or fail."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from ranks.cli.main import main
from ranks.engine.runs.folder import SESSIONS_FILE, RunFolder
from ranks.renting.autodown.decision import Rules, Seen, decide
from ranks.renting.autodown.providers import SkyPilotMachine, kill_tree
from ranks.renting.autodown.run_state import RunState, read_state
from ranks.transfer.pulled_mark import mark_command

from .stub_provider import Behavior, StubProvider, fails_twice, honest, never_answers, says_stopped

RULES = Rules(
    budget_s=7200.0, stuck_s=600.0, keep_s=900.0, save_s=300.0, restart_s=60.0, start_s=1200.0
)  # the run is stopped after 6000 s
TRAINING = RunState(exists=True, alive=True, last_sign=1.0)
NEW = Seen(RunState(exists=False), started=False, elapsed_s=10.0, silent_s=10.0, down_s=10.0)
TRAINS = Seen(TRAINING, started=True, elapsed_s=100.0, silent_s=1.0, down_s=0.0)
OVER = Seen(RunState(exists=True, ended="finished"), started=True, elapsed_s=100.0, silent_s=5.0, down_s=5.0)
KILLED = replace(OVER, run=RunState(exists=True))
DECISIONS = {
    "no run yet": (NEW, "", ""),
    "no run for long": (replace(NEW, elapsed_s=1200.0), "", "no run has begun"),
    "a launcher that hangs before the run folder": (
        replace(TRAINS, run=RunState(exists=False, alive=True), elapsed_s=1200.0),
        "no run folder",
        "",
    ),
    "files of an earlier machine": (replace(OVER, started=False, down_s=1000.0), "", ""),
    "it trains": (TRAINS, "", ""),
    "silent, not long enough": (replace(TRAINS, silent_s=599.0), "", ""),
    "stuck": (replace(TRAINS, silent_s=600.0), "no progress for 10 minutes", ""),
    "near the limit": (replace(TRAINS, elapsed_s=6000.0), "the limit", ""),
    "at the limit, still saving": (replace(TRAINS, elapsed_s=7200.0, stopping_s=299.0), "the limit", ""),
    "at the limit, never asked to stop": (replace(TRAINS, elapsed_s=7200.0), "the limit", ""),
    "at the limit, and it does not stop": (
        replace(TRAINS, elapsed_s=7200.0, stopping_s=300.0),
        "",
        "the limit of time or cost is reached",
    ),
    "at the limit, and over": (replace(OVER, elapsed_s=7200.0), "", "the limit of time or cost is reached"),
    "over, not pulled": (OVER, "", ""),
    "over, pulled": (replace(OVER, run=replace(OVER.run, pulled=True)), "", "the run finished, and is at home"),
    "over, pulled, still evaluated": (replace(OVER, run=replace(OVER.run, pulled=True, results_due=True)), "", ""),
    "evaluated for too long": (replace(OVER, run=replace(OVER.run, results_due=True), down_s=900.0), "", "nobody has"),
    "over, nobody comes": (replace(OVER, down_s=900.0), "", "nobody has pulled it for 15 minutes"),
    "killed, may come back": (KILLED, "", ""),
    "killed, pulled, may come back": (replace(KILLED, run=replace(KILLED.run, pulled=True)), "", ""),
    "killed and pulled": (
        replace(KILLED, run=replace(KILLED.run, pulled=True), down_s=60.0),
        "",
        "the run was killed, and is at home",
    ),
    "killed, nobody comes": (replace(KILLED, down_s=900.0), "", "the run was killed"),
}


@pytest.mark.parametrize("name", DECISIONS)
def test_when_to_stop_the_run_and_when_to_end_the_machine(name: str) -> None:
    seen, stop_run, end_machine = DECISIONS[name]
    found = decide(seen, RULES)
    assert (bool(found.stop_run), bool(found.end_machine)) == (bool(stop_run), bool(end_machine)), found
    assert stop_run in found.stop_run
    assert end_machine in found.end_machine


def test_without_a_budget_nothing_ends_a_run_that_goes_forward() -> None:
    assert decide(replace(TRAINS, elapsed_s=1e9), Rules()) == decide(TRAINS, Rules())


END = """
import sys
from ranks.renting.autodown.ending import Alarm, end_machine
from ranks.renting.autodown.providers import PROVIDERS, RentedMachine
machine = RentedMachine(PROVIDERS["runpod"], "pod1", "key-of-the-stub", sys.argv[1], alarm_s=float(sys.argv[2]))
end_machine(machine, "a test", Alarm(lambda line: print(line, flush=True), 'echo "$RANKS_ALARM" > alarm'))
"""


@pytest.mark.parametrize(
    ("behavior", "ends", "said"),
    [
        (honest, True, "accepts the request to end: 200 terminating"),
        (says_stopped, False, "the provider says: 200 TERMINATED"),
        (never_answers, False, "does NOT end: timed out"),
    ],
)
def test_the_alarm_rings_while_the_machine_runs_and_nothing_claims_its_end(
    behavior: Behavior, ends: bool, said: str, tmp_path: Path
) -> None:
    with StubProvider(behavior) as stub:
        watcher = subprocess.Popen(
            [sys.executable, "-c", END, stub.api, "60" if ends else "1"],
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            text=True,
            process_group=0,
        )
        stub.machine = watcher.pid
        while watcher.poll() is None and not (tmp_path / "alarm").exists():
            time.sleep(0.05)
        if not ends:
            stub.end_machine()
        text = watcher.communicate()[0]
    assert (tmp_path / "alarm").exists() != ends, text
    assert said in text
    assert "has ended" not in text


def test_a_failed_request_is_repeated(tmp_path: Path) -> None:
    with StubProvider(fails_twice) as stub:
        code = END.replace("import sys\n", "import sys\nimport ranks.renting.autodown.ending as e\ne.RETRY_S = 0.1\n")
        watcher = subprocess.Popen([sys.executable, "-c", code, stub.api, "60"], cwd=tmp_path, process_group=0)
        stub.machine = watcher.pid
        watcher.wait()
        assert stub.ended >= 3


WRONG = {
    "no provider": (["toy"], {}, "the provider of this machine is not known"),
    "an unknown provider": (["toy", "--provider", "runpd"], {}, "did you mean runpod?"),
    "no key": (["toy", "--provider", "runpod"], {"RUNPOD_POD_ID": "pod1"}, "RUNPOD_API_KEY is missing"),
    "a key that is refused": (["toy"], {"RUNPOD_POD_ID": "pod1", "RUNPOD_API_KEY": "wrong"}, "401"),
    "an id that is none": (["toy"], {"RUNPOD_POD_ID": "../x", "RUNPOD_API_KEY": "k"}, "holds no machine's id"),
    "an empty command": (["toy", "--command", " "], {}, "one way to end the machine"),
    "two ways": (["toy", "--command", "poweroff", "--provider", "vast"], {}, "one way to end the machine"),
    "SkyPilot without a job": (["toy", "--provider", "skypilot"], {}, "give --job $$"),
    "a job without SkyPilot": (["toy", "--command", "poweroff", "--job", "1"], {}, "it is for --provider skypilot"),
    "a cap without a price": (["toy", "--command", "poweroff", "--max-cost", "5"], {}, "add --price"),
    "a price of nothing": (["toy", "--command", "poweroff", "--price", "0"], {}, "above 0"),
    "no time for the run": (["toy", "--command", "poweroff", "--max-hours", "1"], {}, "give a higher limit"),
    "no length of time": (["toy", "--command", "poweroff", "--keep", "ten"], {}, "not a length of time"),
    "no name of a run": (["a b", "--command", "poweroff"], {}, "not a valid folder name"),
}


@pytest.mark.parametrize("name", WRONG)
def test_bad_input(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    argv, variables, found = WRONG[name]
    monkeypatch.chdir(tmp_path)
    for variable, value in variables.items():
        monkeypatch.setenv(variable, value)
    with StubProvider(honest) as stub:
        api = ["--api", stub.api] if "--command" not in argv else []
        assert main(["autodown", *argv, *api]) == 2
        assert stub.ended == 0
    said = capsys.readouterr().err
    assert found in said
    assert "wrong" not in said.replace("went wrong", "") or name != "a key that is refused"


def test_what_the_files_of_a_run_say(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "runs/toy")
    assert not read_state(folder).exists
    (folder.checkpoints / "00000040").mkdir(parents=True)
    (folder.path / "run.json").write_text("{}")
    (folder.path / SESSIONS_FILE).write_text('{"event": "opened", "time": 1.0}\n')
    assert read_state(folder).ended is None
    lock_fd = folder.lock()
    assert read_state(folder).alive
    os.close(lock_fd)
    sessions = b'{"event": "opened", "time": 1.0}\n{"event": "finished", "time": 2.0}\n'
    (folder.path / SESSIONS_FILE).write_bytes(sessions)
    state = read_state(folder)
    assert (state.alive, state.ended, state.pulled, state.results_due) == (False, "finished", False, False)
    mark = tmp_path / "runs" / ".toy.results"
    mark.touch()
    assert read_state(folder).results_due
    mark.unlink()
    subprocess.run(["sh", "-c", mark_command("runs/toy", sessions, 30)], cwd=tmp_path, check=True)
    assert not read_state(folder).pulled  # of an older checkpoint
    subprocess.run(["sh", "-c", mark_command("runs/toy/", sessions, 40)], cwd=tmp_path, check=True)
    assert read_state(folder).pulled


def test_a_job_that_does_not_end_is_killed() -> None:
    job = "trap 'exit 1' TERM; (echo ready; exec sleep 1000); :"  # ready: the program has a process
    shell = subprocess.Popen(["bash", "-c", job], stdout=subprocess.PIPE)
    assert shell.stdout is not None
    shell.stdout.readline()
    machine = SkyPilotMachine(shell.pid, idle_s=300.0, kill_s=0.0)
    assert machine.end().text == "its job is asked to end"  # the shell waits for its program
    assert machine.end().text == "its job is killed"
    shell.communicate()  # ends with the last process
    assert shell.returncode != 0
    assert machine.end().text.startswith("its job has ended")


def test_no_process_survives_that_is_started_while_a_job_is_killed() -> None:
    loop = "while true; do sleep 86399 & sleep 0.002; done"
    with subprocess.Popen(["bash", "-c", loop], start_new_session=True) as shell:
        try:
            while len(started := psutil.Process(shell.pid).children(recursive=True)) < 20:
                time.sleep(0.01)
            kill_tree(psutil.Process(shell.pid))
            shell.wait(10)
            _, alive = psutil.wait_procs(started, timeout=10)
            assert not alive
            assert not [p for p in psutil.process_iter(["cmdline"]) if p.info["cmdline"] == ["sleep", "86399"]]
        finally:
            with suppress(ProcessLookupError):
                os.killpg(shell.pid, signal.SIGKILL)


def test_a_machine_that_is_rented_again_counts_from_its_own_start() -> None:
    first, again = SkyPilotMachine(1, 300.0, "sky-1"), SkyPilotMachine(9, 300.0, "sky-1")
    assert first.rental == again.rental != SkyPilotMachine(1, 300.0, "sky-2").rental
