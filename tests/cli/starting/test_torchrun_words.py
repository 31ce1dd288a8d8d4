"""ranks train with the words of torchrun, and of the launcher before it."""

from __future__ import annotations

import shlex

import pytest

from ranks.cli.main import main
from ranks.cli.torchrun_words import asks_for_several_machines, torchrun_command

START = ["-m", "torch.distributed.run"]


def test_the_older_words_become_those_of_torchrun() -> None:
    older = shlex.split(
        "./t.py --exact --nnodes=2 --nproc_per_node 8 --node_rank 1 --master_addr node1 --master_port=29500"
    )
    newer = shlex.split("--nnodes 2 --nproc-per-node 8 --node-rank 1 --master-addr node1 --master-port 29500")
    assert asks_for_several_machines(older)
    assert torchrun_command(older) == [*START, *newer, "-m", "ranks", "train", "./t.py", "--exact"]
    elastic = shlex.split("./t.py --nnodes 2 --nproc-per-node 1 --rdzv-backend c10d --rdzv-endpoint a:1 --seed 3")
    assert torchrun_command(elastic) == [*START, *elastic[1:9], "-m", "ranks", "train", "./t.py", "--seed", "3"]
    assert not asks_for_several_machines(["./t.py", "--ranks", "2", "--max-restarts", "1"])


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("--node_rank 1 --master_addr a --nproc-per-node 8", "--nnodes is missing"),
        ("--nnodes 2 --master_addr a", "--nproc-per-node is missing"),
        ("--nnodes 2 --nproc-per-node 8", "add --master-addr"),
        ("--nproc-per-node 8 --nnodes --exact", "no value for --nnodes"),
        ("--nproc-per-node 8 --nnodes", "no value for --nnodes"),
    ],
)
def test_missing_words_are_named(words: str, found: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "graph-coloring", *words.split()]) == 2
    assert found in capsys.readouterr().err


def test_the_launcher_before_torchrun_is_answered_with_the_new_line(capsys: pytest.CaptureFixture[str]) -> None:
    """It starts `python -m ranks --local-rank=0 train ...`."""
    assert main(["--local-rank=0", "train", "./t.py", "--exact"]) == 2
    assert "torchrun --nnodes N --nproc-per-node M -m ranks train ./t.py --exact" in capsys.readouterr().err
