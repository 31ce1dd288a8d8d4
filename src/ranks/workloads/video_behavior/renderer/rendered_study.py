"""The built-in study: all animals rendered into a folder with a dataset.csv, as a lab would have it.

study/
    videos/mouse000.mp4 ...  annotations/mouse000.tsv ...  true_labels/mouse000.npy ...
    rendered.json            the plan, the hash of the renderer, the hash of all frames; written when all is rendered
    dataset.csv              video, annotation, animal, group, fps, offset_s, split; written last
"""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import os
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ranks.data.prepared.file_lock import file_lock
from ranks.data.prepared.say import say
from ranks.die_with_parent import die_with
from ranks.engine.distributed.rendezvous.process_env import available_cores
from ranks.engine.files.disk import NOTHING_SAVED, remove, write_durably, writing
from ranks.engine.liveness.heartbeat import heartbeat
from ranks.errors import UserError
from ranks.progress import ProgressBar
from ranks.workloads.video_behavior.renderer.render import FPS, RenderedAnimal, StudyPlan, render_animal
from ranks.workloads.video_behavior.renderer.schedule import CLASSES
from ranks.workloads.video_behavior.study.study import StudyVideo, write_dataset_csv

RENDERED_FILE = "rendered.json"
RESULTS = {"frames_sha256", "bouts_of_test_animals"}
MEGAPIXELS_A_SECOND = 5.0
"""A guess of what one core renders, for the estimate before the first animal."""


def renderer_sha256() -> str:
    """Of the renderer's source: results name it."""
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.name.encode() + path.read_bytes())
    return digest.hexdigest()


def render_study(plan: StudyPlan, folder: Path, workers: int | None = None) -> dict[str, Any]:
    """Render a study into a folder, animals in parallel; what rendered.json says. A finished one is kept, and one that
    was interrupted is finished.

    The frames are the same with any number of processes. Raises UserError where the folder has another study.
    """
    asked, table = f"the study {folder}", folder / "dataset.csv"
    with writing(asked, folder.parent, NOTHING_SAVED):
        folder.mkdir(parents=True, exist_ok=True)
    wanted = {"plan": asdict(plan), "renderer_sha256": renderer_sha256()}
    found = _read(folder, wanted)
    if found is not None and table.exists():
        return found
    with file_lock(folder / ".lock", asked):
        found = _read(folder, wanted)
        if table.exists():
            if found is None:
                raise UserError(asked, "it has another study", "give another folder, or delete this one")
            return found
        for leftover in (*folder.glob("videos/.*.tmp"), *folder.glob(".*.tmp")):
            remove(leftover)
        if found is None:
            found = wanted | _results(plan, _render_all(plan, folder, workers))
            with writing(asked, folder, NOTHING_SAVED):
                write_durably(folder / f".{RENDERED_FILE}.tmp", json.dumps(found, indent=1).encode())
                (folder / f".{RENDERED_FILE}.tmp").replace(folder / RENDERED_FILE)
        rows = [_row(plan, animal, folder) for animal in range(plan.animals)]
        temporary = folder / ".dataset.csv.tmp"
        write_dataset_csv(temporary, rows)
        temporary.replace(table)
        return found


def _read(folder: Path, wanted: Mapping[str, Any]) -> dict[str, Any] | None:
    """What rendered.json says, where it is of the wanted study."""
    try:
        found = json.loads((folder / RENDERED_FILE).read_bytes())
    except (OSError, ValueError):
        return None
    same = isinstance(found, dict) and all(found.get(name) == value for name, value in wanted.items())
    return found if same and found.keys() >= RESULTS else None


def _results(plan: StudyPlan, animals: Sequence[RenderedAnimal]) -> dict[str, Any]:
    digest = hashlib.sha256("".join(one.frames_sha256 for one in animals).encode()).hexdigest()
    tested = [one for one in animals if plan.split_of(one.animal) == "test"]
    bouts = {name: sum(one.bouts[name] for one in tested) for name in CLASSES}
    return {"frames_sha256": digest, "bouts_of_test_animals": bouts}


def _render_all(plan: StudyPlan, folder: Path, workers: int | None) -> list[RenderedAnimal]:
    count = max(1, min(plan.animals, workers or available_cores()))
    minutes = plan.animals * plan.frames * plan.size**2 / 1e6 / (MEGAPIXELS_A_SECOND * count * 60)
    size = f"{plan.size} x {plan.size}"
    say(f"{plan.animals} videos of {plan.frames:,} frames of {size} to render, some {max(1, round(minutes))} min")
    with ProgressBar(plan.animals, title="render", unit="animals", stream=sys.stderr) as bar:
        if count == 1:
            done: list[RenderedAnimal] = []
            for animal in range(plan.animals):
                done.append(render_animal(plan, animal, folder))
                bar.advance()
                heartbeat.beat()
            return done
        os.environ.setdefault("OMP_NUM_THREADS", "1")
        spawn = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(count, mp_context=spawn, initializer=die_with, initargs=(os.getpid(),)) as pool:
            futures = [pool.submit(render_animal, plan, animal, folder) for animal in range(plan.animals)]
            for future in as_completed(futures):
                future.result()
                bar.advance()
                heartbeat.beat()
        return [future.result() for future in futures]


def _row(plan: StudyPlan, animal: int, folder: Path) -> StudyVideo:
    name = plan.name_of(animal)
    video, annotation = folder / "videos" / f"{name}.mp4", folder / "annotations" / f"{name}.tsv"
    return StudyVideo(video, annotation, name, plan.group_of(animal), FPS, 0.0, plan.split_of(animal))
