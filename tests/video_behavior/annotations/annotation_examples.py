"""Random annotations, and small files of each format."""

from __future__ import annotations

import itertools

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from ranks.workloads.video_behavior.annotations.events import Annotation, Event
from ranks.workloads.video_behavior.annotations.pairing import marks_of

SLOW = (HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much)
FEW = settings(max_examples=40, derandomize=True, deadline=None, database=None, suppress_health_check=SLOW)
"""Derandomized: the same examples in each run."""

LETTERS = st.sampled_from([*"aZ09 ._-,;|'\"\t#äß鼠🐭é", "mouse 1", ".mp4", "NA", "None", "STOP", "№"])
NAMES = st.lists(LETTERS, min_size=1, max_size=5).map("".join).map(str.strip).filter(bool)
COMMENTS = st.lists(st.one_of(LETTERS, st.sampled_from(["\n", "\r\n", '""', "  ", "=1+1"])), max_size=6).map("".join)
MODIFIERS = NAMES.filter(lambda text: "|" not in text)
TIMES = st.integers(0, 200_000).map(lambda ms: ms / 1000)


@st.composite
def random_annotations(draw: st.DrawFn, modifiers: bool = True) -> Annotation:
    """An annotation that BORIS can hold: states of one subject, behaviour and modifiers do not overlap."""
    events: list[Event] = []
    keys = draw(
        st.lists(
            st.tuples(
                NAMES,
                st.one_of(st.just(""), NAMES.filter(lambda name: name != "No focal subject")),
                st.lists(MODIFIERS, max_size=2 if modifiers else 0).map(tuple),
            ),
            min_size=1,
            max_size=4,
            unique=True,
        )
    )
    point_names = {behavior for behavior, _, _ in keys if draw(st.booleans())}
    for behavior, subject, parts in keys:
        edges = sorted(draw(st.lists(TIMES, min_size=2, max_size=6, unique=True)))
        if behavior in point_names:
            events += [Event(behavior, at, None, subject, parts, draw(COMMENTS)) for at in edges]
        else:
            pairs = zip(edges[0::2], edges[1::2], strict=False)
            events += [Event(behavior, *pair, subject, parts, draw(COMMENTS), draw(COMMENTS)) for pair in pairs]
    fps = draw(st.sampled_from([None, 25.0, 29.97, 30.0, 30000 / 1001]))
    video = draw(NAMES.filter(lambda name: name not in ("NA", "None")))
    duration_s = draw(st.sampled_from([None, 200.0, 333.366]))
    return Annotation(f"{video}.mp4", tuple(events), fps, duration_s, draw(NAMES))


OLD_COLUMNS = (
    *("Time", "Media file path", "Total length", "FPS", "dose", "Subject", "Behavior", "Behavioral category"),
    *("Modifier 1", "Modifier 2", "Comment", "Status"),
)


@st.composite
def old_tables(draw: st.DrawFn, annotation: Annotation) -> list[list[str]]:
    """The rows of an annotation as BORIS wrote them before version 8: a block with all that it may hold, and a table
    with categories and a column of others."""
    offset_s = draw(st.integers(-5_000, 5_000)) / 1000
    variables = draw(st.lists(st.one_of(NAMES, st.sampled_from(["FPS", "dose", "Comment", "Modifier 1"])), max_size=3))
    block = [
        ["Observation id", annotation.observation],
        [],
        ["Media file(s)"],
        ["Player #1", annotation.video],
        *draw(st.sampled_from([[], [["Player #2", "side.mp4"]]])),
        [""],
        ["Observation date", draw(st.sampled_from(["", "2017-03-01 10:00:00"]))],
        ["Description", draw(COMMENTS)],
        ["Time offset (s)", repr(offset_s)],
        ["independent variables"],
        ["variable", "value"],
        *([name, draw(COMMENTS)] for name in {name.casefold(): name for name in variables}.values()),
        [],
    ]
    rows: list[list[str]] = []
    for mark, number in zip(marks_of(annotation.events, "an example"), itertools.count()):
        about = [annotation.video, repr(annotation.duration_s), repr(annotation.fps), f"{number} mg"]
        what = [mark.subject, mark.behavior, f"category {number}", *mark.modifiers, *[""] * (2 - len(mark.modifiers))]
        rows.append([f"{mark.time_s + offset_s:.3f}", *about, *what, mark.comment, mark.kind])
    padded = [row + [""] * (len(OLD_COLUMNS) - len(row)) for row in block]
    return [*padded, list(OLD_COLUMNS), *rows]


def ordered(annotation: Annotation) -> list[Event]:
    """The events in an order that does not depend on the file."""
    return sorted(annotation.events, key=lambda event: (event.start_s, event.end_s, event.subject, repr(event)))


NEW_HEADER = "Observation id\tMedia file name\tFPS\tSubject\tBehavior\tBehavior type\tTime\tImage index\tComment\n"
NEW = NEW_HEADER + "o\tv.mp4\t25\t\tlick\tSTART\t1.0\t25\t\no\tv.mp4\t25\t\tlick\tSTOP\t2.0\t50\t\n"
OLD = (
    "Observation id,o,,,\nTime offset (s),0.5,,,\n,,,,\nTime,Media file path,FPS,Subject,Behavior,Comment,Status\n"
    "1.5,v.mp4,25,,lick,,START\n2.5,v.mp4,25,,lick,,STOP\n"
)
AGGREGATED_HEADER = "Observation id,Media file name,FPS (frame/s),Subject,Behavior,Behavior type,Start (s),Stop (s)\n"
AGGREGATED = AGGREGATED_HEADER + "o,v.mp4,25,No focal subject,lick,STATE,1,2\no,v.mp4,25,m1,shake,POINT,3,3\n"
LABELS = "Frame,Action\n" + "".join(f"{frame},{int(frame > 2)}\n" for frame in range(6))
ZERO_ONE = ",background,lick\n0,1,0\n1,0,1\n2,-1,-1\n"
BINARY = "time\tlick\tgroom\n0.0\t0\t1\n0.5\t1\t1\n1.0\t0\t0\n"
CALTECH = (
    "Caltech Behavior Annotator - Annotation File\n\nConfiguration file:\nlick\tl\nbase\tb\n\nS1:\tstart\tend\ttype\n"
    "-----------------------------\n   \t1\t10\tbase\n   \t11\t25\tlick\n  \nS2:\tstart\tend\ttype\n"
    "-----------------------------\n   \t1\t25\tbase\n  \n"
)
PROJECT = """{"project_name": "p", "own key": [1, {"x": null}],
 "behaviors_conf": {"0": {"type": "State event", "code": "lick", "key": "l", "extra": 1},
                    "1": {"type": "Point event", "code": "shake", "key": "s"}},
 "subjects_conf": {"0": {"key": "1", "name": "m1", "description": ""}},
 "observations": {"o": {"file": {"1": ["C:/videos/v.mp4"], "2": []}, "type": "MEDIA", "time offset": 0.5,
   "mood": "good",
   "media_info": {"length": {"C:/videos/v.mp4": 60.0}, "fps": {"C:/videos/v.mp4": 25.0}},
   "events": [[1.5, "m1", "lick", "a|None", "hm", 25], [2.0, "", "shake", "", ""],
     [2.5, "m1", "lick", "a|None", "", 50]]}}}
"""
