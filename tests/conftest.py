"""Starts the long tests first, and prints how much CPU time each part of the suite took, with its budget."""

from __future__ import annotations

import atexit
import contextlib
import gc
import os
import signal
import subprocess
import sys
from collections import defaultdict
from collections.abc import Generator, Mapping
from pathlib import Path

import pytest

BUDGETS_S: Mapping[str, int] = {
    "benchmarks": 20,
    "chess": 60,
    "chess_spiking": 40,
    "chess_value": 55,
    "cli": 105,
    "data": 16,
    "docs": 70,
    "engine": 35,
    "forked": 6,
    "fuzz": 5,
    "graph_coloring": 80,
    "hardware": 50,
    "launch": 45,
    "nets": 5,
    "onnx_export": 8,
    "prove": 50,
    "rating": 12,
    "renting": 5,
    "rl": 42,
    "search": 30,
    "selfplay": 32,
    "simulated_device": 55,
    "stock_trading": 75,
    "tests": 10,
    "transfer": 20,
    "hub": 5,
    "video_behavior": 60,
    "watch": 6,
}
"""Seconds of CPU time that the tests of a folder may take on an idle machine, child processes included. Printed, not
asserted. Ten minutes of two cores are 1,200 s. This table is 1,002; ruff, pyright and the set-up take about 180."""

LONGEST_FIRST = ("prove", "docs", "launch", "simulated_device", "stock_trading", "cli")
"""Folders with long files. They start first, so that no worker is left alone with one at the end."""

COSTLIEST = 12
"""How many files the summary names."""

HERE = Path(__file__).parent
CPU_S = pytest.StashKey[float]()

sys.dont_write_bytecode = False  # hundreds of processes import the package: it is compiled once, not by each
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
gc.disable()  # until all modules are imported: their objects stay, and collections take a fifth of the time
atexit.register(gc.freeze)  # the end of the process does not look at them either
os.environ.setdefault("OMP_NUM_THREADS", "1")  # before torch is imported: idle threads wait for work in busy loops


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--executed", action="store_true", help="execute all commands of ranks, and fork none")


def pytest_configure(config: pytest.Config) -> None:
    """Hide GPUs. Let tests fork the commands of `ranks` that they start (tests/forked), and let signals reach those.

    A shell starts a job in the background with SIGINT ignored, nohup one with SIGHUP ignored, and programs inherit it.
    """
    if not all(Path(arg.partition("::")[0]).resolve().is_relative_to(HERE / "cuda") for arg in config.args):
        os.environ["CUDA_VISIBLE_DEVICES"] = ""  # tests train on the CPU on any machine, except those of cuda/ alone
    for number, usual in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, usual)
    if sys.platform == "linux" and not config.getoption("executed"):
        from tests.forked import Popen

        subprocess.Popen = Popen  # type: ignore[misc]


def pytest_collection_finish() -> None:
    """Collect garbage from here on, but do not look at the objects of the imported modules again and again."""
    gc.enable()
    gc.freeze()


def folder_of(nodeid: str) -> str:
    """'tests/cli/flags/test_help.py::test_all' -> 'cli'; files directly in tests/ belong to 'tests'."""
    folders = nodeid.partition("::")[0].split("/")[:-1]
    below = folders[1:] if folders[:1] == [HERE.name] else folders
    return below[0] if below else HERE.name


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Move the tests of LONGEST_FIRST to the front; the order is otherwise kept."""

    def place(item: pytest.Item) -> int:
        folder = folder_of(item.nodeid)
        return LONGEST_FIRST.index(folder) if folder in LONGEST_FIRST else len(LONGEST_FIRST)

    items.sort(key=place)


def cpu_s() -> float:
    """CPU time of this process and of its children. Of those that run, which are servers that fork processes for many
    tests, it has their own time and that of the processes that they have waited for (Linux)."""
    times = os.times()
    running = [int(ticks) for pid in running_children() for ticks in stat_fields(pid)[11:15]]
    """utime, stime, cutime and cstime of proc(5); the state is field 0."""
    ended_s = times.user + times.system + times.children_user + times.children_system
    return ended_s + sum(running) / os.sysconf("SC_CLK_TCK")


def running_children() -> list[str]:
    """The processes that this one's threads have started, and that have not ended. A thread may end meanwhile."""
    found = list[str]()
    for children in Path("/proc/self/task").glob("*/children"):
        with contextlib.suppress(OSError):
            found += children.read_text().split()
    return found


def stat_fields(pid: str) -> list[str]:
    """What /proc says of a process, after its name; nothing where it has ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


@pytest.fixture(scope="session", autouse=True)
def memory_goes_back() -> Generator[None]:
    """A worker makes the worlds of hundreds of tests. With their buffers kept, four workers held 6 GB."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ranks.engine.distributed.world.keep_freed_memory", lambda: None)
        yield


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    item.stash[CPU_S] = cpu_s()
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add the CPU time of a test to its last report, which reaches the main process also from a parallel worker."""
    report = yield
    if call.when == "teardown":
        report.user_properties.append(("cpu_s", cpu_s() - item.stash[CPU_S]))
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """CPU seconds by folder and of the costliest files."""
    folders: defaultdict[str, float] = defaultdict(float)
    files: defaultdict[str, float] = defaultdict(float)
    for reports in terminalreporter.stats.values():
        for report in reports:
            if isinstance(report, pytest.TestReport) and report.when == "teardown":
                spent_s = sum(float(str(value)) for name, value in report.user_properties if name == "cpu_s")
                folders[folder_of(report.nodeid)] += spent_s
                files[report.nodeid.partition("::")[0]] += spent_s
    if len(folders) < 2:
        return
    terminalreporter.section(f"CPU seconds by folder, {sum(folders.values()):.0f} in all")
    for name, spent_s in sorted(folders.items(), key=lambda item: -item[1]):
        budget_s = BUDGETS_S.get(name)
        note = "" if budget_s is None else f" of {budget_s}" + (" (over its budget)" if spent_s > budget_s else "")
        terminalreporter.write_line(f"{spent_s:7.1f}{note}  {name}")
    terminalreporter.section("CPU seconds of the costliest files")
    for name, spent_s in sorted(files.items(), key=lambda item: -item[1])[:COSTLIEST]:
        terminalreporter.write_line(f"{spent_s:7.1f}  {name}")
