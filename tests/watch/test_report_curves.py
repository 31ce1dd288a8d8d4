"""The pictures of a report."""

from __future__ import annotations

from pathlib import Path

from ranks.watch.report.curves import MOST_PANELS, draw


def test_every_metric_is_drawn_and_no_picture_replaces_another(tmp_path: Path) -> None:
    """A group of many metrics has several pictures; groups may have the names of a report's own pictures."""
    names = [f"train/m{n}" for n in range(2 * MOST_PANELS + 1)] + ["ranks/mine", "scale/mine", "time/iteration_s"]
    rows = [{"iteration": i, **{name: float(i) for name in names}} for i in range(3)]
    drawn = draw(rows, tmp_path)
    paths = [path for _, path in drawn]
    assert len(set(paths)) == len(paths)
    assert len({heading for heading, _ in drawn}) == len(drawn)
    assert all(path.stat().st_size > 0 for path in paths)
    assert sum(path.name.startswith("train") for path in paths) == 3
    assert not {"ranks.png", "scale.png"} & {path.name for path in paths}, "the pictures by rank and of scaling"
