"""ranks submit sky and modal: wrong requests are refused before anything is written; what the files say."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from ranks.cli.main import main
from ranks.launch import gpus
from ranks.renting.sky import package

from .catalog import write_catalog

SKY = ["sky", "graph-coloring", "--no-forecast", "--image", "ghcr.io/me/ranks:1"]
MODAL = ["modal", "graph-coloring", "--no-forecast", "--image", "ghcr.io/me/ranks:1", "--price", "25"]
UNSUPPORTED = {"multi-node": "Multi-node not supported yet", "stop": "Stopping not supported"}
"""Of runpod, as SkyPilot 0.14.1 says; the real package is asked in benchmarks/renting/submitted_files.py."""
WRONG: dict[str, tuple[list[str], str]] = {
    "an unknown GPU": ([*SKY, "--gpus", "B2000X:8"], "did you mean B200?"),
    "half a name": ([*SKY, "--gpus", "H10:8"], "did you mean H100?"),
    "a GPU that nobody has": ([*SKY, "--gpus", "MI300X:8"], "lambda, runpod has no machine with MI300X"),
    "a GPU that this cloud has not": ([*SKY, "--gpus", "L4:1", "--cloud", "lambda"], "lambda has no machine with L4"),
    "a number that nobody has": ([*SKY, "--gpus", "B200:4"], "machines with 1, 8 x B200, not 4"),
    "too many": ([*SKY, "--gpus", "B200:64"], "no node has 64 GPUs"),
    "no number": ([*SKY, "--gpus", "B200"], "write --gpus B200:8"),
    "CPUs without ranks": ([*SKY, "--gpus", "none"], "give --ranks, 1 to 4096"),
    "more cores than there are": ([*SKY, "--gpus", "none", "--ranks", "64"], "it has up to 2"),
    "no price": ([*SKY, "--gpus", "H200:8"], "lists no price for 8 x H200 SXM"),
    "no spot price": ([*SKY, "--gpus", "B200:8", "--spot", "--volume", "v"], "lists no spot price"),
    "an unknown cloud": ([*SKY, "--gpus", "B200:8", "--cloud", "runpd"], "did you mean runpod?"),
    "no image": (["sky", "graph-coloring", "--gpus", "B200:8"], "--image"),
    "no name of an image": ([*SKY[:-1], "My Image", "--gpus", "B200:8"], "no container image"),
    "nodes where there are none": (
        [*SKY, "--gpus", "B200:8", "--cloud", "runpod", "--nodes", "2", "--volume", "v"],
        "SkyPilot says of runpod: Multi-node",
    ),
    "nodes without a common folder": ([*SKY, "--gpus", "B200:8", "--nodes", "2"], "and give --volume NAME"),
    "spot without a volume": ([*SKY, "--gpus", "L4:1", "--spot"], "the run must outlive the machine"),
    "no catalogue": ([*SKY, "--gpus", "B200:8", "--catalog", "nowhere"], "holds no catalogue of SkyPilot"),
    "no time": ([*SKY, "--gpus", "B200:8", "--max-hours", "1"], "leave no time for a run"),
    "a cap of nothing": ([*SKY, "--gpus", "B200:8", "--max-cost", "0"], "above 0"),
    "a cap that leaves no time": ([*SKY, "--gpus", "B200:8", "--max-cost", "5"], "no time for a run"),
    "no name of a cluster": ([*SKY, "--gpus", "B200:8", "--name", "7"], "no clusters of such names"),
    "a missing file": ([*SKY, "--gpus", "B200:8", "--files", "nothing"], "there is no nothing"),
    "a file from above": ([*SKY, "--gpus", "B200:8", "--files", "../x"], "not below this folder"),
    "a value of a secret": ([*SKY, "--gpus", "B200:8", "--secrets", "a=b"], "give the name, not the value"),
    "a flag of train": ([*SKY, "--gpus", "B200:8", "--train=--iteratoins 5"], "--iterations?"),
    "Modal: an unknown GPU": ([*MODAL, "--gpus", "B2000:4"], "did you mean B200?"),
    "Modal: a GPU of two sizes": ([*MODAL, "--gpus", "A100:2"], "say which: A100-40GB:2 or A100-80GB:2"),
    "Modal: too many": ([*MODAL, "--gpus", "A10:8"], "at most 4 x A10"),
    "Modal: no number": ([*MODAL, "--gpus", "B200"], "write --gpus B200:4"),
    "Modal: no price": ([*MODAL[:-2], "--gpus", "B200:4"], "--price"),
    "Modal: too long": ([*MODAL, "--gpus", "B200:4", "--hours", "48"], "give --hours 24, and more --starts"),
    "Modal: a name with periods": ([*MODAL, "--gpus", "B200:4", "--out", "a.b.py"], "no file of such a name"),
    "Modal: a workload": (["modal", "graph-colour", *MODAL[2:], "--gpus", "B200:4"], "did you mean graph-coloring?"),
}


@pytest.fixture(autouse=True)
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder, the catalogue at home, and SkyPilot's package answering for runpod."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    write_catalog(tmp_path / "home/.sky/catalogs/v8")
    monkeypatch.setattr(
        package, "unsupported", lambda cloud, asked: ("0.14.1", UNSUPPORTED if cloud == "runpod" else {})
    )
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_request_is_refused_and_nothing_is_written(
    name: str, work: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    argv, found = WRONG[name]
    assert main(["submit", *argv]) == 2
    assert found in capsys.readouterr().err
    assert list(work.iterdir()) == []


def test_the_task_takes_the_cheapest_cloud_and_always_ends_the_machine(
    work: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (work / "task.py").touch()
    (work / "data").mkdir()
    argv = ["submit", *SKY, "--gpus", "b200:8", "--max-hours", "8", "--max-cost", "300", "--secrets", "HF_TOKEN"]
    assert main([*argv, "--files", "task.py,data/", "--train=--exact --iterations 9"]) == 0
    said = capsys.readouterr().out
    text = (work / "graph-coloring.sky.yaml").read_text()
    assert text in said
    assert "price: at most 319.36 (8 h x 39.92 an hour)" in said
    assert "before they have cost 300.00" in said
    assert "nothing was started; start it: sky launch --cluster graph-coloring --down" in said
    assert "--secret HF_TOKEN graph-coloring.sky.yaml\n" in said  # without it SkyPilot does not hand the variable on
    lines = [line.strip() for line in text.splitlines()]
    for line in (
        "infra: lambda",
        'accelerators: "B200:8"    # on each node',
        'image_id: "docker:ghcr.io/me/ranks:1"',
        "down: true    # ends the machine",
        '~/work/task.py: "./task.py"',
        '~/work/data: "./data"',
        "HF_TOKEN: null",
        "timeout 15m ranks doctor --runs-dir runs --ranks 8 --expect B200:8 || exit 1",
    ):
        assert line in lines, line
    assert "--max-hours 8 --price 39.92 --max-cost 300 --job $$ --detach || exit 1" in text
    assert text.index("ranks doctor") < text.index("autodown") < text.index("ranks train") < text.index("ranks export")
    commands = "\n".join(line.removeprefix("  ") for line in text.partition("run: |\n")[2].splitlines())
    assert subprocess.run(["bash", "-n"], input=commands, text=True).returncode == 0


def test_without_a_gpu_here_the_file_is_written_and_says_how_to_forecast(
    work: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(gpus, "find_gpus", lambda: gpus.Gpus(0))
    argv = [word for word in SKY if word != "--no-forecast"]
    assert main(["submit", *argv, "--gpus", "B200:8", "--max-hours", "8"]) == 0
    said = capsys.readouterr().out
    assert "ranks forecast graph-coloring --gpus 8 --save-profile p.json; then add --profile p.json" in said
    assert "price: at most 319.36" in said
    assert (work / "graph-coloring.sky.yaml").exists()


def test_several_nodes_share_a_volume_and_one_of_them_is_watched(work: Path) -> None:
    argv = ["submit", *SKY, "--gpus", "B200:8", "--nodes", "2", "--volume", "runs"]
    assert main(argv) == 0
    text = (work / "graph-coloring.sky.yaml").read_text()
    assert "  /runs: runs    # outlives the machine, and all nodes see it" in text
    assert '[ "$SKYPILOT_NODE_RANK" != 0 ] || ranks autodown graph-coloring --runs-dir /runs' in text
    assert "--nnodes 2 --nproc-per-node 8 --node-rank $SKYPILOT_NODE_RANK" in text
    assert "--price 79.84" in text  # of both machines


def test_the_app_is_python_that_tries_again_and_keeps_the_runs(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["submit", *MODAL, "--gpus", "B200:4", "--starts", "2", "--max-cost", "60", "--secrets", "hf"]) == 0
    said = capsys.readouterr().out
    text = (work / "graph-coloring_modal.py").read_text()
    compile(text, "graph-coloring_modal.py", "exec")
    assert "price: at most 400.00 (8 h x 2 starts x 25.00 an hour)" in said
    assert "nothing was started; start it: modal run --detach graph-coloring_modal.py" in said
    for part in (
        ".entrypoint([])",
        '.workdir("/root")',
        'gpu="B200:4",',
        "timeout=28800,",
        "retries=modal.Retries(max_retries=1,",
        'secrets=[modal.Secret.from_name("hf")],',
        '"--price", "25", "--max-cost", "60", "--name", "graph-coloring", "--runs-dir", "/runs", "--ranks", "4"]',
    ):
        assert part in text, part


@pytest.mark.parametrize("cloud", [[*SKY, "--gpus", "B200:8"], [*MODAL, "--gpus", "B200:4"]], ids=["sky", "modal"])
def test_a_secret_is_refused_and_is_in_no_file_and_no_output(
    cloud: list[str], work: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    of_variable, of_flag, of_form = "q8Zt3VnB6yLw2KdP", "u7Rf5HcX9mJs4GtQ", "hf_pW3kTz8NbV6rYc2Lx9Qd"
    monkeypatch.setenv("RUNPOD_API_KEY", of_variable)
    arguments = [
        f"--train=--note {of_variable}",
        f"--train=--api-key {of_flag}",
        f"--setup=export HF_TOKEN={of_flag}",
        f"--setup=pip install https://{of_form}@example.org/mine.zip",
        f"--secrets=HF_TOKEN={of_flag}",
        f"--name={of_variable}",
        f"--volume={of_variable}",
        f"--image=ghcr.io/me/{of_variable}:1",
    ]
    for argument in arguments:
        assert main(["submit", *cloud, argument]) == 2, argument
        assert list(work.iterdir()) == [], argument
    assert main(["submit", *cloud, "--secrets", "HF_TOKEN"]) == 0
    said = capfd.readouterr()
    texts = [said.out, said.err, *(path.read_text() for path in work.iterdir())]
    assert len(texts) == 3
    for text in texts:
        assert not any(secret in text for secret in (of_variable, of_flag, of_form))
