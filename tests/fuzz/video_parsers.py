"""Annotations of videos, and studies."""

from __future__ import annotations

from pathlib import Path

from ranks.workloads.video_behavior.annotations.read import parse_merge, read_annotations
from ranks.workloads.video_behavior.study.study import read_dataset_csv
from tests.fuzz.registry import Examples, parser, texts, written
from tests.video_behavior.annotations import annotation_examples as examples

FORMATS = {
    "boris-events": texts(examples.NEW, examples.NEW.replace("\t", ","), examples.NEW_HEADER),
    "boris-old-events": texts(examples.OLD, examples.OLD.replace(",", "\t")),
    "boris-aggregated": texts(examples.AGGREGATED, examples.AGGREGATED.replace(",", ";")),
    "boris-project": texts(examples.PROJECT),
    "binary-table": texts(examples.BINARY),
    "frame-labels": texts(examples.LABELS, "Frame,Action,lick_prob\n0,lick,0.5\n1,,0.1\n0,lick,1\n"),
    "frame-zero-one": texts(examples.ZERO_ONE),
    "caltech": texts(examples.CALTECH),
}


def add(name: str, some: Examples) -> None:
    """The parser of a format, which is recognised by the content of a file."""

    @parser(name, some)
    def run(content: bytes, folder: Path) -> None:
        read_annotations(written(folder, "annotation", content), fps=25.0)


for format_name, format_examples in FORMATS.items():
    add(format_name, format_examples)


@parser(
    "dataset-csv",
    texts(
        "video,annotation,animal,group,fps,offset_s,split\na.mp4,b.tsv,m1,x,25,0.5,train\n", "animal,video\nm1,a.mp4\n"
    ),
)
def dataset_csv(content: bytes, folder: Path) -> None:
    for name in ("a.mp4", "b.tsv"):
        (folder / name).touch()
    read_dataset_csv(written(folder, "dataset.csv", content))


@parser("merge", texts("3->1,5->1", "a->b"))
def merge(content: bytes, folder: Path) -> None:
    parse_merge(content.decode("utf-8", "replace"))
