"""ranks submit slurm: wrong requests are refused before anything is written, and bash reads the file."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from ranks.cli.main import main
from ranks.renting.request import Machine
from ranks.renting.slurm.cluster import hours_of, parse_sinfo

SINFO = """\
main|4|gpu:b200:8|2-00:00:00|192
main|2|gpu:h100:4(S:0-1)|2-00:00:00|96
debug|1|(null)|30:00|8+
"""
Refused = Callable[[Sequence[str]], str]
WRONG: dict[str, tuple[list[str], str]] = {
    "no way": ([], "no way to start the run was named"),
    "another way": (["slrum"], "did you mean slurm?"),
    "an unknown GPU": (["slurm", "graph-coloring", "--gpus", "B2000:8"], "did you mean B200?"),
    "no number": (["slurm", "graph-coloring", "--gpus", "B200"], "write --gpus B200:8"),
    "too many in a node": (["slurm", "graph-coloring", "--gpus", "B200:64"], "no node has 64 GPUs"),
    "more than the cluster's nodes hold": (["slurm", "graph-coloring", "--gpus", "H100:8"], "give --gpus h100:4"),
    "a GPU that the cluster lacks": (["slurm", "graph-coloring", "--gpus", "L40S:1"], "sinfo lists b200, h100"),
    "too many nodes": (["slurm", "graph-coloring", "--gpus", "B200:8", "--nodes", "5"], "the cluster has 4 such nodes"),
    "no nodes": (["slurm", "graph-coloring", "--gpus", "B200:8", "--nodes", "0"], "it is 1 to 1,024"),
    "partition": (["slurm", "graph-coloring", "--gpus", "B200:8", "--partition", "mian"], "did you mean main?"),
    "a partition with a line break": (
        ["slurm", "graph-coloring", "--gpus", "B200:8", "--partition", "a\nb"],
        "no part",
    ),
    "too long": (
        ["slurm", "graph-coloring", "--gpus", "B200:8", "--hours", "72"],
        "give --hours 48, and more --starts",
    ),
    "no time": (["slurm", "graph-coloring", "--gpus", "B200:8", "--hours", "0"], "it is a minute"),
    "a command of nothing": (["slurm", "graph-coloring", "--gpus", "B200:8", "--then", " "], "the command is empty"),
    "no price": (["slurm", "graph-coloring", "--gpus", "B200:8", "--price", "0"], "it must be a number above 0"),
    "seeds twice": (["slurm", "graph-coloring", "--gpus", "B200:8", "--seeds", "1,1"], "seeds differ"),
    "CPUs without ranks": (["slurm", "graph-coloring", "--gpus", "none"], "give --ranks, 1 to 4096"),
    "more ranks than cores": (["slurm", "graph-coloring", "--gpus", "none", "--ranks", "193"], "at most --ranks 192"),
    "other ranks than GPUs": (["slurm", "graph-coloring", "--gpus", "B200:8", "--ranks", "4"], "has 8 ranks"),
    "a workload": (["slurm", "graph-colouring", "--gpus", "B200:8"], "did you mean graph-coloring?"),
    "a flag of train": (["slurm", "graph-coloring", "--gpus", "B200:8", "--train=--iteratoins 5"], "--iterations?"),
    "a flag that the file sets": (
        ["slurm", "graph-coloring", "--gpus", "B200:8", "--train=--name x"],
        "give --name to",
    ),
    "a line break": (["slurm", "graph-coloring", "--gpus", "B200:8", "--setup", "a\nb"], "holds a line break"),
    "a name": (["slurm", "graph-coloring", "--gpus", "B200:8", "--name", "a b"], "use letters"),
}


@pytest.fixture(autouse=True)
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a `sinfo` that lists three groups of nodes, and a `sbatch` that notes what it gets."""
    bin_ = tmp_path / "bin"
    bin_.mkdir()
    for name, text in (("sinfo", f"cat <<'END'\n{SINFO}END"), ("sbatch", f'echo "$@" > {tmp_path}/submitted')):
        (bin_ / name).write_text(f"#!/bin/sh\n{text}\n")
        (bin_ / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{bin_}:/usr/bin:/bin")
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    return work


@pytest.mark.parametrize("name", sorted(WRONG))
def test_a_wrong_request_is_refused_and_nothing_is_written(
    name: str, cluster: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    argv, found = WRONG[name]
    assert main(["submit", *argv]) == 2
    assert found in capsys.readouterr().err
    assert list(cluster.iterdir()) == []


def test_the_file_names_the_request_and_starts_only_with_yes(cluster: Path, capsys: pytest.CaptureFixture[str]) -> None:
    argv = ["submit", "slurm", "graph-coloring", "--gpus", "B200:8", "--nodes", "2", "--hours", "30", "--starts", "3"]
    argv += [
        "--seeds",
        "1,2",
        "--price",
        "40",
        "--no-forecast",
        "--train=--exact --iterations 9",
        "--sbatch=--account=lab '--comment=two words'",
    ]
    assert main(argv) == 0
    said = capsys.readouterr().out
    path = cluster / "graph-coloring.sbatch"
    text = path.read_text()
    assert text in said
    assert "price: at most 14,400.00 (30 h x 3 starts x 2 nodes x 2 seeds x 40.00 an hour)" in said
    assert "nothing was started; start it: sbatch graph-coloring.sbatch" in said
    assert not (cluster.parent / "submitted").exists()
    for line in (
        "#SBATCH --nodes=2",
        "#SBATCH --ntasks-per-node=8    # one rank for each GPU",
        "#SBATCH --gres=gpu:b200:8    # on each node",
        "#SBATCH --cpus-per-task=24",
        "#SBATCH --time=1-06:00:00",
        "#SBATCH --signal=B:USR1@120    # so many seconds before the time limit",
        "#SBATCH --array=1,2    # seeds",
        "#SBATCH --account=lab",
        "#SBATCH '--comment=two words'",
        "name=graph-coloring-seed$SLURM_ARRAY_TASK_ID",
    ):
        assert line in text.splitlines(), line
    assert '--exact --iterations 9 --runs-dir runs --name "$name" --seed $SLURM_ARRAY_TASK_ID &' in text
    assert text.index("ranks doctor") < text.index("ranks train") < text.index("ranks evaluate")
    assert subprocess.run(["bash", "-n", str(path)]).returncode == 0

    path.write_text(text + "# changed by a person\n")
    assert main([*argv, "--yes"]) == 2
    assert "exists, with other content" in capsys.readouterr().err
    assert main([*argv, "--yes", "--overwrite", "--out", "other.sbatch"]) == 0
    assert (cluster.parent / "submitted").read_text() == "other.sbatch\n"


def test_a_job_on_one_node_gets_the_cores_of_its_gpus(cluster: Path) -> None:
    assert main(["submit", "slurm", "graph-coloring", "--gpus", "B200:4"]) == 0
    path = cluster / "graph-coloring.sbatch"
    assert "#SBATCH --cpus-per-task=96\n" in path.read_text()  # 192 cores and 8 GPUs on a node
    (cluster.parent / "bin" / "sinfo").unlink()
    assert main(["submit", "slurm", "graph-coloring", "--gpus", "B200:4", "--overwrite"]) == 0
    assert "#SBATCH --cpus-per-task=16    # cores: a guess, change it\n" in path.read_text()


@pytest.mark.parametrize(("gres", "line"), [("gpu:nvidia_b200:8", "gpu:nvidia_b200:8"), ("gpu:8", "gpu:8")])
def test_the_kind_of_a_gpu_is_written_as_the_cluster_writes_it(gres: str, line: str, cluster: Path) -> None:
    sinfo = cluster.parent / "bin" / "sinfo"
    sinfo.write_text(sinfo.read_text().replace("gpu:b200:8", gres))
    assert main(["submit", "slurm", "graph-coloring", "--gpus", "B200:8"]) == 0
    assert f"#SBATCH --gres={line} " in (cluster / "graph-coloring.sbatch").read_text()


@pytest.mark.parametrize(
    ("gpus", "word"),
    [("RTX 4090:2", "rtx4090"), ("A100-80GB:8", "a100"), ("nvidia_b200:8", "b200"), ("H100 SXM:8", "h100")],
)
def test_the_word_of_a_gpu(gpus: str, word: str) -> None:
    assert Machine.of(gpus, None).gpu_word == word


def test_sinfo() -> None:
    groups = parse_sinfo(SINFO)
    assert [(g.partition, g.nodes, dict(g.gpus), g.hours, g.cpus) for g in groups] == [
        ("main", 4, {"b200": 8}, 48, 192),
        ("main", 2, {"h100": 4}, 48, 96),
        ("debug", 1, {}, 0.5, 8),
    ]
    assert [hours_of(text) for text in ("1-12:00:00", "infinite", "45:00")] == [36, float("inf"), 0.75]
