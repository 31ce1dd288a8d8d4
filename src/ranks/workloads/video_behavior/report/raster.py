"""Pictures over time: the ethogram of person and net, and how animals and groups spend their time."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ranks.watch.report.figures import panels, percent_below, save
from ranks.workloads.video_behavior.metrics.frames import Floats, Ints
from ranks.workloads.video_behavior.prediction.pictures import color_of
from ranks.workloads.video_behavior.report.seen import SeenSplit, SeenVideo

MOST_LANES = 24
"""More videos (or behaviours of videos) are left out of the ethogram."""
MOST_ANIMALS = 30


def draw_ethogram_raster(seen: SeenSplit, path: Path) -> int:
    """A lane for each video, the person's labels above the net's; with overlapping behaviours a lane for each behaviour
    of each video. Returns how many lanes were left out."""
    lanes: list[tuple[str, SeenVideo, list[int]]] = []
    for one in seen.videos:
        if seen.multi:
            lanes += [(f"{one.video.name}, {name}", one, [c]) for c, name in enumerate(seen.classes)]
        else:
            lanes.append((one.video.name, one, list(range(len(seen.classes)))))
    shown = lanes[:MOST_LANES]
    figure, (panel,) = panels(1, 1, (9, 1.1 + 0.42 * len(shown)))
    panel.grid(visible=False)
    for row, (_, one, classes) in enumerate(shown):
        for labels, top in ((one.truth, -0.42), (one.labels, 0.02)):
            _bars(panel, one, one.bouts(labels), classes, row + top, 0.4)
    panel.set_yticks(range(len(shown)), [name for name, _, _ in shown])
    panel.set_ylim(len(shown) - 0.5, -0.5)
    panel.set_xlim(0, max(one.video.num_frames * one.frame_s for _, one, _ in shown))
    panel.set_xlabel("seconds; in each lane the person above, the net below")
    _legend(figure, seen.classes)
    save(figure, path)
    return len(lanes) - len(shown)


def _bars(panel: Any, one: SeenVideo, bouts_K3: Ints, classes: Sequence[int], top: float, height: float) -> None:
    for c in classes:
        of_class = bouts_K3[bouts_K3[:, 0] == c]
        spans = [(first * one.frame_s, (stop - first) * one.frame_s) for _, first, stop in of_class.tolist()]
        panel.broken_barh(spans, (top, height), facecolors=color_of(c), linewidth=0)


def _legend(figure: Any, classes: Sequence[str]) -> None:
    from matplotlib.patches import Patch

    handles = [Patch(color=color_of(c), label=name) for c, name in enumerate(classes)]
    figure.legend(handles=handles, loc="outside upper center", ncols=min(6, len(classes)), fontsize=8, frameon=False)


def time_shares(one: SeenVideo, labels: Ints, num_classes: int) -> Floats:
    """float64[C]: the seconds of each behaviour in the frames of a video that the person labelled."""
    if labels.ndim == 2:
        return labels.sum(0).astype(np.float64) * one.frame_s
    counted = labels[one.truth >= 0]
    return np.bincount(counted, minlength=num_classes).astype(np.float64) * one.frame_s


def budgets(seen: SeenSplit) -> dict[tuple[str, str], Floats]:
    """(group, animal) -> float64[2, C]: shares of the time by the person and by the net. In the order of groups."""
    seconds: dict[tuple[str, str], Floats] = {}
    whole_s: dict[tuple[str, str], float] = {}
    for one in seen.videos:
        key = (one.video.group, one.animal)
        found = np.stack([time_shares(one, labels, len(seen.classes)) for labels in (one.truth, one.labels)])
        counted = one.video.num_frames if seen.multi else int((one.truth >= 0).sum())
        seconds[key] = seconds.get(key, np.zeros_like(found)) + found
        whole_s[key] = whole_s.get(key, 0.0) + counted * one.frame_s
    return {key: seconds[key] / max(whole_s[key], 1e-9) for key in sorted(seconds)}


def draw_time_budget(seen: SeenSplit, path: Path) -> int:
    """Two bars for each animal and for the mean of each group: the person's labels and the net's. Returns how many
    animals were left out."""
    found = budgets(seen)
    kept = dict(list(found.items())[:MOST_ANIMALS])
    rows: list[tuple[str, Floats]] = [
        (f"{animal} ({group})" if group else animal, b) for (group, animal), b in kept.items()
    ]
    groups = sorted({group for group, _ in found if group})
    means = [(group, np.mean([b for (g, _), b in found.items() if g == group], axis=0)) for group in groups]
    sizes = {group: sum(g == group for g, _ in found) for group in groups}
    rows += [
        (f"mean of {group}, {sizes[group]} animal{'s' if sizes[group] > 1 else ''}", mean) for group, mean in means
    ]
    figure, (panel,) = panels(1, 1, (9, 1.2 + 0.42 * len(rows)))
    panel.grid(visible=False)
    for row, (_, share_2C) in enumerate(rows):
        for share_C, top in zip(share_2C, (-0.42, 0.02), strict=True):
            left = 0.0
            for c, share in enumerate(share_C.tolist()):
                panel.barh(row + top, share, 0.4, left=left, color=color_of(c), align="edge", linewidth=0)
                left += share
    if means:
        panel.axhline(len(kept) - 0.5, color="#222222", linewidth=0.8)
    panel.set_yticks(range(len(rows)), [name for name, _ in rows])
    panel.set_ylim(len(rows) - 0.5, -0.5)
    what = "sum over behaviours, which may overlap" if seen.multi else "share of the labelled time"
    percent_below(panel, f"{what}; in each row the person above, the net below")
    panel.set_xlim(0, max(1.0, *(float(share_2C.sum(1).max()) for _, share_2C in rows)))
    _legend(figure, seen.classes)
    save(figure, path)
    return len(found) - len(kept)
