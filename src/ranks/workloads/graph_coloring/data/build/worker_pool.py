"""Worker processes for building a data set.

Tasks and results are lines of JSON on their standard input and output.

A worker exits when its input ends, so it does not outlive the process that started it.
"""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import subprocess
import sys
import threading
import traceback
from collections.abc import Iterator, Sequence
from queue import SimpleQueue
from types import TracebackType
from typing import TextIO

from ranks.engine.liveness.heartbeat import heartbeat
from ranks.workloads.graph_coloring.data.build.tasks import BuildJob, BuildTask, run_task, task_from_json, task_to_json


class WorkerPool:
    """`count` worker processes; with one, tasks run in this process."""

    def __init__(self, job: BuildJob, count: int) -> None:
        self.job = job
        environ = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
        self._processes = [
            subprocess.Popen(
                [sys.executable, "-m", __name__],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env=environ,
                text=True,
                encoding="utf-8",
            )
            for _ in range(count if count > 1 else 0)
        ]
        for process in self._processes:
            self._send(process, job.to_json())

    def each(self, tasks: Sequence[BuildTask]) -> Iterator[tuple[int, list[int]]]:
        """Runs all tasks: (index of the task, its result), in the order of completion.

        Each result is a sign of progress, so a rank that builds for long does not count as hanging.
        """
        if not self._processes:
            for index, task in enumerate(tasks):
                result = run_task(self.job, task)
                heartbeat.beat()
                yield index, result
            return
        waiting = list(range(len(tasks)))[::-1]
        running: dict[int, int] = {}
        with selectors.DefaultSelector() as results:
            for i, process in enumerate(self._processes):
                assert process.stdout is not None
                results.register(process.stdout, selectors.EVENT_READ, i)
                if waiting:
                    running[i] = waiting.pop()
                    self._send(process, task_to_json(tasks[running[i]]))
            while running:
                for key, _ in results.select():
                    i = int(key.data)
                    index, result = running.pop(i), self._result(self._processes[i])
                    heartbeat.beat()
                    if waiting:
                        running[i] = waiting.pop()
                        self._send(self._processes[i], task_to_json(tasks[running[i]]))
                    yield index, result

    @staticmethod
    def _send(process: subprocess.Popen[str], line: str) -> None:
        assert process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # the error is raised where its result is read
            process.stdin.write(line + "\n")
            process.stdin.flush()

    @staticmethod
    def _result(process: subprocess.Popen[str]) -> list[int]:
        assert process.stdout is not None
        line = process.stdout.readline()
        if not line:
            code = process.wait()
            raise RuntimeError(f"a worker process ended with code {code} (-9: killed, perhaps out of memory)")
        result = json.loads(line)
        if "error" in result:
            raise RuntimeError(f"a worker process failed:\n{result['error']}")
        return result["hashes"]

    def __enter__(self) -> WorkerPool:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for process in self._processes:
            process.kill()
        for process in self._processes:
            process.wait()
            for stream in (process.stdin, process.stdout):
                assert stream is not None
                with contextlib.suppress(BrokenPipeError):
                    stream.close()


def main() -> None:
    """A worker process: reads a job, then tasks, until its input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole process group; the parent ends this process
    results = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # prints of the work itself go to standard error
    job, tasks = BuildJob.from_json(sys.stdin.readline()), SimpleQueue[str]()
    threading.Thread(target=_run_all, args=(job, tasks, results), daemon=True).start()
    for line in sys.stdin:
        tasks.put(line)
    os._exit(0)


def _run_all(job: BuildJob, tasks: SimpleQueue[str], results: TextIO) -> None:
    while True:
        line = tasks.get()
        try:
            result: dict[str, object] = {"hashes": run_task(job, task_from_json(line))}
        except Exception:
            result = {"error": traceback.format_exc()}
        with contextlib.suppress(BrokenPipeError):
            print(json.dumps(result), file=results, flush=True)


if __name__ == "__main__":
    main()
