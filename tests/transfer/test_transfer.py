"""ranks push and ranks pull, against a real sshd on the loopback interface."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from ranks import RunConfig, World
from ranks.cli.main import main
from ranks.engine.runs.checkpoints import checkpoint
from ranks.engine.runs.checkpoints.manifest import read_manifest
from ranks.errors import UserError
from ranks.transfer.listing import list_files
from ranks.transfer.remote import ConnectionCut, Remote, parse_place
from ranks.transfer.rsync import Copy, FilesGone, copy_files, failure
from tests.toys import images

from .sshd import LocalSshd, missing_program

Say = Callable[[Sequence[str]], tuple[int, str, str]]
needs_sshd = pytest.mark.skipif(missing_program() is not None, reason=f"no {missing_program()} here")
COPY = Copy(Remote("gpu-box"), "/data", "there", ["a"], upload=True)


@pytest.fixture(scope="module")
def sshd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalSshd]:
    with LocalSshd(tmp_path_factory.mktemp("sshd")) as running:
        yield running


@pytest.fixture(scope="module")
def far(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of another machine, with a run that has not finished: 20 of 40 iterations."""
    folder = tmp_path_factory.mktemp("far")
    train(folder / "runs", 40, stop_at=20)
    return folder


def train(runs_dir: Path, iterations: int, stop_at: int | None = None) -> str:
    """Begin or continue the run `toy`; its fingerprint. `stop_at`: it looks as if killed there."""
    config = RunConfig(exact=True, threads=1, runs_dir=runs_dir, name="toy", save_every="5")
    world = World.join(config, device="cpu", workload="images")
    try:
        schedule = images.OptimConfig(lr=3e-3, warmup_updates=5, schedule_updates=iterations)
        cfg = images.Config(iterations=stop_at or iterations, eval_every=10, optim=schedule)
        found = images.train(cfg, world).fingerprint
    finally:
        world.leave()
    if stop_at is not None:
        sessions = runs_dir / "toy" / "sessions.jsonl"
        sessions.write_text("".join(f"{line}\n" for line in sessions.read_text().splitlines()[:-1]))
    return found


@pytest.fixture
def say(capsys: pytest.CaptureFixture[str]) -> Say:
    def run(argv: Sequence[str]) -> tuple[int, str, str]:
        code = main(argv)
        said = capsys.readouterr()
        return code, said.out, said.err

    return run


@needs_sshd
def test_push_copies_adds_and_continues(sshd: LocalSshd, tmp_path: Path, say: Say) -> None:
    data, there = tmp_path / "my data", tmp_path / "far away"
    (data / "part").mkdir(parents=True)
    (data / "big.bin").write_bytes(bytes(range(256)) * 4000)
    (data / "part" / "it's\nodd").write_text("x")
    (data / "link").symlink_to(data / "big.bin")
    half = there / ".my data.ranks-push"
    half.mkdir(parents=True)
    (half / "big.bin").write_bytes((data / "big.bin").read_bytes()[:700_000])
    argv = ["push", str(data), f"127.0.0.1:{there}", f"--ssh={sshd.options}"]
    code, said, _ = say(argv)
    assert code == 0
    assert "3 files, 2.0 MB, sha256 sums equal" in said
    copied = there / "my data"
    assert {name: (copied / name).read_bytes() for name in list_files(data, "")} == {
        name: (data / name).read_bytes() for name in list_files(data, "")
    }
    assert list(there.iterdir()) == [copied]
    (copied / "of the other side").touch()
    (copied / "part" / "it's\nodd").write_text("damaged")
    assert say(argv)[0] == 0
    assert (copied / "part" / "it's\nodd").read_text() == "x"
    assert (copied / "of the other side").exists()


@needs_sshd
def test_push_of_a_run_does_not_set_one_back_that_has_gone_further(
    sshd: LocalSshd, far: Path, tmp_path: Path, say: Say
) -> None:
    run, there = far / "runs" / "toy", tmp_path / "there"
    argv = ["push", str(run), f"127.0.0.1:{there}", f"--ssh={sshd.options}"]
    assert say(argv)[0] == 0
    assert say(argv)[0] == 0  # as far as the one here
    (there / "toy" / "checkpoints" / "00000025").mkdir()
    (there / "toy" / "metrics.jsonl").write_text("of iteration 25")
    code, _, err = say(argv)
    assert code == 2
    assert "the run there is at iteration 25, the one here at 20" in err
    assert (there / "toy" / "metrics.jsonl").read_text() == "of iteration 25"


@needs_sshd
def test_pull_of_a_run_that_is_written_takes_what_verifies_and_it_continues(
    sshd: LocalSshd, far: Path, tmp_path: Path, say: Say
) -> None:
    shutil.copytree(far, tmp_path / "far")
    run, here = tmp_path / "far" / "runs" / "toy", tmp_path / "here"
    argv = ["pull", f"127.0.0.1:{run}", "--runs-dir", str(here), f"--ssh={sshd.options}"]
    (run / "checkpoints" / ".tmp-00000099-1").mkdir()
    damaged = run / "checkpoints" / "00000020" / "learner.safetensors"
    damaged.write_bytes(b"damaged" + damaged.read_bytes()[7:])
    with (run / "metrics.jsonl").open("a") as metrics:
        metrics.write('{"iteration": 21, "torn')
    code, said, err = say(argv)
    assert (code, err) == (0, "")
    assert "warning: damaged on 127.0.0.1: checkpoints/00000020/learner.safetensors" in said
    assert "iteration 15, sha256 sums equal; not finished there" in said
    assert [path.name for path in here.iterdir() if not path.name.startswith(".")] == ["toy"]
    damage: list[str] = []
    newest = checkpoint.newest(here / "toy" / "checkpoints", damage)
    assert newest is not None
    assert (newest.iteration, damage) == (15, [])
    assert (here / "toy" / "metrics.jsonl").stat().st_size == newest.manifest.metrics_bytes

    whole = train(tmp_path / "whole", 40)
    assert train(here, 40) == whole, "it continues with other bits"
    code, said, err = say(argv)
    assert code == 2
    assert "the run here is at iteration 40" in err

    shutil.rmtree(run)
    shutil.copytree(far / "runs" / "toy", run)
    assert train(tmp_path / "far" / "runs", 40) == whole
    shutil.rmtree(here)
    shutil.copytree(far / "runs", here)  # an older copy, which the pull brings up to date
    code, said, err = say(argv)
    assert (code, err) == (0, "")
    assert "iteration 40, sha256 sums equal; the whole run" in said
    assert read_manifest(here / "toy" / "checkpoints" / "00000040").fingerprint == whole
    for name in list_files(run, ""):
        assert (here / "toy" / name).read_bytes() == (run / name).read_bytes(), name


@needs_sshd
def test_pull_refuses_another_run_and_what_is_none(sshd: LocalSshd, far: Path, tmp_path: Path, say: Say) -> None:
    here = tmp_path / "runs"
    shutil.copytree(far / "runs", here)
    path = here / "toy" / "run.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "started": "at another time"}))
    before = list_files(here, "")
    for place, found in (
        (far / "runs" / "toy", "is another run of the same name"),
        (far / "nowhere" / "toy", "is no run folder"),
    ):
        code, _, err = say(["pull", f"127.0.0.1:{place}", "--runs-dir", str(here), f"--ssh={sshd.options}"])
        assert code == 2
        assert found in err
        assert list_files(here, "") == before


def test_a_cut_connection_is_tried_again_and_then_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    rsync = tmp_path / "rsync"
    rsync.write_text("#!/bin/sh\necho x >> count\necho 'connection unexpectedly closed' >&2\nexit 12\n")
    rsync.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.chdir(tmp_path)
    waits: list[float] = []
    lines: list[str] = []
    with pytest.raises(UserError, match="it continues where this one ended"):
        copy_files(COPY, "ranks push", progress=lambda done: None, say=lines.append, sleep=waits.append)
    assert waits == [1.0, 2.0, 4.0]
    assert len((tmp_path / "count").read_text().split()) == 4
    assert "trying again in 4 s" in lines[-1]


@pytest.mark.parametrize(
    ("code", "said", "kind", "found"),
    [
        (
            11,
            'rsync: write failed on "x": No space left on device (28)',
            UserError,
            "No space left on device on gpu-box",
        ),
        (12, "[receiver] write: Disk quota exceeded (122)", UserError, "Disk quota exceeded on gpu-box"),
        (
            23,
            'rsync: [sender] send_files failed to open "/d/a": Permission denied (13)',
            UserError,
            "Permission denied: /d",
        ),
        (2, "protocol version mismatch -- is your shell clean?", UserError, "disturbs rsync by other output"),
        (1, "rsync: --info=progress2: unknown option", UserError, "an rsync without a needed option"),
        (255, "ssh: connect to host gpu-box port 22: No route to host", ConnectionCut, "No route to host"),
        (-9, "", ConnectionCut, "exit code -9"),
    ],
)
def test_what_rsync_says_becomes_one_error(code: int, said: str, kind: type[Exception], found: str) -> None:
    error = failure(code, said, COPY, "ranks push")
    assert type(error) is kind
    assert found in str(error)
    assert isinstance(failure(23, "link_stat failed: No such file", replace(COPY, upload=False), "x"), FilesGone)


def test_programs_that_are_missing_are_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, say: Say) -> None:
    (tmp_path / "data").write_text("x")
    monkeypatch.setenv("PATH", str(tmp_path))
    code, _, err = say(["push", str(tmp_path / "data"), "gpu-box"])
    assert code == 2
    assert "there is no ssh here" in err
    ssh = tmp_path / "ssh"
    ssh.write_text(f'#!{sys.executable}\nprint("hello from .bashrc\\nranks-output\\nrsync")\n')
    ssh.chmod(0o755)
    (tmp_path / "rsync").symlink_to(ssh)
    code, _, err = say(["push", str(tmp_path / "data"), "gpu-box"])
    assert code == 2
    assert "there is no rsync on gpu-box" in err


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("gpu-box", ("gpu-box", "")),
        ("me@gpu-box:data", ("me@gpu-box", "data")),
        ("root@[fe80::1]:/a:b", ("root@fe80::1", "/a:b")),
        ("gpu-box:~/data", ("gpu-box", "data")),
    ],
)
def test_places(text: str, wanted: tuple[str, str]) -> None:
    assert parse_place(text, "", "HOST:DIR") == wanted


@pytest.mark.parametrize("text", ["", ":data", "-oProxyCommand=x:data", "a b:c", "me@-x:c"])
def test_what_is_no_place(text: str) -> None:
    with pytest.raises(UserError, match="does not begin with the name of a host"):
        parse_place(text, "", "HOST:DIR")
