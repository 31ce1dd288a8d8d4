"""Exported weights load where only torch is."""

from __future__ import annotations

import importlib
import os
import resource
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
from torch import nn

import ranks
from ranks import UserError
from ranks.engine.export.export import export_model
from ranks.engine.export.load_export import load_export
from ranks.engine.export.standalone import standalone_source
from ranks.rl.policies.actor_critic import ActorCritic
from ranks.rl.spaces import Space
from tests.engine.export.plain_torch import value_of
from tests.toys import cartpole, images


def test_the_exported_file_builds_the_net_with_torch_alone(tmp_path: Path) -> None:
    net = images.Net(16, 0.1)
    export_model(net, tmp_path / "export")
    found = value_of("net(torch.ones(2, 8, 8)).double().sum()", tmp_path / "export")
    assert found == pytest.approx(float(net.eval()(torch.ones(2, 8, 8)).detach().double().sum()), abs=1e-6)


def test_exporting_again_replaces_the_weights_and_keeps_other_files(tmp_path: Path) -> None:
    export_model(images.Net(16, 0.0), tmp_path / "export")
    (tmp_path / "export" / "model.onnx").write_bytes(b"kept")
    first = (tmp_path / "export" / "model.safetensors").read_bytes()
    export_model(images.Net(16, 0.0), tmp_path / "export")
    assert (tmp_path / "export" / "model.safetensors").read_bytes() != first
    assert (tmp_path / "export" / "model.onnx").read_bytes() == b"kept"


class Killed(Exception):
    """As a kill: nothing is cleaned up after it."""


@pytest.mark.parametrize(("error", "kept"), [(Killed(), "aside"), (OSError(5, "Input/output error"), "in its place")])
def test_an_export_that_is_killed_or_fails_at_its_end_keeps_the_older_one(
    error: Exception, kept: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, rename = tmp_path / "export", os.rename
    export_model(images.Net(16, 0.0), folder)
    (folder / "model.onnx").write_bytes(b"kept")
    files = {path.name: path.read_bytes() for path in folder.iterdir()}

    def rename_of(old: Path, new: Path) -> None:
        if old.name.startswith(".export.tmp-"):
            raise error
        rename(old, new)

    with monkeypatch.context() as patch:
        patch.setattr(os, "rename", rename_of)
        with pytest.raises((Killed, UserError)):
            export_model(images.Net(16, 0.0), folder)
    older = folder if kept == "in its place" else tmp_path / f".export.old-{os.getpid()}"
    assert {path.name: path.read_bytes() for path in older.iterdir()} == files
    (tmp_path / ".export.old-run").mkdir()  # made by no export
    export_model(images.Net(16, 0.0), folder)
    assert (folder / "model.onnx").read_bytes() == b"kept"
    assert {path.name for path in tmp_path.iterdir()} == {"export", ".export.old-run"}


def test_what_is_left_aside_is_removed_where_the_new_export_is_in_its_place(tmp_path: Path) -> None:
    export_model(images.Net(16, 0.0), tmp_path / "export")
    (tmp_path / ".export.old-7").mkdir()
    (tmp_path / ".export.old-7" / "model.onnx").touch()
    export_model(images.Net(16, 0.0), tmp_path / "export")
    assert [path.name for path in tmp_path.iterdir()] == ["export"]
    assert not (tmp_path / "export" / "model.onnx").exists()


def test_what_is_no_file_in_an_older_export_is_not_copied(tmp_path: Path) -> None:
    """A copy of a FIFO or of /dev/zero would never end."""
    folder = tmp_path / "export"
    (folder / "inside").mkdir(parents=True)
    (folder / "inside" / "notes.txt").write_text("kept")
    os.mkfifo(folder / "inside" / "fifo")
    (folder / "zero").symlink_to("/dev/zero")
    os.mkfifo(folder / "model.safetensors")
    export_model(images.Net(16, 0.0), folder)
    assert sorted(str(p.relative_to(folder)) for p in folder.rglob("*")) == [
        *("config.json", "inside", "inside/notes.txt", "model.py", "model.safetensors")
    ]
    assert load_export(folder / "model.safetensors", images.Net, "asked")[0].width == 16


def test_an_export_folder_that_is_a_link_is_replaced_and_its_target_stays(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "file").touch()
    (tmp_path / "export").symlink_to("mine")
    export_model(images.Net(16, 0.0), tmp_path / "export")
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["file"]
    assert not (tmp_path / "export").is_symlink()


def test_an_export_without_space_is_one_error_and_the_older_one_stays(tmp_path: Path) -> None:
    folder = tmp_path / "export"
    export_model(images.Net(16, 0.0), folder)
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (500, limits[1]))
    try:
        with pytest.raises(UserError, match="an older export is intact"):
            export_model(images.Net(16, 0.0), folder)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    assert [path.name for path in tmp_path.iterdir()] == ["export"]


def flipped(content: bytes) -> bytes:
    """With another last byte."""
    return content[:-1] + bytes([content[-1] ^ 1])


DAMAGED_EXPORTS: dict[str, tuple[str, Callable[[Path], object], str]] = {
    "weights flipped": ("model.safetensors", lambda p: p.write_bytes(flipped(p.read_bytes())), "its sha256 is"),
    "weights endless": ("model.safetensors", lambda p: (p.unlink(), p.symlink_to("/dev/zero")), "not a regular file"),
    "weights a FIFO": ("model.safetensors", lambda p: (p.unlink(), os.mkfifo(p)), "not a regular file"),
    "weights missing": ("model.safetensors", Path.unlink, "missing"),
    "config too deep": ("config.json", lambda p: p.write_text('{"a":' * 100_000), "levels deep"),
    "config an array": ("config.json", lambda p: p.write_text("[]"), "not a JSON object"),
    "no arguments": ("config.json", lambda p: p.write_text(p.read_text().replace("arguments", "x")), "a model"),
    "odd arguments": ("config.json", lambda p: p.write_text(p.read_text().replace(": 16", ": -16")), "RuntimeError"),
}


@pytest.mark.parametrize("case", DAMAGED_EXPORTS)
def test_a_damaged_export_is_one_error(case: str, tmp_path: Path) -> None:
    name, change, words = DAMAGED_EXPORTS[case]
    export_model(images.Net(16, 0.0), tmp_path / "export")
    change(tmp_path / "export" / name)
    with pytest.raises(UserError, match=words):
        load_export(tmp_path / "export" / "model.safetensors", images.Net, "asked")


def test_a_recurrent_policy_exports_too(tmp_path: Path) -> None:
    export_model(cartpole.RecurrentPolicy(8), tmp_path / "export")
    assert "class RecurrentPolicy" in (tmp_path / "export" / "model.py").read_text()


def test_layers_in_a_second_file_come_with_the_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the order in which they are needed, and without what the model does not use."""
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "second_file_width.py").write_text("WIDTH = 3\nUNUSED = 4\n")
    (tmp_path / "second_file_layers.py").write_text(
        "import numpy\nfrom torch import nn\nfrom second_file_width import WIDTH\n"
        "class Layer(nn.Linear):\n    def __init__(self):\n        super().__init__(2, WIDTH)\n"
    )
    (tmp_path / "second_file_model.py").write_text(
        "from torch import nn\nfrom second_file_layers import Layer\n"
        "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.layer = Layer()\n"
        "    def forward(self, x):\n        return self.layer(x)\n"
    )
    net = importlib.import_module("second_file_model").Net()
    export_model(net, tmp_path / "export")
    assert "UNUSED" not in (tmp_path / "export" / "model.py").read_text()
    found = value_of("net(torch.ones(2)).double().sum()", tmp_path / "export")
    assert found == pytest.approx(float(net(torch.ones(2)).detach().double().sum()), abs=1e-6)


class DropsArgument(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.layer = nn.Linear(width, 1)


def test_an_argument_that_is_not_kept_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="'width' is not stored"):
        export_model(DropsArgument(3), tmp_path / "export")


# What a class uses of other modules -----------------------------------------------------------------------------------

SPACES = {
    "eyes": Space("image", (9, 9, 3)).to_json(),
    "speed": Space("box", (2,)).to_json(),
    "gear": Space("discrete", sizes=(3,)).to_json(),
}


@pytest.mark.parametrize(
    "action",
    [Space("box", (2,)), Space("multi-discrete", sizes=(2, 3)), Space("multi-binary", sizes=(4,))],
    ids=lambda space: space.kind,
)
def test_what_a_policy_uses_of_this_package_comes_with_it(action: Space, tmp_path: Path) -> None:
    """Encoder, normaliser, LSTM and distributions stand in other modules than the actor-critic."""
    net = ActorCritic(SPACES, action.to_json(), hidden=6, lstm_hidden=3).eval()
    net.encoder.normaliser.mean_F += 0.5
    export_model(net, tmp_path / "export")
    assert "ranks" not in {word for line in imports_of(tmp_path / "export" / "model.py") for word in line.split()}
    obs = "dict(eyes=torch.full((2, 9, 9, 3), 9, dtype=torch.uint8), speed=torch.ones(2, 2), gear=torch.ones(2))"
    expression = f"sum(x.double().sum() for x in net({obs}, net.start_state(2))[:2])"
    with torch.no_grad():
        expected = float(eval(expression))
    assert value_of(expression, tmp_path / "export") == pytest.approx(expected, abs=1e-6)


def imports_of(path: Path) -> list[str]:
    return [line.replace(".", " ") for line in path.read_text().splitlines() if line.startswith(("import", "from"))]


Write = Callable[[str, str], int]


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Write]:
    """Modules of this package that exist for one test."""
    monkeypatch.setattr(ranks, "__path__", [*ranks.__path__, str(tmp_path)])
    before = set(sys.modules)
    yield lambda name, text: (tmp_path / f"{name}.py").write_text(f"from torch import nn\n{text}\n")
    for name in set(sys.modules) - before:
        del sys.modules[name]


def source_of(module: str, cls: str = "Net") -> str:
    return standalone_source(getattr(importlib.import_module(f"ranks.{module}"), cls))


def test_imports_within_the_package_are_followed_from_module_to_module(write: Write) -> None:
    write("deep", "WIDTH = 3\ndef unused(): pass\ndef layer(): return nn.Linear(WIDTH, 1)")
    write("near", "from ranks.deep import layer\nclass Part(nn.Module):\n    def make(self): return layer()")
    write("top", "from ranks.near import Part\nclass Net(Part):\n    pass")
    source = source_of("top")
    names = ("WIDTH = 3", "def layer", "class Part", "class Net")
    assert sorted(map(source.index, names)) == list(map(source.index, names)), "what is used comes first"
    assert "ranks" not in source
    assert "unused" not in source


@pytest.mark.parametrize(
    ("modules", "found", "do"),
    [
        (
            {
                "one": "def scale(): return 1\nclass Part(nn.Module):\n    def go(self): return scale()",
                "top": "from ranks.one import Part\ndef scale(): return 2\n"
                "class Net(Part):\n    def more(self): return scale()",
            },
            "ranks.one and ranks.top both define scale",
            "give one of them another name",
        ),
        (
            {
                "one": "def scale(): return 1",
                "top": "from ranks.one import scale as size\nclass Net(nn.Module):\n    def go(self): return size()",
            },
            "its source needs from ranks.one import scale as size",
            "import what it uses by its own name",
        ),
        (
            {
                "one": "def scale(): return 1",
                "top": "from ranks import one\nclass Net(nn.Module):\n    def go(self): return one.scale()",
            },
            "its source needs from ranks import one",
            "import what it uses by its own name",
        ),
        (
            {
                "one": "def scale(): return 1",
                "top": "import ranks.one as one\nclass Net(nn.Module):\n    def go(self): return one.scale()",
            },
            "its source needs ranks.one",
            "let the model's classes use only torch and the standard library",
        ),
        (
            {"top": "import numpy as np\nclass Net(nn.Module):\n    def go(self): return np.ones(1)"},
            "its source needs numpy",
            "let the model's classes use only torch and the standard library",
        ),
    ],
    ids=["two of one name", "another name", "a module of ours", "a module of ours as another", "another package"],
)
def test_what_cannot_be_followed_is_refused(write: Write, modules: dict[str, str], found: str, do: str) -> None:
    for name, text in modules.items():
        write(name, text)
    with pytest.raises(UserError) as caught:
        source_of("top")
    assert (caught.value.asked, caught.value.found, caught.value.do) == ("to export Net", found, do)


def test_two_modules_may_define_what_only_one_of_them_gives(write: Write) -> None:
    write("one", "def scale(): return 1\ndef layer(): return nn.Linear(2, 2)")
    own = "class Net(nn.Module):\n    def go(self): return layer(), scale()"
    write("top", f"from ranks.one import layer\ndef scale(): return 2\n{own}")
    assert source_of("top").count("def scale") == 1


def test_an_argument_with_the_name_of_a_function_is_not_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The template's `forward(self, planes)`, next to a module's function `planes` that uses numpy."""
    text = (
        "import numpy\nfrom torch import nn\n\n\ndef planes(x):\n    return numpy.asarray(x)\n\n\n"
        "def double(x):\n    return 2 * x\n\n\nclass Net(nn.Module):\n"
        "    def forward(self, planes):\n        kept = [planes for _ in range(1)]\n        return double(kept[0])\n"
    )
    (tmp_path / "argument_net.py").write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))
    source = standalone_source(importlib.import_module("argument_net").Net)
    assert "def double" in source
    assert "numpy" not in source
