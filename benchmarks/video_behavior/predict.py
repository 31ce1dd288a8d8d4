"""An hour of video through `ranks video-behavior predict`: is every frame labelled, how long, how much memory.

    python -m benchmarks.video_behavior.predict RUN [--minutes 60] [--runs-dir runs]       nothing else should run

RUN is a trained run, such as `small` of docs/video-behavior.md. The built-in study is rendered at 256 x 256, a fifth
of the time for each of five animals, and its five videos become one file without being encoded again. Then
the command labels it in a process of its own, whose resident memory, with that of its children, is looked at ten times
a second. The rows of its table are compared with the frames that FFmpeg decodes. Writes
benchmarks/results/video_predict.json.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from pathlib import Path

import av
import psutil

from benchmarks.measure import environment, origin, write_result
from ranks.workloads.video_behavior.video.decode import count_frames

ANIMALS, SIZE, FPS = 5, 256, 30
GOAL_MINUTES, GOAL_BYTES = 15.0, 1 << 30
LOOK_S = 0.1


@dataclass(frozen=True)
class Outcome:
    """What the command did with the video."""

    decoded_frames: int
    rows: int
    wall_s: float
    cpu_s: float
    peak_resident_bytes: int
    """Of the command and its children at one time."""


def join(videos: Sequence[Path], target: Path) -> None:
    """Write the packets of all videos one after the other into one file. All have the same encoder and frame rate."""
    with av.open(str(target), "w") as out:
        stream, offset = None, 0
        for video in videos:
            with av.open(str(video)) as source:
                template = source.streams.video[0]
                stream = stream or out.add_stream_from_template(template)
                end, step = 0, round(1 / (FPS * (template.time_base or Fraction(1, FPS))))
                for packet in source.demux(template):
                    if packet.pts is None or packet.dts is None:
                        continue
                    end = max(end, packet.pts + step)
                    packet.pts, packet.dts, packet.stream = packet.pts + offset, packet.dts + offset, stream
                    out.mux(packet)
                offset += end


def watch(command: Sequence[str]) -> tuple[float, float, int]:
    """Run a command; wall seconds, CPU seconds, and the largest resident memory of it and its children."""
    began, before, peak = time.perf_counter(), os.times(), 0
    with subprocess.Popen(command, env=environment()) as process:
        while process.poll() is None:
            peak = max(peak, resident(process.pid))
            time.sleep(LOOK_S)
    wall_s, after = time.perf_counter() - began, os.times()
    if process.returncode:
        raise SystemExit(f"{' '.join(command)} ended with exit code {process.returncode}")
    cpu_s = after.children_user + after.children_system - before.children_user - before.children_system
    return wall_s, cpu_s, peak


def resident(pid: int) -> int:
    """Resident bytes of a process and its children; pages that they share count for each."""
    total = 0
    try:
        process = psutil.Process(pid)
        for member in (process, *process.children(recursive=True)):
            total += member.memory_info().rss
    except psutil.NoSuchProcess:
        pass
    return total


def measure(run: str, runs_dir: Path, minutes: float, folder: Path) -> Outcome:
    """Render, join, label, count."""
    ranks = [sys.executable, "-m", "ranks", "video-behavior"]
    study, video = folder / "study", folder / "hour.mp4"
    size = ["--animals", str(ANIMALS), "--seconds", str(minutes * 60 / ANIMALS), "--size", str(SIZE)]
    subprocess.run([*ranks, "render", str(study), *size], env=environment(), check=True)
    join(sorted(study.glob("**/*.mp4")), video)
    out = folder / "predictions"
    wall_s, cpu_s, peak = watch(
        [*ranks, "predict", run, str(video), "--out", str(out), "--runs-dir", str(runs_dir), "--device", "cpu"]
    )
    with next(out.glob("**/hour.csv")).open() as table:
        rows = sum(1 for _ in table) - 1
    return Outcome(count_frames(video), rows, wall_s, cpu_s, peak)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run")
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--runs-dir", type=Path, default=Path("runs"))
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = measure(args.run, args.runs_dir, args.minutes, Path(folder))
    verdicts = {
        "every frame has a row": found.rows == found.decoded_frames,
        f"{GOAL_MINUTES:g} minutes for an hour": found.wall_s <= GOAL_MINUTES * args.minutes,
        "resident memory below 1 GiB": found.peak_resident_bytes < GOAL_BYTES,
    }
    for name, holds in verdicts.items():
        print(f"{'PASS' if holds else 'FAIL'}  {name}")
    print(
        f"{found.rows} rows of {found.decoded_frames} frames, {found.wall_s:.0f} s, {found.cpu_s:.0f} CPU s, "
        f"{found.peak_resident_bytes / 2**20:.0f} MiB"
    )
    content = {**origin(), "run": args.run, "minutes": args.minutes, "video": f"{SIZE} x {SIZE}, {FPS} frames/s"}
    print(write_result("video_predict", {**content, **asdict(found), "verdicts": verdicts}))
    return 0 if all(verdicts.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
