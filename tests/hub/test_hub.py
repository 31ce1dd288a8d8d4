"""`ranks publish` and `ranks fetch` against a server that speaks the hub's protocol, on the loopback interface."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import re
import socket
from pathlib import Path

import pytest
import torch

from ranks.engine.export.load_export import load_export
from tests.toys import images

from .conftest import REPO, TOY, Say, published
from .local_hub import TOKEN, LocalHub

pytest.importorskip("huggingface_hub")
pytestmark = pytest.mark.filterwarnings("ignore:Use 'content=<:DeprecationWarning")  # of huggingface_hub, at an upload
NAMES = {"model.safetensors", "config.json", "model.py", "ranks.json", "README.md"}


def test_a_run_is_published_fetched_loaded_and_trained_on(
    hub: LocalHub, trained: Path, tmp_path: Path, say: Say
) -> None:
    evaluation = tmp_path / "evaluation.json"
    evaluation.write_text(json.dumps({"run": "toy", "iteration": 4, "metrics": {"accuracy": 0.5}}))
    argv = ["publish", str(trained), "--to", REPO, "--license", "mit", "--evaluation", str(evaluation)]
    code, said, err = say(*argv, "--dry-run")
    assert (code, hub.requests) == (0, []), err
    assert "nothing was uploaded" in said
    shown = set(re.findall(r"publish/(\S+) .* sha256 [0-9a-f]{64}$", said, re.MULTILINE))
    assert shown == NAMES

    code, said, err = say(*argv, "--private")
    assert code == 0, err
    repository = hub.repositories[REPO]
    assert repository.private
    there = repository.commits[repository.head]
    assert {*there} == NAMES | {".gitattributes"}
    assert said.count("sha256 sums equal") == 1
    card = there["README.md"].decode()
    for part in ("license: mit", "| `accuracy` | 0.5 |", "| `val/loss` |", "ranks fetch me/toy", "--iterations 4"):
        assert part in card, part
    assert hashlib.sha256(there["model.safetensors"]).hexdigest() in card
    assert str(tmp_path.parent) not in card + there["ranks.json"].decode()
    assert all(TOKEN.encode() not in content for content in there.values())

    code, said, err = say("fetch", REPO)
    assert code == 0, err
    folder = tmp_path / "models" / "me" / "toy"
    assert {path.name for path in folder.iterdir()} == NAMES | {"fetched.json"}
    assert "not downloaded: .gitattributes" in said
    spec = importlib.util.spec_from_file_location("fetched_model", folder / "model.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    net = module.load(str(folder))
    same, _ = load_export(trained / "export" / "model.safetensors", images.Net, "the run's own export")
    assert all(torch.equal(a, b) for a, b in zip(net.state_dict().values(), same.state_dict().values(), strict=True))
    train_on = re.search(r"^ranks train \S+ (.* --init-from \S+) ", card, re.MULTILINE)
    assert train_on is not None
    few = ["--iterations", "1", "--gpus", "none", "--ranks", "1", "--hang-timeout", "none"]
    code, _, err = say("train", TOY, *train_on[1].split(), *few)
    assert code == 0, err
    code, _, err = say("publish", "more", "--to", REPO, "--dry-run", "--checkpoint", "1")
    assert code == 0, err
    card = (tmp_path / "runs" / "more" / "publish" / "README.md").read_text()
    assert card.count("--init-from FOLDER") == 1, "it did not begin with new weights"
    assert hashlib.sha256(there["model.safetensors"]).hexdigest() in card
    assert say("fetch", REPO, "--revision", repository.head)[0] == 0, (
        "an older fetch of the same repository is replaced"
    )
    (folder / "notes.txt").write_text("my own")
    assert "files that were not fetched, and would be lost: notes.txt" in say("fetch", REPO)[2]
    assert (folder / "notes.txt").read_text() == "my own"
    (folder / "notes.txt").unlink()
    (folder / "fetched.json").unlink()
    assert "was not fetched from me/toy" in say("fetch", REPO)[2]
    assert [path.name for path in folder.parent.iterdir()] == ["toy"], "nothing is left next to it"


def test_a_fetch_into_the_present_folder_is_refused_before_it_is_replaced(
    hub: LocalHub, trained: Path, tmp_path: Path, say: Say, monkeypatch: pytest.MonkeyPatch
) -> None:
    published(hub, trained, say)
    (tmp_path / "empty").mkdir()
    assert say("fetch", REPO, "--out", "there")[0] == 0
    for place, found in (("there", "which a fetch replaces"), ("empty", "was not fetched from me/toy")):
        monkeypatch.chdir(tmp_path / place)
        code, _, err = say("fetch", REPO, "--out", ".")
        assert (code, found in err) == (2, True), err
    assert (tmp_path / "there" / "model.safetensors").exists()


def test_a_killed_fetch_loses_no_older_model_and_leaves_nothing(
    hub: LocalHub, trained: Path, tmp_path: Path, say: Say, monkeypatch: pytest.MonkeyPatch
) -> None:
    published(hub, trained, say)
    monkeypatch.chdir(tmp_path)
    assert say("fetch", REPO, "--out", "there")[0] == 0
    (tmp_path / "there").rename(tmp_path / ".there.old-4000000")  # killed between the two renames
    (tmp_path / ".there.tmp-4000000").mkdir()
    (tmp_path / ".there.tmp-notes-4000000").mkdir()
    code, _, err = say("fetch", "me/none", "--out", "there")
    assert (code, "was not fetched from me/none" in err) == (2, True), err
    assert (tmp_path / "there" / "model.safetensors").exists()
    assert sorted(path.name for path in tmp_path.iterdir() if path.name.startswith(".there")) == [
        ".there.tmp-notes-4000000"
    ]


def test_a_public_repository_takes_no_private_model(hub: LocalHub, trained: Path, say: Say) -> None:
    there = {**published(hub, trained, say)}
    code, _, err = say("publish", str(trained), "--to", REPO, "--private")
    assert (code, "me/toy exists, and is public" in err) == (2, True), err
    assert hub.repositories[REPO].commits[hub.repositories[REPO].head] == there
    hub.add("me/hidden", {"README.md": b"mine"}, private=True)
    assert say("publish", str(trained), "--to", "me/hidden", "--private")[0] == 0


def test_a_second_publish_replaces_the_first(hub: LocalHub, trained: Path, say: Say) -> None:
    hub.add(REPO, {"model.onnx": b"of an older model", "notes.txt": b"kept"})
    assert say("publish", str(trained), "--to", REPO, "--checkpoint", "0")[0] == 0
    assert say("publish", str(trained), "--to", REPO)[0] == 0
    there = hub.repositories[REPO].commits[hub.repositories[REPO].head]
    assert {*there} == NAMES | {"notes.txt"}
    assert json.loads(there["ranks.json"])["iteration"] == 4


def test_the_token_comes_from_the_environment_only(
    hub: LocalHub, trained: Path, tmp_path: Path, say: Say, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored = tmp_path / "token"
    stored.write_text("hf_" + "s" * 30)
    monkeypatch.setattr("huggingface_hub.constants.HF_TOKEN_PATH", str(stored))
    monkeypatch.delenv("HF_TOKEN")
    code, _, err = say("publish", str(trained), "--to", REPO)
    assert (code, hub.requests) == (2, [])
    assert "there is no token in HF_TOKEN" in err
    assert "there is no repository me/toy" in say("fetch", REPO)[2]
    assert {*hub.tokens} == {None}
    monkeypatch.setenv("HF_TOKEN", "hf_" + "w" * 30)
    for argv in (["publish", str(trained), "--to", REPO], ["fetch", REPO]):
        code, out, err = say(*argv)
        assert code == 2
        assert "does not accept the token in HF_TOKEN" in err
        assert "w" * 30 not in out + err
    monkeypatch.setenv("HF_ENDPOINT", "http://example.com")
    assert "the token would travel unencrypted" in say("fetch", REPO)[2]


@pytest.mark.parametrize("token", ["hf_abc\ndefSECRET", "hf_abc defSECRET", "hf_abcdéfSECRET"])
def test_a_token_that_libraries_reject_is_not_printed_by_them(
    token: str, hub: LocalHub, trained: Path, say: Say, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_TOKEN", token)
    for argv in (["publish", str(trained), "--to", REPO], ["fetch", REPO]):
        code, out, err = say(*argv)
        assert (code, hub.requests) == (2, [])
        assert "a token has ASCII letters, digits and signs only" in err
        assert "SECRET" not in out + err


def test_an_address_that_is_none(say: Say, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "http://[bad")
    code, _, err = say("fetch", REPO)
    assert code == 2
    assert "not the address of a hub" in err
    monkeypatch.setenv("HF_ENDPOINT", "https://me:swordfish@mirror.corp")
    code, out, err = say("fetch", REPO)
    assert code == 2
    assert "an address with a name or a password" in err
    assert "swordfish" not in out + err


def test_without_a_network_and_with_wrong_names(
    hub: LocalHub, trained: Path, tmp_path: Path, say: Say, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("toy", "a/b/c", "me/..", "me/a--b", "me/a.git", "me/a b", "me/" + "a" * 97, "me/é", "", "/"):
        for argv in (["fetch", name], ["publish", str(trained), "--to", name]):
            code, _, err = say(*argv)
            assert code == 2
            assert "is not the name of a repository" in err
    wrong = tmp_path / "evaluation.json"
    wrong.write_text(json.dumps({"run": "toy", "iteration": 2, "metrics": {}}))
    said = say("publish", str(trained), "--to", REPO, "--dry-run", "--evaluation", str(wrong))[2]
    assert "an evaluation of toy, iteration 2, not of iteration 4" in said
    assert "not the id of a license" in say("publish", str(trained), "--to", REPO, "--license", "My own")[2]
    assert hub.requests == []
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{free.getsockname()[1]}")
        for argv in (["fetch", REPO], ["publish", str(trained), "--to", REPO]):
            code, _, err = say(*argv)
            assert code == 2
            assert "no answer from http://127.0.0.1:" in err
    monkeypatch.setenv("HF_ENDPOINT", "ftp://x")
    assert "not the address of a hub" in say("fetch", REPO)[2]


def test_a_secret_in_a_setting_is_not_uploaded(
    hub: LocalHub, trained: Path, say: Say, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTHER_API_KEY", "class Net")
    code, _, err = say("publish", str(trained), "--to", REPO)
    assert (code, hub.repositories) == (2, {})
    assert "model.py" in err
    assert "it holds a secret" in err
