"""ranks autodown: when it acts (a table), and what it writes when providers keep their word, lie or fail."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import psutil
import pytest

from ranks.cli.main import main
from ranks.engine.runs.folder import SESSIONS_FILE, RunFolder
from ranks.renting.autodown.decision import Rules, Seen, decide
from ranks.renting.autodown.ending import Alarm
from ranks.renting.autodown.paid_time import PaidTime
from ranks.renting.autodown.providers import ProviderAnswer, SkyPilotMachine, kill_tree
from ranks.renting.autodown.run_state import RunState, read_state
from ranks.renting.autodown.watcher import Watcher
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


def test_a_watcher_that_is_started_again_counts_on_but_not_on_another_machine(tmp_path: Path) -> None:
    path, clock = tmp_path / "paid.json", [100.0]

    def paid(machine: str, boot: str, began: float = 1e9, first_sign: float = 5.0) -> PaidTime:
        return PaidTime(path, machine, began, first_sign, lambda: clock[0], boot)

    first = paid("pod 1", "boot 1")
    assert first.elapsed_s() == 0.0
    clock[0] = 150.0
    first.keep()
    clock[0] = 209.0
    first.keep()  # not yet again
    clock[0] = 300.0
    again = paid("pod 1", "boot 1", began=2e9, first_sign=6.0)
    assert again.elapsed_s() == 200.0, "the time without a watcher counts"
    assert not again.is_new(5.0), "a file of before the first watch"
    assert again.is_new(1e9 + 1)
    again.keep()
    clock[0] = 10.0
    restarted = paid("pod 1", "boot 2")
    clock[0] = 15.0
    assert restarted.elapsed_s() == 205.0, "the clock of a machine that was started again begins at 0"
    assert paid("pod 2", "boot 2").elapsed_s() == 0.0
    for damaged in ("{", '{"machine": "pod 1"}', '{"machine": "pod 1", "elapsed_s": NaN, "clock_s": 1}'):
        path.write_text(damaged)
        assert paid("pod 1", "boot 2").elapsed_s() == 0.0


def test_files_of_an_earlier_machine_are_no_run_where_the_clock_is_wrong(tmp_path: Path) -> None:
    """It has begun in 1970. A file of today is then new only where it has changed."""
    paid = PaidTime(tmp_path / "paid.json", "pod 1", began=60.0, first_sign=1.7e9)
    assert not paid.is_new(1.7e9)
    assert paid.is_new(1.7e9 + 1)
    assert not paid.is_new(50.0)


class Ended(Exception):
    """The machine, or the script of the test."""


@dataclass(frozen=True)
class StubMachine:
    title: str = "a machine"
    alarm_s: float = 1e6
    rental: str = "a machine"

    def end(self) -> ProviderAnswer:
        raise Ended

    def look(self) -> ProviderAnswer:
        return ProviderAnswer(True, "")


class Looks:
    """A watcher of a machine whose looks at the run, clocks included, a test writes. `say`: what it has said."""

    def __init__(self, folder: RunFolder, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder, self.monkeypatch = folder, monkeypatch
        self.now_s = self.paid_s = 0.0
        self.wall_s, self.said = time.time(), list[str]()

    def watch(self, rules: Rules, looks: Iterator[RunState]) -> list[str]:
        """Watch to the end of the looks, or of the machine. Returns what was said."""

        def look(folder: RunFolder) -> RunState:
            state = next(looks, None)
            if state is None:
                raise Ended
            return state

        kept = self.folder.path.with_name(".r.autodown.json")
        paid = PaidTime(kept, "a machine", self.wall_s, 0.0, lambda: self.paid_s)
        with self.monkeypatch.context() as patch:
            patch.setattr("ranks.renting.autodown.watcher.read_state", look)
            patch.setattr(time, "time", lambda: self.wall_s)
            watcher = Watcher(
                self.folder, rules, StubMachine(), Alarm(self.said.append), paid, poll_s=0.0, now_s=lambda: self.now_s
            )
            with pytest.raises(Ended):
                watcher.watch()
        return self.said


@pytest.fixture
def looks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Looks:
    (tmp_path / "runs").mkdir()
    return Looks(RunFolder(tmp_path / "runs" / "r"), monkeypatch)


@pytest.mark.parametrize("step_s", [1e7, -1e7])
def test_a_step_of_the_wall_clock_neither_stops_a_run_nor_ends_its_machine(step_s: float, looks: Looks) -> None:
    def script() -> Iterator[RunState]:
        for number in range(10):
            looks.now_s += 5.0
            looks.paid_s += 5.0
            looks.wall_s += step_s if number == 5 else 5.0
            yield replace(TRAINING, last_sign=looks.wall_s)

    assert looks.watch(RULES, script()) == []
    assert looks.watch(RULES, (replace(TRAINING, last_sign=1.0) for _ in range(9))) == [], "files with an old time"


def test_a_run_without_progress_is_stopped_whatever_the_wall_clock_says(looks: Looks) -> None:
    def script() -> Iterator[RunState]:
        for _ in range(3):
            looks.now_s += 300.0
            looks.wall_s -= 300.0
            yield replace(TRAINING, last_sign=looks.wall_s if looks.now_s < 600.0 else 1.0)
        looks.now_s += 300.0
        yield replace(TRAINING, last_sign=1.0)

    assert looks.watch(RULES, script())[0] == "stopping the run: no progress for 10 minutes"


def test_a_machine_that_was_suspended_beyond_its_limit_lets_the_run_save_first(looks: Looks) -> None:
    def script() -> Iterator[RunState]:
        yield TRAINING
        looks.paid_s += 1e6
        for _ in range(3):
            looks.now_s += 150.0
            assert not any(line.startswith("ending") for line in looks.said)
            yield replace(TRAINING, last_sign=looks.now_s)

    said = looks.watch(RULES, script())
    assert said[0].startswith("stopping the run: the limit of time or cost is near")
    assert said[-1] == "ending a machine: the limit of time or cost is reached"


HOLDS = """
import os, signal, sys, time
from pathlib import Path
from ranks.engine.runs.folder import RunFolder
signal.signal(signal.SIGTERM, lambda *_: os.write(1, b"asked\\n"))  # print may be under way
RunFolder(Path(sys.argv[1])).lock()
os.write(1, b"locked\\n")
time.sleep(600)
"""


def test_the_process_that_holds_the_run_is_asked_to_stop_and_killed_after_its_time_to_save(looks: Looks) -> None:
    argv = [sys.executable, "-c", HOLDS, str(looks.folder.path)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as run:
        assert run.stdout is not None
        assert run.stdout.readline() == "locked\n"

        def script() -> Iterator[RunState]:
            yield TRAINING
            looks.now_s += RULES.stuck_s
            yield TRAINING
            assert run.stdout is not None
            assert run.stdout.readline() == "asked\n"
            looks.now_s += RULES.save_s - 1.0
            looks.wall_s += 1e7
            yield TRAINING
            assert run.poll() is None, "it may still save"
            looks.now_s += 1.0
            yield TRAINING
            assert run.wait(60) == -signal.SIGKILL

        try:
            assert looks.watch(RULES, script()) == ["stopping the run: no progress for 10 minutes"]
        finally:
            run.kill()


@pytest.mark.skipif(sys.platform != "linux", reason="it reads /proc")
@pytest.mark.parametrize("host", ["this one", "elsewhere"])
def test_a_process_that_does_not_hold_the_run_gets_no_signal(host: str, looks: Looks) -> None:
    """Its id is that of the run's process in another container, or was used again."""
    lock_fd = looks.folder.lock()
    with subprocess.Popen(["sleep", "600"]) as other:
        name = os.uname().nodename if host == "this one" else host
        looks.folder.path.with_name(".r.lock").write_text(f"process {other.pid} on {name} since 2026-01-01 00:00:00")

        def script() -> Iterator[RunState]:
            for _ in range(4):
                yield TRAINING
                looks.now_s += RULES.stuck_s

        try:
            said = looks.watch(RULES, script())
            assert other.poll() is None
            assert len(said) == 2
            assert said[1] == (
                f"process {other.pid} on {name}, which started the run, is not found here: it gets no "
                "signal, and the machine is ended with it at the limit"
            )
        finally:
            os.close(lock_fd)
            other.kill()


def test_the_watch_goes_on_where_its_time_cannot_be_kept(looks: Looks) -> None:
    looks.folder.path.with_name(".r.autodown.json").mkdir()

    def script() -> Iterator[RunState]:
        for _ in range(3):
            looks.paid_s += 100.0
            yield TRAINING

    (line,) = looks.watch(RULES, script())
    assert line.startswith("the time so far is not kept: ")


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
