"""CUDA graphs of a net's evaluations: the many small kernels of a batch become one launch.

Source: PyTorch documentation, "CUDA semantics", section "CUDA Graphs".
"""

from __future__ import annotations

from collections.abc import Callable, Hashable

import torch

WARM_UPS = 3
"""Evaluations before the first capture: cuDNN chooses its algorithms, Triton compiles, autocast casts the weights."""


class EvaluationGraphs:
    """One graph for each batch memory, captured at its first evaluation with a set of weights.

    A graph reads the weights where they were at the capture. So `clear` is called before they change,
    and before autocast drops its casts of them.
    """

    def __init__(self, warn: Callable[[str], None]) -> None:
        """`warn` is called once if the net cannot be captured; it is then evaluated without graphs."""
        self._warn = warn
        self._can_capture = True
        self.clear()

    def clear(self) -> None:
        """Forget all graphs and free their memory. No evaluation may be under way."""
        self._graphs: dict[Hashable, torch.cuda.CUDAGraph] = {}
        self._warm_rows: set[int] = set()
        self._pool = torch.cuda.graph_pool_handle()

    def run(self, memory: Hashable, rows: int, evaluate: Callable[[], None]) -> None:
        """Queue the evaluation of a batch of `rows` rows. `evaluate` queues it kernel by kernel: from `memory`, the
        pinned host memory of the batch, to that memory, without waiting for the device."""
        if self._can_capture and memory not in self._graphs:
            self._capture(memory, rows, evaluate)
        if memory in self._graphs:
            self._graphs[memory].replay()
        else:
            evaluate()

    def _capture(self, memory: Hashable, rows: int, evaluate: Callable[[], None]) -> None:
        if rows not in self._warm_rows:
            self._warm_rows.add(rows)
            stream = torch.cuda.Stream()
            stream.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(stream):
                for _ in range(WARM_UPS):
                    evaluate()
            torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        generator = torch.cuda.default_generators[torch.cuda.current_device()]
        before = generator.clone_state()
        try:
            # Graphs run one after the other, so they share memory. Other threads (NCCL's) may go on calling CUDA.
            with torch.cuda.graph(graph, pool=self._pool, capture_error_mode="thread_local"):
                evaluate()
        except RuntimeError as error:
            self._can_capture = False
            self._graphs.clear()
            generator.graphsafe_set_state(before)  # a failed capture leaves it captured: no dropout, no torch.rand
            cause = str(error.__context__ or error).splitlines()[0]  # the end of a failed capture fails too
            self._warn(f"the net cannot be captured as a CUDA graph, so its kernels are launched one by one: {cause}")
            return
        self._graphs[memory] = graph
