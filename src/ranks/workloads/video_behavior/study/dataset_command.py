"""The command `ranks video-behavior dataset`: draft, check and split a dataset.csv.

Imports NumPy inside the function only, so that `--help` answers at once.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from ranks.errors import UserError


def dataset(
    folder: Path,
    /,
    *,
    redraft: bool = False,
    background: str = "",
    subject: str | None = None,
    merge: str = "",
    labels: Literal["exclusive", "multi"] = "exclusive",
    unlabelled: Literal["background", "ignore"] = "background",
    seed: int = 0,
) -> int:
    """Write the dataset.csv of a folder of videos and annotations, split by animal; or check the one it has.

    Args:
        folder: The folder of the videos and annotations, also in folders below it.
        redraft: Write a new draft in place of the dataset.csv that is there.
        background: The class of frames without a code; by default "background", or the behaviour
            with the most time where codes cover every frame.
        subject: Count only the events of this subject.
        merge: Behaviours to rename, as 3->1,5->1.
        labels: exclusive or multi, as in training.
        unlabelled: Frames without a code are the background, or are left out with ignore.
        seed: Seed of the split; it is used where the column split is empty.

    A dataset.csv that is there is read, and its column split is filled in where it is empty. So:
    draft it, correct the columns animal and group, empty the column split, and run the command
    again.
    """
    from ranks.workloads.video_behavior.annotations.read import parse_merge
    from ranks.workloads.video_behavior.config import SPLITS
    from ranks.workloads.video_behavior.study.class_table import class_table, counts_of_events, table_lines, units_of
    from ranks.workloads.video_behavior.study.draft import draft_study
    from ranks.workloads.video_behavior.study.split import split_study
    from ranks.workloads.video_behavior.study.study import load_study, read_dataset_csv, write_dataset_csv

    path, asked = folder / "dataset.csv", f"ranks video-behavior dataset {folder}"
    names = parse_merge(merge)
    if redraft or not path.exists():
        draft = draft_study(folder)
        print("\n".join(f"note: {note}" for note in draft.notes[:20]) or "every annotation has its video")
        if len(draft.notes) > 20:
            print(f"note: and {len(draft.notes) - 20} more")
        if draft.guess is not None:
            print(f"note: {draft.guess}")
        write_dataset_csv(path, draft.videos)
        print(f"{path}: drafted, {len(draft.videos)} videos")
    videos = read_dataset_csv(path)
    labelled = sum(video.annotation is not None for video in videos)
    if not labelled:
        found = f"{path} has {len(videos)} videos and no annotation"
        raise UserError(asked, found, "fill in the column annotation, then run the command again")
    study = load_study(path, background=background, subject=subject, merge=names)
    counts = counts_of_events(
        study, subject=subject, merge=names, gaps=labels == "exclusive" and unlabelled == "background"
    )
    print(f"{len(videos)} videos, {labelled} with an annotation; background: {study.background}")
    print("\n".join(table_lines(class_table(study, counts))))
    result = split_study(study, counts, seed=seed, asked=asked)
    for warning in (*study.warnings, *result.warnings):
        print(warning)
    if result.study.videos != study.videos:
        write_dataset_csv(path, result.study.videos)
        print(f"{path}: split by animal, seed {seed}")
    videos = result.study.videos
    for split in SPLITS:
        units = {unit for unit, video in zip(units_of(videos), videos, strict=True) if video.split == split}
        shown = ", ".join(f"{row.name} {row.frames:,}" for row in class_table(result.study, counts, split))
        print(f"{split:<5}  {len(units)} animals  frames: {shown}")
    print("frames are counted from the annotations; training counts those of the videos")
    return 0
