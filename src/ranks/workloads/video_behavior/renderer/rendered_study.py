"""The built-in study: all animals rendered into a folder with a dataset.csv, as a lab would have it.

study/
    dataset.csv              video, annotation, animal, group, fps, offset_s, split
    videos/mouse000.mp4 ...  annotations/mouse000.tsv ...  true_labels/mouse000.npy ...
    rendered.json            the plan, the hash of the renderer, the hash of all frames; written last
"""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import os
import sys
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ranks.data.prepared.file_lock import file_lock
from ranks.engine.distributed.process_env import available_cores
from ranks.engine.files.disk import NOTHING_SAVED, write_durably, writing
from ranks.engine.liveness.heartbeat import heartbeat
from ranks.errors import UserError
from ranks.progress import ProgressBar
from ranks.workloads.video_behavior.renderer.render import FPS, RenderedAnimal, StudyPlan, render_animal
from ranks.workloads.video_behavior.renderer.schedule import CLASSES
from ranks.workloads.video_behavior.study.study import StudyVideo, write_dataset_csv

RENDERED_FILE = "rendered.json"


def renderer_sha256() -> str:
    """Of the renderer's source: results name it."""
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.name.encode() + path.read_bytes())
    return digest.hexdigest()


def render_study(plan: StudyPlan, folder: Path, workers: int | None = None) -> dict[str, Any]:
    """Render a study into a folder, animals in parallel; what rendered.json says. A finished one is kept.

    The frames are the same with any number of processes. Raises UserError where the folder has another study.
    """
    asked = f"the study {folder}"
    with writing(asked, folder.parent, NOTHING_SAVED):
        folder.mkdir(parents=True, exist_ok=True)
    with file_lock(folder / ".lock", asked):
        wanted = {"plan": asdict(plan), "renderer_sha256": renderer_sha256()}
        found = _read(folder)
        if found is not None and all(found.get(name) == value for name, value in wanted.items()):
            return found
        if found is not None or (folder / "dataset.csv").exists():
            raise UserError(asked, "it has another study", "give another folder, or delete this one")
        animals = _render_all(plan, folder, workers)
        digest = hashlib.sha256("".join(one.frames_sha256 for one in animals).encode()).hexdigest()
        write_dataset_csv(folder / "dataset.csv", [_row(plan, one.animal, folder) for one in animals])
        tested = [one for one in animals if plan.split_of(one.animal) == "test"]
        bouts = {name: sum(one.bouts[name] for one in tested) for name in CLASSES}
        content = {**wanted, "frames_sha256": digest, "bouts_of_test_animals": bouts}
        with writing(asked, folder, NOTHING_SAVED):
            write_durably(folder / RENDERED_FILE, json.dumps(content, indent=1).encode())
        return content


def _read(folder: Path) -> dict[str, Any] | None:
    try:
        return json.loads((folder / RENDERED_FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


def _render_all(plan: StudyPlan, folder: Path, workers: int | None) -> list[RenderedAnimal]:
    count = max(1, min(plan.animals, workers or available_cores()))
    with ProgressBar(plan.animals, title="render", unit="animals", stream=sys.stderr) as bar:
        if count == 1:
            done: list[RenderedAnimal] = []
            for animal in range(plan.animals):
                done.append(render_animal(plan, animal, folder))
                bar.advance()
                heartbeat.beat()
            return done
        os.environ.setdefault("OMP_NUM_THREADS", "1")
        with ProcessPoolExecutor(count, mp_context=multiprocessing.get_context("spawn")) as pool:
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
