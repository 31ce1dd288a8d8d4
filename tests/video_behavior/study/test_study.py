"""Studies: drafts, splits by animal, class tables, and the commands dataset and agree."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ranks.cli.main import main
from ranks.errors import UserError
from ranks.workloads.video_behavior.annotations.boris_events import write_boris_events
from ranks.workloads.video_behavior.annotations.boris_project_writer import (
    empty_project,
    with_annotations,
    write_boris_project,
)
from ranks.workloads.video_behavior.annotations.events import Annotation, Event
from ranks.workloads.video_behavior.study.class_table import ClassCounts, class_table, counts_of_events
from ranks.workloads.video_behavior.study.draft import animals_of, draft_study
from ranks.workloads.video_behavior.study.split import split_study
from ranks.workloads.video_behavior.study.study import (
    SPLITS,
    Study,
    StudyVideo,
    load_study,
    read_dataset_csv,
    write_dataset_csv,
)


def annotation(video: str, *events: Event) -> Annotation:
    return Annotation(video, events, 25.0, 10.0, video)


def lab(folder: Path, animals: int = 6) -> Path:
    """Two videos of each animal with BORIS files. Only the first three animals shake."""
    for number in range(1, animals + 1):
        for day in (1, 2):
            name = f"day{day} mouse_{number}.x.mp4"
            (folder / name).touch()
            events = [Event("lick", 1.0, 2.0), Event("walk", 4.0, 6.0)]
            events += [Event("shake", 8.0, None)] if number <= 3 else []
            write_boris_events(folder / f"day{day} mouse_{number}.tsv", [annotation(name, *events)])
    return folder


def test_a_draft_pairs_by_the_media_names_inside_and_by_name(tmp_path: Path) -> None:
    for name in ("m1.mp4", "m10.mp4", "m2.mp4", "m3.AVI", "m4.mp4", "m5.mp4"):
        (tmp_path / name).touch()
    one, two = (annotation(f"/lab/{name}", Event("lick", 1.0, 2.0)) for name in ("m2.mp4", "m3.AVI"))
    write_boris_project(tmp_path / "all.boris", with_annotations(empty_project(), [one, two]))
    write_boris_events(tmp_path / "scored.csv", [annotation("C:\\videos\\m10.mp4", Event("lick", 1.0, 2.0))])
    (tmp_path / "m1_labels.csv").write_text("Frame,Action\n0,1\n")
    (tmp_path / "m4.csv").write_text("Frame,Action\n0,1\n")
    (tmp_path / "m4_again.csv").write_text("Frame,Action\n0,1\n")
    (tmp_path / "notes.txt").write_text("fed at noon\n")
    draft = draft_study(tmp_path)
    paired = {row.video.name: row.annotation and row.annotation.name for row in draft.videos}
    assert paired == {
        "m1.mp4": "m1_labels.csv",
        "m10.mp4": "scored.csv",
        "m2.mp4": "all.boris",
        "m3.AVI": "all.boris",
        "m4.mp4": None,
        "m5.mp4": None,
    }
    assert [row.animal for row in draft.videos] == ["m1", "m10", "m2", "m3", "m4", "m5"]
    notes = "\n".join(draft.notes)
    assert "m4.mp4: 2 annotations, none is used: m4.csv, m4_again.csv" in notes
    assert "m5.mp4: no annotation" in notes
    assert "notes.txt: not used" in notes
    (tmp_path / "empty").mkdir()
    with pytest.raises(UserError, match="no video among 0 files"):
        draft_study(tmp_path / "empty")


def test_animals_are_read_from_names_with_one_clear_pattern() -> None:
    assert animals_of(["day1_mouse01", "day2_Mouse-1", "mouse2"]) == ["mouse1", "mouse1", "mouse2"]
    for stems in (["mouse1", "trial"], ["mouse1_mouse2", "mouse3"], ["mouse1", "rat2"], ["mouse1", "mouse1"], ["v1"]):
        assert animals_of(stems) == [""] * len(stems)


def study_of(shown_UC: np.ndarray, animal: str = "a{}", videos: int = 2) -> tuple[Study, ClassCounts]:
    """A study with some videos of each animal, and the frames of each class by video."""
    rows = [
        StudyVideo(Path(f"{u}_{v}.mp4"), Path(f"{u}_{v}.tsv"), animal.format(u), "xy"[u % 2], None, 0.0, "")
        for u in range(len(shown_UC))
        for v in range(videos)
    ]
    classes = tuple(f"c{c}" for c in range(shown_UC.shape[1]))
    frames_VC = np.repeat(shown_UC, videos, axis=0)
    return Study(tuple(rows), classes, classes[0]), ClassCounts(frames_VC.copy(), frames_VC)


def splits_by_animal(study: Study) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for row in study.videos:
        found.setdefault(row.animal, set()).add(row.split)
    return found


def test_a_split_keeps_animals_together_and_has_every_class_everywhere() -> None:
    """40 animals; four classes are shown by three or four animals only, so few splits have all of them."""
    rng = np.random.default_rng(0)
    shown_UC = rng.integers(50, 100, (40, 6))
    for c in range(2, 6):
        shown_UC[:, c] = 0
        shown_UC[rng.choice(40, 3 + c % 2, replace=False), c] = 10
    study, counts = study_of(shown_UC)
    found = split_study(study, counts, seed=1)
    assert found.warnings == ()
    assert all(len(splits) == 1 for splits in splits_by_animal(found.study).values())
    for split in SPLITS:
        rows = class_table(found.study, counts, split)
        assert all(row.frames > 0 for row in rows)
    sizes = [sum(splits == {split} for splits in splits_by_animal(found.study).values()) for split in SPLITS]
    assert sizes == [24, 8, 8]
    assert split_study(study, counts, seed=1) == found
    assert split_study(study, counts, seed=2) != found
    reordered = replace(study, videos=study.videos[::-1])
    backwards = split_study(reordered, ClassCounts(counts.bouts_VC[::-1], counts.frames_VC[::-1]), seed=1)
    assert splits_by_animal(backwards.study) == splits_by_animal(found.study)
    given = split_study(found.study, counts, seed=9)
    assert given.study == found.study


def test_splits_that_cannot_be_are_refused() -> None:
    shown_UC = np.full((5, 2), 10)
    shown_UC[2:, 1] = 0
    with pytest.raises(UserError, match=r"'c1' is shown only by a0, a1, and it is needed in train, val, test"):
        split_study(*study_of(shown_UC))
    with pytest.raises(UserError, match="2 animals with labels: a0, a1; train, val and test need one each"):
        split_study(*study_of(np.full((2, 2), 10)))
    with pytest.raises(UserError, match="1 animal with labels: a"):
        split_study(*study_of(np.full((3, 2), 10), animal="a"))
    study, counts = study_of(np.full((4, 2), 10), videos=1)
    some = replace(study, videos=(replace(study.videos[0], split="train"), *study.videos[1:]))
    with pytest.raises(UserError, match=r"1 of 4 videos have a split; 1_0\.mp4 has none"):
        split_study(some, counts)
    shown_UC = np.full((4, 2), 10)
    shown_UC[3, 1] = 0
    study, counts = study_of(shown_UC, videos=1)
    splits = ("train", "train", "val", "test")
    given = tuple(replace(row, split=split) for row, split in zip(study.videos, splits, strict=True))
    with pytest.raises(UserError, match="no animal of 'test' shows 'c1'; a0, a1, a2 do"):
        split_study(replace(study, videos=given), counts)


def test_three_classes_of_the_same_three_animals_cannot_be_missed() -> None:
    """A class of three animals needs one of them in each split: 6 of all splits of 60 animals per ten thousand."""
    shown_UC = np.full((60, 3), 10)
    shown_UC[3:, 1] = 0
    shown_UC[:57, 2] = 0
    found = split_study(*study_of(shown_UC, videos=1))
    for first in (0, 57):
        assert {found.study.videos[u].split for u in range(first, first + 3)} == set(SPLITS)


def test_videos_of_unknown_animals_are_split_one_by_one_with_a_warning() -> None:
    found = split_study(*study_of(np.full((6, 2), 10), animal=""))
    assert {row.split for row in found.study.videos} == set(SPLITS)
    (warning,) = found.warnings
    assert "the animal of 12 videos is not known" in warning


def test_a_study_is_written_and_read(tmp_path: Path) -> None:
    lab(tmp_path)
    rows = [replace(row, fps=25.0, offset_s=-0.125, group="x,y") for row in draft_study(tmp_path).videos]
    write_dataset_csv(tmp_path / "dataset.csv", rows)
    assert read_dataset_csv(tmp_path / "dataset.csv") == tuple(rows)
    assert "day1 mouse_1.x.mp4,day1 mouse_1.tsv,mouse1," in (tmp_path / "dataset.csv").read_text()


def test_classes_and_their_table_come_from_the_annotations(tmp_path: Path) -> None:
    lab(tmp_path)
    write_dataset_csv(tmp_path / "dataset.csv", draft_study(tmp_path).videos)
    study = load_study(tmp_path, merge={"walk": "move"})
    assert study.classes == ("background", "lick", "move", "shake")
    rows = {row.name: row for row in class_table(study, counts_of_events(study, merge={"walk": "move"}))}
    assert (rows["lick"].bouts, rows["lick"].frames, rows["lick"].animals) == (12, 12 * 25, 6)
    assert (rows["shake"].bouts, rows["shake"].frames, rows["shake"].animals) == (6, 6, 3)
    assert rows["background"].frames == 12 * 7 * 25
    assert sum(row.share for row in rows.values()) == pytest.approx(1)
    assert load_study(tmp_path, background="lick").classes == ("lick", "shake", "walk")


def test_a_subject_may_do_nothing_in_a_file_but_is_in_the_study(tmp_path: Path) -> None:
    """m2.tsv names another mouse only; m3.csv, of a net, names none."""
    (tmp_path / "m3.csv").write_text("Frame,Action\n0,groom\n")
    for number, mouse in ((1, "black"), (2, "white")):
        write_boris_events(tmp_path / f"m{number}.tsv", [annotation(f"m{number}.mp4", Event("lick", 1.0, 2.0, mouse))])
    rows = "".join(f"m{number}.mp4,m{number}.{suffix}\n" for number, suffix in ((1, "tsv"), (2, "tsv"), (3, "csv")))
    for number in (1, 2, 3):
        (tmp_path / f"m{number}.mp4").touch()
    (tmp_path / "dataset.csv").write_text(f"video,annotation\n{rows}")
    study = load_study(tmp_path, subject="black")
    assert study.classes == ("background", "groom", "lick")
    assert counts_of_events(study, subject="black").bouts_VC[:, 1:].tolist() == [[0, 1], [0, 0], [1, 0]]
    with pytest.raises(UserError, match=r"dataset\.csv\nfound: no events of the subject 'blak'\n.*did you mean black"):
        load_study(tmp_path, subject="blak")


def test_where_codes_cover_every_frame_the_background_is_the_longest(tmp_path: Path) -> None:
    (tmp_path / "v.mp4").touch()
    covered = annotation("v.mp4", Event("rest", 0.0, 6.0), Event("walk", 6.0, 9.98))
    write_boris_events(tmp_path / "v.tsv", [covered])
    (tmp_path / "dataset.csv").write_text("video,annotation\nv.mp4,v.tsv\n")
    assert load_study(tmp_path / "dataset.csv").classes == ("rest", "walk")


def test_the_command_dataset(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lab(tmp_path)
    assert main(["video-behavior", "dataset", str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    assert "12 videos, 12 with an annotation; background: background" in printed
    assert "split by animal, seed 0" in printed
    videos = read_dataset_csv(tmp_path / "dataset.csv")
    assert {row.split for row in videos} == set(SPLITS)
    before = (tmp_path / "dataset.csv").read_text()
    assert main(["video-behavior", "dataset", str(tmp_path), "--seed", "5"]) == 0
    assert (tmp_path / "dataset.csv").read_text() == before  # what is written stays
    assert "drafted" not in capsys.readouterr().out
    assert main(["video-behavior", "dataset", str(tmp_path), "--redraft", "--merge", "walk->lick"]) == 0
    assert "walk" not in capsys.readouterr().out
    (tmp_path / "few").mkdir()
    lab(tmp_path / "few", animals=2)
    assert main(["video-behavior", "dataset", str(tmp_path / "few")]) == 2
    assert "2 animals with labels: mouse1, mouse2" in capsys.readouterr().err
    assert len(read_dataset_csv(tmp_path / "few" / "dataset.csv")) == 4  # the draft is there to be corrected


def test_the_command_agree(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A rater and a net's table by frame: they differ in 10 of 100 frames and in one bout."""
    write_boris_events(tmp_path / "a.tsv", [Annotation("v.mp4", (Event("lick", 0.0, 2.0),), 25.0, 4.0, "o")])
    actions = ["lick"] * 40 + ["background"] * 50 + ["lick"] * 10
    (tmp_path / "b.csv").write_text("Frame,Action\n" + "".join(f"{n},{name}\n" for n, name in enumerate(actions)))
    flags = ["--fps", "25", "--json", str(tmp_path / "out.json")]
    assert main(["video-behavior", "agree", str(tmp_path / "a.tsv"), str(tmp_path / "b.csv"), *flags]) == 0
    printed = capsys.readouterr().out
    assert "Cohen's kappa 0.600; the same label in 80.0% of frames" in printed
    content = json.loads((tmp_path / "out.json").read_text())
    assert content["kappa"] == pytest.approx(0.6)
    assert content["classes"]["lick"] == {
        "frames": [50, 50],
        "f1": 0.8,
        "bouts": [1, 2],
        "bout_f1": pytest.approx(2 / 3),
    }
    assert content["confusion"]["counts"] == [[40, 10], [10, 40]]
    files = [str(tmp_path / "a.tsv"), str(tmp_path / "b.csv")]
    for pair in (files, files[::-1]):  # a table without times has the rate of the other file
        assert main(["video-behavior", "agree", *pair]) == 0
        assert "100 frames at 25 frames a second\nCohen's kappa 0.600" in capsys.readouterr().out
    timed = "".join(f"{n},{n / 30:.6f},{name}\n" for n, name in enumerate(actions))
    (tmp_path / "b.csv").write_text("Frame,Time,Action\n" + timed)
    assert main(["video-behavior", "agree", *files]) == 2
    assert "25 frames a second in" in capsys.readouterr().err
    assert main(["video-behavior", "agree", files[1], files[1]]) == 0
    assert "100 frames at 30 frames a second" in capsys.readouterr().out
    flags = ["--fps", "50"]
    assert main(["video-behavior", "agree", str(tmp_path / "a.tsv"), str(tmp_path / "b.csv"), *flags]) == 2
    assert "25 frames a second in" in capsys.readouterr().err
