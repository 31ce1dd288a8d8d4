"""Reading videos: `ranks video-behavior cache` against PyAV as most programs use it, and clips from the store.

    python -m benchmarks.video_behavior.decode            about 2 minutes of CPU time
    python -m benchmarks.video_behavior.decode --quick    half a minute; writes no file

Two videos are made, moving textures in H.264 as cameras write it: grey of 384 x 384 and colour of 1920 x 1080. Their
frames become 256 x 256 greys in three ways, which take turns (A B C A B C ...) in one process and one thread:

    cache         what `cache` does with a video: plane 0 is scaled, the frames and their checksums are written
    to_ndarray    frame.to_ndarray(width=256, height=256, format="gray") of every frame, and nothing is kept
    seek          17 frames around random places: seek to the key frame before, decode up to there, to_ndarray

The last way is how a data set reads clips that has no store. Clips from the store are measured next to it. All figures
are per CPU second, so other programs on the machine hardly change them.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

import av
import numpy as np

from benchmarks.measure import alternate, origin, ratios, shown, spread, write_result
from ranks.workloads.video_behavior.video.decode import probe
from ranks.workloads.video_behavior.video.picture import Picture, resize
from ranks.workloads.video_behavior.video.store.cache import cache_videos
from ranks.workloads.video_behavior.video.store.decode_part import PartTask, decode_part
from ranks.workloads.video_behavior.video.store.frame_store import FrameStore
from ranks.workloads.video_behavior.video.write import write_mp4

SIZE, CLIP_FRAMES, FPS = 256, 17, 30.0
GOAL = 1.0


@dataclass(frozen=True)
class Film:
    """A video to make. `clips`: read in a turn of the way `seek`."""

    name: str
    height: int
    width: int
    colour: bool
    frames: int
    clips: int


FILMS = (Film("384 x 384, grey", 384, 384, False, 600, 10), Film("1920 x 1080, colour", 1080, 1920, True, 120, 4))


def blocks(film: Film) -> Iterator[np.ndarray[Any, Any]]:
    """Frames of a smooth texture that drifts, with noise of the camera, eight at a time."""
    random = np.random.default_rng(0)
    texture = resize(random.integers(40, 200, (24, 24), dtype=np.uint8), film.height + 64, film.width + 64)
    for first in range(0, film.frames, 8):
        found: list[np.ndarray[Any, Any]] = []
        for i in range(first, min(first + 8, film.frames)):
            top, left = (round(32 + 30 * f(i / 20)) for f in (np.sin, np.cos))
            view = texture[top : top + film.height, left : left + film.width].astype(np.int16)
            grey = np.clip(view + random.integers(-4, 5, view.shape, dtype=np.int16), 0, 255).astype(np.uint8)
            found.append(np.stack([grey, grey[::-1], 255 - grey], 2) if film.colour else grey)
        yield np.stack(found)


def by_to_ndarray(path: Path) -> int:
    """Decode a whole video as PyAV's documentation shows it; the number of frames."""
    count = 0
    with av.open(str(path)) as container:
        container.streams.video[0].codec_context.thread_count = 1
        for frame in container.decode(video=0):
            frame.to_ndarray(width=SIZE, height=SIZE, format="gray")
            count += 1
    return count


def by_seeking(path: Path, starts: list[int]) -> int:
    """Read a clip at each of these frames; the number of frames that the clips have."""
    count = 0
    with av.open(str(path)) as container:
        stream = container.streams.video[0]
        stream.codec_context.thread_count = 1
        for start in starts:
            first = round(start / FPS / stream.time_base)
            container.seek(first, stream=stream, backward=True)
            wanted = CLIP_FRAMES
            for frame in container.decode(stream):
                if frame.pts >= first:
                    frame.to_ndarray(width=SIZE, height=SIZE, format="gray")
                    wanted, count = wanted - 1, count + 1
                    if not wanted:
                        break
    return count


def by_cache(path: Path, folder: Path) -> int:
    """Decode a whole video into a store, as a process of `cache` does; the number of frames."""
    task = PartTask(str(path), str(folder), "part", (SIZE, SIZE), "letterbox", None, 1, os.getpid())
    with redirect_stdout(StringIO()):
        decode_part(task)
    return len(np.load(folder / "part.npy", mmap_mode="r"))


def compare(film: Film, folder: Path, rounds: int) -> dict[str, Any]:
    """Frames of each way in a CPU second, and their ratios."""
    path = folder / "film.mp4"
    write_mp4(path, blocks(film), FPS, threads=1)
    random = np.random.default_rng(1)
    frames: dict[str, int] = {}

    def turn(name: str, do: Callable[[], int]) -> Callable[[int], None]:
        def steps(num: int) -> None:
            frames[name] = sum(do() for _ in range(num)) // num

        return steps

    def starts() -> list[int]:
        return random.integers(0, film.frames - CLIP_FRAMES, film.clips).tolist()

    ways = {
        "cache": turn("cache", lambda: by_cache(path, folder)),
        "to_ndarray": turn("to_ndarray", lambda: by_to_ndarray(path)),
        "seek": turn("seek", lambda: by_seeking(path, starts())),
    }
    found = alternate(ways, rounds=rounds, steps=1, clock=time.process_time)
    frame_s = {name: [seconds / frames[name] for seconds in values] for name, values in found.items()}
    facts = probe(path)
    return {
        "codec": facts.codec,
        "pixel_format": facts.pixel_format,
        "frames": film.frames,
        "file_bytes": path.stat().st_size,
        "frames_per_cpu_s": {name: spread([1 / s for s in values], 1) for name, values in frame_s.items()},
        "cache_over_to_ndarray": ratios(frame_s["to_ndarray"], frame_s["cache"]),
        "cache_over_seek": ratios(frame_s["seek"], frame_s["cache"]),
        "goal": GOAL,
    }


def clips_from_store(film: Film, folder: Path, rounds: int) -> dict[str, Any]:
    """Random clips in a CPU second, from the store and by seeking; their frames are in the page cache."""
    path = folder / "film.mp4"
    store = cache_videos([("film", path)], folder / "store", Picture((SIZE, SIZE)), workers=1)
    random, clips = np.random.default_rng(2), 200

    def read(num: int) -> None:
        for _ in range(num):
            from_store(store, random.integers(0, film.frames - CLIP_FRAMES, clips))

    def seek(num: int) -> None:
        for _ in range(num):
            by_seeking(path, random.integers(0, film.frames - CLIP_FRAMES, film.clips).tolist())

    found = alternate({"store": read, "seek": seek}, rounds=rounds, steps=1, clock=time.process_time)
    clip_s = {"store": [s / clips for s in found["store"]], "seek": [s / film.clips for s in found["seek"]]}
    return {
        "clips_per_cpu_s": {name: spread([1 / s for s in values], 1) for name, values in clip_s.items()},
        "store_over_seek": ratios(clip_s["seek"], clip_s["store"]),
    }


def from_store(store: FrameStore, starts: np.ndarray[Any, Any]) -> None:
    """Copy a clip at each of these frames."""
    out = np.empty((len(starts), CLIP_FRAMES, SIZE, SIZE), np.uint8)
    store.take_clips(starts[:, None] + np.arange(CLIP_FRAMES), out)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="1 round; writes no file")
    asked = parser.parse_args()
    rounds = 1 if asked.quick else 4
    result: dict[str, Any] = {"origin": origin(), "threads": 1, "size": SIZE, "films": {}}
    for film in FILMS:
        with tempfile.TemporaryDirectory(prefix="ranks-decode-") as folder:
            found = compare(film, Path(folder), rounds)
            found["clips"] = clips_from_store(film, Path(folder), rounds)
        result["films"][film.name] = found
        speeds = ", ".join(f"{name} {value['median']:,.0f}" for name, value in found["frames_per_cpu_s"].items())
        print(f"{film.name}: frames in a CPU second: {speeds}", flush=True)
        print(f"  cache is {shown(found['cache_over_to_ndarray'])} of to_ndarray")
        clips = ", ".join(f"{name} {value['median']:,.0f}" for name, value in found["clips"]["clips_per_cpu_s"].items())
        print(f"  clips of {CLIP_FRAMES} frames in a CPU second: {clips}")
    if not asked.quick:
        name = time.strftime("video_decode_%Y-%m-%d")
        print(f"wrote {write_result(name, result)}")


if __name__ == "__main__":
    main()
