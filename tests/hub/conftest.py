"""A trained run, a hub on the loopback interface, and the commands as a user calls them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ranks import RunConfig, World
from ranks.cli.main import main
from tests.toys import images

from .local_hub import TOKEN, LocalHub

REPO = "me/toy"
TOY = str(Path(images.__file__).resolve())
Say = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run of 4 iterations."""
    runs_dir = tmp_path_factory.mktemp("published") / "runs"
    world = World.join(RunConfig(runs_dir=runs_dir, name="toy", threads=1), device="cpu", workload=TOY)
    try:
        images.train(images.Config(iterations=4, eval_every=2, width=12), world)
    finally:
        world.leave()
    return runs_dir / "toy"


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[LocalHub]:
    """The server, the token, and an empty folder as the current one."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_DISABLE_XET", True)
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    monkeypatch.chdir(tmp_path)
    with LocalHub() as running:
        monkeypatch.setenv("HF_ENDPOINT", running.endpoint)
        yield running


@pytest.fixture
def say(capsys: pytest.CaptureFixture[str]) -> Say:
    def run(*argv: str) -> tuple[int, str, str]:
        code = main(argv)
        said = capsys.readouterr()
        assert TOKEN not in said.out + said.err
        return code, said.out, said.err

    return run


def published(hub: LocalHub, trained: Path, say: Say) -> dict[str, bytes]:
    """Publish the run; the files of the repository by name."""
    assert say("publish", str(trained), "--to", REPO)[0] == 0
    return hub.repositories[REPO].commits[hub.repositories[REPO].head]
