"""Repositories that `ranks fetch` and `ranks publish` refuse: pickles, odd files, other sums, damage on the way."""

from __future__ import annotations

import hashlib
import json
import pickle
from pathlib import Path

import pytest

from tests.engine.export.test_export import flipped

from .conftest import REPO, Say, published
from .local_hub import LocalHub

pytest.importorskip("huggingface_hub")
pytestmark = pytest.mark.filterwarnings("ignore:Use 'content=<:DeprecationWarning")  # of huggingface_hub, at an upload


def test_bad_repositories_are_refused_and_leave_nothing(hub: LocalHub, trained: Path, tmp_path: Path, say: Say) -> None:
    good = published(hub, trained, say)
    other = {**good, "model.safetensors": pickle.dumps({"not": "tensors"})}
    about = json.loads(good["ranks.json"])

    def with_sums(files: dict[str, bytes]) -> dict[str, bytes]:
        """Whose ranks.json and card say what is there."""
        sums, card = {name: hashlib.sha256(files[name]).hexdigest() for name in about["sha256"]}, files["README.md"]
        for name, before in about["sha256"].items():
            card = card.replace(before.encode(), sums[name].encode())
        return {**files, "ranks.json": json.dumps({**about, "sha256": sums}).encode(), "README.md": card}

    weights = about["sha256"]["model.safetensors"].encode()
    consistent = {
        **other,
        **{
            n: good[n].replace(weights, hashlib.sha256(other["model.safetensors"]).hexdigest().encode())
            for n in ("config.json", "README.md")
        },
    }
    config = good["ranks.json"]
    future, paths = config.replace(b'"format": 1', b'"format": 9'), config.replace(b'"model.py"', b'"../model.py"')
    cases: dict[str, tuple[dict[str, bytes], str]] = {
        "pickles": ({**good, "old/pytorch_model.bin": b"x"}, "holds pickles (old/pytorch_model.bin)"),
        "no-model": ({"README.md": b"a data set"}, "holds no model of ranks: it has no config.json"),
        "no-about": ({n: c for n, c in good.items() if n != "ranks.json"}, "it has no ranks.json"),
        "other-weights": (other, "model.safetensors: its sha256 is"),
        "config": (with_sums(other), "config.json: it describes other weights"),
        "card": ({**good, "README.md": good["README.md"].replace(weights, b"0" * 64)}, "README.md: the card describes"),
        "card-of-other-code": (
            {**good, "README.md": good["README.md"].replace(about["sha256"]["model.py"].encode(), b"0" * 64)},
            "README.md: the card describes another model.py",
        ),
        "pickled-weights": (with_sums(consistent), "model.safetensors: not a safetensors file"),
        "no-load": (with_sums({**good, "model.py": b"import os\n"}), "model.py: it has no function load"),
        "no-python": (with_sums({**good, "model.py": b"load("}), "model.py: not Python"),
        "deep-python": (with_sums({**good, "model.py": b"x = " + b"-" * 200_000 + b"1\n"}), "model.py: not Python"),
        "chained-python": (with_sums({**good, "model.py": b"a" + b".a" * 300_000}), "model.py: not Python"),
        "long-python": (with_sums({**good, "model.py": b"#" * (1 << 21)}), "model.py: 2,097,152 bytes, more than"),
        "unlisted": ({**good, "model.onnx": b"x"}, "ranks.json: it has no sha256 of model.onnx"),
        "future": ({**good, "ranks.json": future}, "its format is 9"),
        "paths": ({**good, "ranks.json": paths}, "no sha256 of model.py"),
        "no-json": ({**good, "ranks.json": b"{"}, "ranks.json: "),
    }
    for name, (files, found) in cases.items():
        hub.add(f"me/{name}", files)
        code, out, err = say("fetch", f"me/{name}")
        assert (code, out) == (2, ""), name
        assert found in err, name
        assert len(err.splitlines()) == 1, err
        assert not list((tmp_path / "models").rglob("*.*")), name
    assert "has no revision v9" in say("fetch", REPO, "--revision", "v9")[2]
    assert "holds pickles" in say("publish", str(trained), "--to", "me/pickles")[2]
    assert "may not write to others/toy" in say("publish", str(trained), "--to", "others/toy")[2]


def test_a_name_of_a_workload_reaches_no_terminal_as_a_command(hub: LocalHub, trained: Path, say: Say) -> None:
    good = published(hub, trained, say)
    about = {**json.loads(good["ranks.json"]), "workload": "toy\x1b]0;title\x07"}
    hub.add("me/loud", {**good, "ranks.json": json.dumps(about).encode(), "a\x1b[2J.txt": b""})
    code, said, err = say("fetch", "me/loud")
    assert code == 0, err
    assert "toy?]0;title?" in said
    assert "\x1b" not in said + err
    hub.add("me/pickled", {**good, "a\x1b[2J.bin": b""})
    hub.add("me/future", {**good, "ranks.json": json.dumps({**about, "format": "\x1b]0;x\x07"}).encode()})
    for name in ("pickled", "future"):
        code, said, err = say("fetch", f"me/{name}")
        assert code == 2
        assert "?" in err
        assert "\x1b" not in said + err


def test_what_is_damaged_on_the_way_is_noticed(hub: LocalHub, trained: Path, tmp_path: Path, say: Say) -> None:
    published(hub, trained, say)
    for name in ("model.safetensors", "model.py", "ranks.json", "README.md"):
        hub.harm_download = lambda file, content, name=name: flipped(content) if file == name else content
        code, _, err = say("fetch", REPO)
        assert code == 2
        assert f"me/toy is damaged: {name}: its " in err
        assert not (tmp_path / "models" / "me" / "toy").exists()
    hub.harm_download = lambda name, content: content[:-3] if name == "model.safetensors" else content
    assert say("fetch", REPO)[0] == 2, "a file that ends early"
    hub.harm_download = lambda name, content: content
    for name in ("model.safetensors", "model.py"):
        hub.harm_commit = lambda file, content, name=name: flipped(content) if file == name else content
        code, _, err = say("publish", str(trained), "--to", "me/other")
        assert code == 2
        assert f"the sha256 of {name} in me/other is " in err


def test_a_repository_that_may_not_be_read(hub: LocalHub, trained: Path, say: Say) -> None:
    published(hub, trained, say)
    hub.forbidden = REPO
    code, _, err = say("fetch", REPO)
    assert code == 2
    assert f"{hub.endpoint} does not let you read me/toy: " in err
