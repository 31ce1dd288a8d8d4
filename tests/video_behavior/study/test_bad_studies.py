"""Every bad video, annotation and study gets one clear error and exit code 2. What only looks bad is read.

Each study here has four animals, one video of 24 frames for each, and one thing that is wrong.
"""

from __future__ import annotations

import re
import shutil
import struct
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from ranks.cli.main import main
from ranks.errors import UserError
from ranks.workloads.video_behavior.annotations.boris_events import write_boris_events
from ranks.workloads.video_behavior.annotations.events import Annotation, Event
from ranks.workloads.video_behavior.clips.prepare import labelled_frames
from ranks.workloads.video_behavior.config import ClipConfig, Config
from tests.video_behavior.annotations.annotation_examples import PROJECT
from tests.video_behavior.study.example_study import FPS, FRAMES, LICK, ROWS, annotate, lab
from tests.video_behavior.video.test_decode import decoded
from tests.video_behavior.video.videos import moving_square, write_no_frames, write_square

Change = Callable[[Path], object]
"""What makes a good study bad."""


def replaced(name: str, old: str, new: str) -> Change:
    """Change a text file of the study."""

    def change(folder: Path) -> None:
        text = (folder / name).read_text()
        assert old in text
        (folder / name).write_text(text.replace(old, new))

    return change


def events(*given: Event, fps: float = FPS) -> Change:
    return lambda folder: annotate(folder, 4, *given, fps=fps)


def labels(first: int, *frames: int) -> Change:
    """Give the last animal labels by frame."""

    def change(folder: Path) -> None:
        rows = "".join(f"{frame},lick\n" for frame in (first, *frames))
        (folder / "m4.tsv").write_text(f"Frame,Action\n{rows}")
        replaced("dataset.csv", "m4,,,", f"m4,,{FPS:g},")(folder)

    return change


def cut(keep: int) -> Change:
    """Keep only the first bytes of a video."""
    return lambda folder: (folder / "m2.mp4").write_bytes((folder / "m2.mp4").read_bytes()[:keep])


def one_class(folder: Path) -> None:
    """The test animal never licks."""
    annotate(folder, 4)


def unknown_code(folder: Path) -> None:
    """A project of BORIS with an event whose code is not in its ethogram."""
    (folder / "m4.tsv").write_text(
        PROJECT.replace("v.mp4", "m4.mp4").replace('"m1", "lick", "a|None", "hm"', '"m1", "lik", "", ""')
    )


@dataclass(frozen=True)
class Bad:
    """`step`: where it is noticed: dataset, cache, or labels, which train, evaluate and report read."""

    change: Change
    step: str
    asked: str
    found: str
    do: str


FITS = "check that it is the same video"
LIST: dict[str, Bad] = {
    "unreadable video": Bad(
        lambda folder: (folder / "m2.mp4").write_text("no video"),
        "cache",
        "m2.mp4",
        "no video, or damaged",
        "check that the file plays, or convert it",
    ),
    "empty video file": Bad(cut(0), "cache", "m2.mp4", "no video, or damaged", "convert it"),
    "video without a frame": Bad(
        lambda folder: write_no_frames(folder / "m2.mp4", "avi"),
        "cache",
        "m2.mp4",
        "not one frame can be decoded",
        "convert it",
    ),
    "truncated video": Bad(cut(300), "cache", "m2.mp4", "no video, or damaged", "convert it"),
    "missing video": Bad(
        lambda folder: (folder / "m2.mp4").unlink(), "cache", "line 3", "there is no video", "paths are relative to"
    ),
    "trial longer than the video": Bad(
        events(Event("lick", 0.2, 4.0)), "labels", "m4.mp4", "ends at 0.96 s", f"{FITS}, its fps and its offset_s"
    ),
    "another frame rate": Bad(
        events(LICK, fps=30.0), "labels", "m4.mp4", "30 frames a second in the annotation, 25 in the video", FITS
    ),
    "annotation off by one": Bad(labels(1, 2), "labels", "m4.tsv", "frame 1 where 0 was expected", "count from 0"),
    "gap in the frames": Bad(labels(0, 1, 3), "labels", "m4.tsv", "frame 3 where 2 was expected", "in steps of 1"),
    "unknown code": Bad(unknown_code, "dataset", "m4.tsv", "'lik'", "did you mean lick?"),
    "no code": Bad(replaced("m4.tsv", "lick", ""), "dataset", "m4.tsv", "no behaviour is named", "write the behaviour"),
    "overlapping states": Bad(
        events(LICK, Event("groom", 0.4, 0.8)),
        "labels",
        "m4.mp4",
        "'lick' from 0.2 to 0.6 s and 'groom' from 0.4 to 0.8 s label the same frame",
        "--labels multi",
    ),
    "STOP without START": Bad(
        replaced("m4.tsv", "START", "STOP"), "dataset", "m4.tsv", "STOP of 'lick' at 0.2 s: it has no START", "add the"
    ),
    "START without STOP": Bad(
        replaced("m4.tsv", "STOP", "POINT"), "dataset", "m4.tsv", "START of 'lick' at 0.2 s: it has no STOP", "add the"
    ),
    "class absent": Bad(one_class, "labels", "split by animal", "no animal of 'test' shows 'lick'", "move an animal"),
    "one animal only": Bad(
        lambda folder: (
            (folder / "dataset.csv").write_text(
                ROWS + "".join(f"m{number}.mp4,m{number}.tsv,m1,,,,\n" for number in range(1, 5))
            )
            and None
        ),
        "dataset",
        "ranks video-behavior dataset",
        "1 animal with labels: m1; train, val and test need one each",
        "label more animals",
    ),
    "an animal in two splits": Bad(
        replaced("dataset.csv", "m4.tsv,m4", "m4.tsv,m1"),
        "dataset",
        "line 5",
        "animal 'm1' is in 'test' here and in 'train' in line 2",
        "give all videos of an animal the same split",
    ),
    "a split in some rows": Bad(
        replaced("dataset.csv", "val", ""), "dataset", "dataset", "m3.mp4 has none", "in all rows, or in none"
    ),
}


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return lab(tmp_path_factory.mktemp("lab"))


def refusal(step: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """The error of a step, which ends with exit code 2."""
    if step == "labels":
        with pytest.raises(UserError) as error:
            labelled_frames(Config(data=folder, clips=ClipConfig(size=16)))
        assert error.value.exit_code == 2
        return str(error.value)
    flags = {"dataset": [], "cache": ["--size", "16", "--workers", "1"]}[step]
    assert main(["video-behavior", step, str(folder), *flags]) == 2
    return capsys.readouterr().err


@pytest.mark.parametrize("name", LIST)
def test_one_clear_error(name: str, good: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bad, folder = LIST[name], tmp_path / "lab"
    shutil.copytree(good, folder)
    bad.change(folder)
    message = refusal(bad.step, folder, capsys)
    found = re.search(r"asked: (?P<asked>.+)\nfound: (?P<found>.+)\n   do: (?P<do>.+)", message)
    assert found is not None, message
    for part in ("asked", "found", "do"):
        assert getattr(bad, part) in found[part] or (part == "asked" and bad.asked in found["found"]), message
    assert "Traceback" not in message


def test_a_disk_that_is_too_small(
    good: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = Path(shutil.copytree(good, tmp_path / "lab"))
    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(total=10**9, used=10**9, free=1000))
    message = refusal("cache", folder, capsys)
    assert re.search(r"asked: .*store-16.*\nfound: .*0\.00 GB are free.*\n   do: .*free", message), message
    assert not list((folder / "store-16").glob("*.npy"))


def test_train_ends_with_exit_code_2(good: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    folder = Path(shutil.copytree(good, tmp_path / "lab"))
    LIST["overlapping states"].change(folder)
    run = ["--clips.size", "16", "--ranks", "1", "--gpus", "none", "--runs-dir", str(tmp_path / "runs")]
    assert main(["train", "video-behavior", "--data", str(folder), *run]) == 2
    message = capfd.readouterr().err
    assert message.count("label the same frame") == 1
    assert "Traceback" not in message


def test_a_study_is_named_by_its_folder_or_its_table(good: Path) -> None:
    cfg = Config(data=good, clips=ClipConfig(size=16))
    by_folder, by_table = labelled_frames(cfg), labelled_frames(replace(cfg, data=good / "dataset.csv"))
    assert by_folder.sha256 == by_table.sha256
    assert sorted(path.name for path in good.glob("store-*")) == ["store-16"]


def test_names_with_blanks_and_with_mp4_inside(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for number in range(1, 4):
        stem = f"day 1.mp4 mouse {number}"
        write_square(tmp_path / f"{stem}.mp4", FRAMES, 32, 32)
        annotation = Annotation(f"C:\\my videos\\{stem}.mp4", (LICK,), FPS, FRAMES / FPS, stem)
        write_boris_events(tmp_path / f"{stem}.tsv", [annotation])
    assert main(["video-behavior", "dataset", str(tmp_path)]) == 0
    assert "every annotation has its video" in capsys.readouterr().out
    data = labelled_frames(Config(data=tmp_path, clips=ClipConfig(size=16)))
    assert [video.animal for video in data.videos] == ["mouse1", "mouse2", "mouse3"]
    assert np.bincount(data.class_N).tolist() == [3 * (FRAMES - 10), 3 * 10]


def test_a_rotation_tag_turns_the_frames(tmp_path: Path) -> None:
    """The tag of a telephone that was held upright: turn the picture by a quarter, clockwise."""
    write_square(tmp_path / "v.mp4", 3)
    content = bytearray((tmp_path / "v.mp4").read_bytes())
    unturned = struct.pack(">9i", 1 << 16, 0, 0, 0, 1 << 16, 0, 0, 0, 1 << 30)
    at = content.index(unturned, content.index(b"tkhd"))
    content[at : at + 36] = struct.pack(">9i", 0, 1 << 16, 0, -(1 << 16), 0, 0, 0, 0, 1 << 30)
    (tmp_path / "v.mp4").write_bytes(content)
    assert np.array_equal(decoded(tmp_path / "v.mp4")[0], np.rot90(moving_square(3), -1, (1, 2)))
