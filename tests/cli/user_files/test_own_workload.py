"""A user's workload: the file that `ranks new` writes, its evaluation and export, and errors of environments.

The whole way, from that file through a kill to weights in plain torch, is a page of the docs:
tests/docs/test_pages.py."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from ranks.cli.main import main
from tests.cli.conftest import HERE, ranks
from tests.engine.export.plain_torch import value_of


def test_the_written_file_is_short_and_has_the_new_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["new", "my-task"]) == 0
    text = (tmp_path / "my_task.py").read_text()
    assert len(text.splitlines()) < 100
    assert "ranks train ./my_task.py" in text
    assert "ranks evaluate my_task" in text
    assert "template" not in text


def test_evaluation_and_export_as_json(trained: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["evaluate", "spirals", "--gpus", "none", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["run"], found["workload"], found["iteration"]) == ("spirals", "./spirals.py", 20)
    assert 1 / 3 < found["metrics"]["accuracy"] <= 1
    assert main(["export", "spirals", "--json"]) == 0
    files = [Path(entry["path"]) for entry in json.loads(capsys.readouterr().out)["files"]]
    assert [path.name for path in files] == ["model.safetensors", "config.json", "model.py"]
    assert all((trained / path).is_file() for path in files)


# On-policy ------------------------------------------------------------------------------------------------------------

TINY = [
    *("--gpus", "none", "--n-envs", "4", "--n-steps", "12", "--hidden", "8", "--eval-every", "2"),
    *("--eval-episodes", "1", "--ppo.epochs", "1", "--ppo.minibatches", "2", "--optim.schedule", "constant"),
]


def rows(folder: Path, run: str) -> list[dict[str, float]]:
    return [json.loads(line) for line in (folder / "runs" / run / "metrics.jsonl").read_text().splitlines()]


def test_an_on_policy_workload_trains_on_two_ranks_resumes_on_one_and_exports(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """With workers, which must not take the end of a run for a stop."""
    pytest.importorskip("gymnasium")
    monkeypatch.chdir(tmp_path)
    assert main(["new", "swing", "--shape", "on-policy", "--env", "Pendulum-v1"]) == 0
    text = Path("swing.py").read_text()
    assert 'env: str = "Pendulum-v1"' in text
    assert "template" not in text.replace('"', " ").split()
    train = ["train", "./swing.py", *TINY, "--lstm-hidden", "4", "--exact", "--shards", "2"]
    done = ranks(*train, "--name", "swing", "--ranks", "2", "--iterations", "2", "--workers", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    for name in ("swing", "uninterrupted"):
        capsys.readouterr()
        assert main([*train, "--name", name, "--ranks", "1", *HERE, "--iterations", "3"]) == 0
        assert ("resumed" in capsys.readouterr().out) == (name == "swing")
    found = rows(tmp_path, "swing")
    assert [row["iteration"] for row in found] == [1, 2, 3]
    assert all(row["train/num_updates"] == 2 for row in found)
    assert ["val/episode_length" in row for row in found] == [False, True, True]
    capsys.readouterr()
    assert main(["fingerprint", "swing"]) == main(["fingerprint", "uninterrupted"]) == 0
    assert len(set(capsys.readouterr().out.split())) == 1, "a resume on another number of ranks changed the result"
    assert main(["export", "swing"]) == 0
    expression = "net(torch.ones(2, 3), net.start_state(2))[0].abs().sum()"
    assert 0 < value_of(expression, tmp_path / "runs" / "swing" / "export") < 1


def test_a_self_play_workload_trains_on_two_ranks_resumes_on_one_and_exports(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["new", "four", "--shape", "self-play"]) == 0
    assert "template" not in Path("four.py").read_text().replace('"', " ").split()
    tiny = ["--slots", "4", "--games-per-iteration", "4", "--width", "4", "--layers", "1", "--global-batch", "32"]
    tiny += ["--selfplay.simulations", "4", "--eval-games", "2", "--eval-every", "2", "--exact", "--shards", "2"]
    train = ["train", "./four.py", *tiny, "--gpus", "none"]
    done = ranks(*train, "--name", "four", "--ranks", "2", "--iterations", "2", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    for name in ("four", "uninterrupted"):
        assert main([*train, "--name", name, "--ranks", "1", *HERE, "--iterations", "3"]) == 0
    found = rows(tmp_path, "four")
    assert [row["iteration"] for row in found] == [1, 2, 3]
    assert all(row["rollout/games"] >= 4 and row["selfplay/batch_fill"] > 0.5 for row in found)
    assert ["val/score" in row for row in found] == [False, True, True]
    capsys.readouterr()
    assert main(["fingerprint", "four"]) == main(["fingerprint", "uninterrupted"]) == 0
    assert len(set(capsys.readouterr().out.split())) == 1, "a resume on another number of ranks changed the result"
    assert main(["export", "four"]) == 0
    assert value_of("net(torch.ones(2, 2, 7, 6))[0].abs().sum()", tmp_path / "runs" / "four" / "export") > 0


def test_an_unknown_environment_is_one_error_also_on_two_ranks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refused: Callable[[Sequence[str]], str]
) -> None:
    pytest.importorskip("gymnasium")
    monkeypatch.chdir(tmp_path)
    assert main(["new", "pole", "--shape", "on-policy"]) == 0
    argv = ["train", "./pole.py", *TINY, "--env", "NoSuch-v0", "--ranks"]
    assert "NoSuch" in refused([*argv, "1", *HERE]).splitlines()[0]
    done = ranks(*argv, "2", cwd=tmp_path)
    assert done.returncode == 2
    lines = done.stderr.splitlines()
    assert [line[:7] for line in lines] == ["asked: ", "found: ", "   do: "], done.stderr
    assert "NoSuch" in lines[0]
    assert not (tmp_path / "runs" / "pole").exists()


@pytest.mark.parametrize(
    ("flag", "value"),
    [
        *[(f"--{name}", "0") for name in ("iterations", "n-envs", "n-steps", "hidden", "eval-episodes")],
        *(("--eval-every", "0"), ("--eval-steps", "0"), ("--n-steps", "-1"), ("--lstm-hidden", "-1")),
    ],
)
def test_a_count_below_its_minimum_is_refused_before_training(
    flag: str, value: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refused: Callable[[Sequence[str]], str]
) -> None:
    pytest.importorskip("gymnasium")
    monkeypatch.chdir(tmp_path)
    assert main(["new", "pole", "--shape", "on-policy"]) == 0
    least = 0 if flag == "--lstm-hidden" else 1
    message = refused(["train", "./pole.py", *TINY, flag, value])
    assert f"asked: {flag} {value}\n" in message
    assert f"give {flag} {least} or more" in message
    assert not (tmp_path / "runs").exists()


def test_a_reward_that_is_not_finite_is_refused_and_the_run_resumes_after_a_fix(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No checkpoint has the bad reward. A process of its own trains with the broken file: this one has imported it."""
    pytest.importorskip("gymnasium")
    monkeypatch.chdir(tmp_path)
    assert main(["new", "pole", "--shape", "on-policy"]) == 0
    good = Path("pole.py").read_text()
    broken = "    return gymnasium.wrappers.TransformReward(make_env(cfg.env), lambda reward: float('nan'))\n"
    train = ["train", "./pole.py", *TINY, "--ppo.scale-rewards", "--save-every", "1", "--ranks", "1", *HERE]
    assert main([*train, "--iterations", "1"]) == 0
    Path("pole.py").write_text(good.replace("    return make_env(cfg.env)\n", broken))
    done = ranks(*train, "--iterations", "2", cwd=tmp_path)
    assert done.returncode == 2, done.stderr
    assert "its reward at step 0 of iteration 1 is not finite" in done.stderr
    assert "Traceback" not in done.stderr
    Path("pole.py").write_text(good)
    assert main([*train, "--iterations", "2"]) == 0
    assert [row["iteration"] for row in rows(tmp_path, "pole")] == [1, 2]


def test_a_supervised_workload_has_no_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refused: Callable[[Sequence[str]], str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert "add --shape on-policy" in refused(["new", "mine", "--env", "CartPole-v1"])
    assert not list(tmp_path.iterdir())
