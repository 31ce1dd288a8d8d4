"""Processes that share the work of building a data set. They speak JSON, line by line, over their standard streams.

A worker ends as soon as its input does, so it does not outlive the process that started it, however that ends.
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

from ranks.workloads.graph_coloring.data.work import Job, Task, carry_out, task_from_json, task_to_json


class Workers:
    """`count` processes; with one, the work is done in this process."""

    def __init__(self, job: Job, count: int) -> None:
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

    def each(self, tasks: Sequence[Task]) -> Iterator[tuple[int, list[int]]]:
        """(place of the task, its answer), in the order in which they are done."""
        if not self._processes:
            for place, task in enumerate(tasks):
                yield place, carry_out(self.job, task)
            return
        waiting = list(range(len(tasks)))[::-1]
        at_work: dict[int, int] = {}
        with selectors.DefaultSelector() as answers:
            for i, process in enumerate(self._processes):
                assert process.stdout is not None
                answers.register(process.stdout, selectors.EVENT_READ, i)
                if waiting:
                    at_work[i] = waiting.pop()
                    self._send(process, task_to_json(tasks[at_work[i]]))
            while at_work:
                for key, _ in answers.select():
                    i = int(key.data)
                    place, answer = at_work.pop(i), self._answer(self._processes[i])
                    if waiting:
                        at_work[i] = waiting.pop()
                        self._send(self._processes[i], task_to_json(tasks[at_work[i]]))
                    yield place, answer

    @staticmethod
    def _send(process: subprocess.Popen[str], line: str) -> None:
        assert process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # what ended it is told where its answer is read
            process.stdin.write(line + "\n")
            process.stdin.flush()

    @staticmethod
    def _answer(process: subprocess.Popen[str]) -> list[int]:
        assert process.stdout is not None
        line = process.stdout.readline()
        if not line:
            code = process.wait()
            raise RuntimeError(f"a process that made graphs ended with code {code} (-9: killed, perhaps out of memory)")
        answer = json.loads(line)
        if "error" in answer:
            raise RuntimeError(f"a process that made graphs failed:\n{answer['error']}")
        return answer["hashes"]

    def __enter__(self) -> Workers:
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
    """A worker: a job, then tasks, until the input ends; whoever started it then wants nothing more, or is dead."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; the one who started us ends us
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what is printed on the way is no answer
    job, tasks = Job.from_json(sys.stdin.readline()), SimpleQueue[str]()
    threading.Thread(target=_answer_all, args=(job, tasks, answers), daemon=True).start()
    for line in sys.stdin:
        tasks.put(line)
    os._exit(0)


def _answer_all(job: Job, tasks: SimpleQueue[str], answers: TextIO) -> None:
    while True:
        line = tasks.get()
        try:
            answer: dict[str, object] = {"hashes": carry_out(job, task_from_json(line))}
        except Exception:
            answer = {"error": traceback.format_exc()}
        with contextlib.suppress(BrokenPipeError):
            print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main()
