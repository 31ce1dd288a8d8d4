"""What a run does not keep is named where the loop uses it, because a resumed run begins without its state."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from ranks import Learner, OptimConfig, World
from ranks.engine.files.jsonl import read_rows
from ranks.search import TICTACTOE
from ranks.selfplay import ReplayConfig, ReplayWindow, SelfPlay, Snapshots, alphazero_loss
from tests.selfplay.fixtures import ENCODING, net_of, selfplay, single_rank
from tests.selfplay.test_window import open_run

FILES = "the object that writes the kept files"
NAMES = {"learner": "a Learner of this loop", "selfplay": "a SelfPlay of this loop", "window": f"{FILES} 'replay'"}
NAMES |= {"snapshots": f"{FILES} 'snapshots'"}


def warnings(folder: Path) -> list[str]:
    """Of what is not kept."""
    rows = [row for row in read_rows(folder / "r" / "events.jsonl") if row["event"] == "warning"]
    return [row["text"] for row in rows if "is not in keep" in row["text"]]


def train(world: World, left_out: str, iterations: int) -> None:
    """A run that keeps all but one of its parts."""
    net = net_of(TICTACTOE)
    learner = Learner(net, OptimConfig(lr=0.1, schedule="constant"), world)
    source, window = selfplay(world), ReplayWindow(TICTACTOE, ReplayConfig(reuse=1.0), world)
    parts: dict[str, Any] = dict(learner=learner, selfplay=source, window=window, snapshots=Snapshots(net, 1, world))
    with open_run(world, **{name: part for name, part in parts.items() if name != left_out}) as run:
        for iteration in run.iterations(iterations, long=True):
            window.add(source.play(net, iteration))
            for batch in window.batches(16):
                learner.step(partial(alphazero_loss, encoding=ENCODING), batch)
            parts["snapshots"].take(iteration)
    run.finish()


@pytest.mark.parametrize("left_out", NAMES)
def test_what_is_not_in_keep_is_named_once_a_session(left_out: str, tmp_path: Path) -> None:
    for sessions in (1, 2):  # the second one resumes
        with single_rank(runs_dir=tmp_path, name="r") as world:
            train(world, left_out, iterations=2 * sessions)
        assert len(warnings(tmp_path)) == sessions
    assert all(text.startswith(f"{NAMES[left_out]} is not in keep, so a") for text in warnings(tmp_path))


def test_what_another_object_keeps_is_kept(tmp_path: Path) -> None:
    class Both:
        """Holds the states of two objects as one."""

        def __init__(self, **parts: SelfPlay | ReplayWindow) -> None:
            self.parts = parts

        def state_dict(self) -> dict[str, Any]:
            return {name: part.state_dict() for name, part in self.parts.items()}

        def load_state_dict(self, state: dict[str, Any]) -> None:
            for name, part in self.parts.items():
                part.load_state_dict(state[name])

    for iterations in (1, 2):  # the second one resumes
        with single_rank(runs_dir=tmp_path, name="r") as world:
            source, window = selfplay(world), ReplayWindow(TICTACTOE, ReplayConfig(), world)
            with open_run(world, both=Both(source=source, window=window)) as run:
                for iteration in run.iterations(iterations, long=True):
                    window.add(source.play(net_of(TICTACTOE), iteration))
            run.finish()
        assert not warnings(tmp_path)
