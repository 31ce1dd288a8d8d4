"""Evaluates batches of leaves with a net, on the net's device.

    host      packed positions, legal moves  ─►                              ─► priors of legal moves, value
    device                                      planes ─► net ─► legal logits

What is sent of a position: W words, and two bytes for each of the game's most legal moves. What comes back: four bytes
for each of them. On a device, `launch` returns at once and `wait` waits for that batch only, so that the CPU steps the
trees of one batch while the device evaluates others.

Legend: B rows of a batch, W words of a packed position, M the most legal moves of a position.
"""

from __future__ import annotations

import math
import time
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ranks.engine.liveness.heartbeat import heartbeat
from ranks.engine.liveness.work_times import Account
from ranks.errors import UserError
from ranks.search.evaluation import Evaluation, Leaves
from ranks.search.game import Game
from ranks.selfplay.net.encoding import Encoding, Positions, expected_outcome, policy_and_value
from ranks.selfplay.net.evaluation_graphs import EvaluationGraphs
from ranks.selfplay.times import PlayTimes


def batch_arrays(game: Game, rows: int) -> dict[str, tuple[tuple[int, ...], torch.dtype]]:
    """The shape and the type of each array of a `BatchMemory`."""
    return {
        "states_BW": ((rows, len(game.initial)), torch.int64),
        "moves_BM": ((rows, game.max_moves), torch.int16),
        "num_moves_B": ((rows,), torch.int32),
        "priors_BM": ((rows, game.max_moves), torch.float32),
        "value_B": ((rows,), torch.float32),
    }


def batch_bytes(game: Game, rows: int) -> int:
    """The memory of a batch on the host. A batch on a device has copies of the same arrays there."""
    return sum(math.prod(shape) * dtype.itemsize for shape, dtype in batch_arrays(game, rows).values())


class BatchMemory:
    """Host memory of one batch of a fixed number of rows; pinned where the net is on a device."""

    def __init__(self, game: Game, rows: int, device: torch.device) -> None:
        pinned = device.type != "cpu"
        arrays = {
            name: torch.empty(shape, dtype=dtype, pin_memory=pinned).zero_()
            for name, (shape, dtype) in batch_arrays(game, rows).items()
        }
        self.states_BW, self.moves_BM, self.num_moves_B = arrays["states_BW"], arrays["moves_BM"], arrays["num_moves_B"]
        self.priors_BM, self.value_B = arrays["priors_BM"], arrays["value_B"]
        self.leaves = Leaves(
            self.states_BW.numpy().view(np.uint64), self.moves_BM.numpy().view(np.uint16), self.num_moves_B.numpy()
        )
        self.evaluation = Evaluation(self.priors_BM.numpy(), self.value_B.numpy())
        """What the net says of the leaves; complete after `wait`."""
        self.copied: torch.cuda.Event | None = None

    def check_numbers(self, when: str) -> None:
        """Raises UserError where the net's outputs for the leaves are no numbers. `when`: for the error."""
        used_B = self.leaves.num_moves_B > 0
        is_number_B = np.isfinite(self.evaluation.priors_BM).all(1) & np.isfinite(self.evaluation.value_B)
        if (bad := int((used_B & ~is_number_B).sum())) > 0:
            found = f"for {bad} of {int(used_B.sum())} positions it returned NaN or infinite logits or values"
            do = "lower the learning rate, or look for a division by zero or an overflow in the net"
            raise UserError(f"the net's output {when}", found, do)


class BatchEvaluator:
    """Calls a net on batches. The net is in evaluation mode; the caller holds `eval_mode`."""

    def __init__(
        self,
        encoding: Encoding,
        device: torch.device,
        times: PlayTimes,
        num_logits: int = 1,
        graphs: EvaluationGraphs | None = None,
    ) -> None:
        """`num_logits`: the fewest policy logits that the net may return. `graphs`: evaluate by CUDA graphs."""
        self.device, self.times, self.num_logits, self.graphs = device, times, num_logits, graphs

        def planes(positions: Positions) -> Tensor:
            started = time.perf_counter()
            found = encoding.planes(positions)
            times.planes_s += time.perf_counter() - started
            return found

        self.encoding = Encoding(planes, encoding.move_indices)

    def launch(self, net: Any, memory: BatchMemory) -> None:
        """Begin to evaluate a batch. On the CPU it is complete on return."""
        started, planes_s = time.perf_counter(), self.times.planes_s
        if self.graphs is None:
            self._evaluate(net, memory)
        else:
            self.graphs.run(memory, len(memory.value_B), lambda: self._evaluate(net, memory))
        if self.device.type == "cuda":
            memory.copied = torch.cuda.Event()
            memory.copied.record()
        self.times.net_s += time.perf_counter() - started - (self.times.planes_s - planes_s)
        self.times.rows += len(memory.value_B)
        self.times.evaluations += int(np.count_nonzero(memory.leaves.num_moves_B))

    def _evaluate(self, net: Any, memory: BatchMemory) -> None:
        """Queue all work of a batch: from its host memory to its host memory."""
        device = self.device
        positions = Positions(
            memory.states_BW.to(device, non_blocking=True),
            memory.moves_BM.to(device, non_blocking=True).long() & 0xFFFF,
            memory.num_moves_B.to(device, non_blocking=True).long(),
        )
        logits_BM, value = policy_and_value(net, self.encoding, positions, self.num_logits)
        priors_BM = logits_BM.float().softmax(1)
        memory.priors_BM.copy_(priors_BM, non_blocking=True)
        memory.value_B.copy_(expected_outcome(value.float()), non_blocking=True)

    def wait(self, memory: BatchMemory) -> None:
        """Wait until the evaluation of a batch is in host memory."""
        if memory.copied is None:
            return
        started = time.perf_counter()
        heartbeat.wait(Account.COMPUTE)
        memory.copied.synchronize()
        heartbeat.wait_over()
        memory.copied = None
        self.times.waiting_device_s += time.perf_counter() - started
