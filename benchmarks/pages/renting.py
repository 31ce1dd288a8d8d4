"""The figures of docs/rented-machine.md in docs/results.md."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from benchmarks.pages.results import Result, Row, read, section


def rented(_proofs: Path, benchmarks: Path) -> Iterator[str]:
    """A section of docs/results.md."""
    yield from section("On a machine that others own", rows(benchmarks))


def rows(benchmarks: Path) -> Iterator[Row]:
    """One line for each experiment."""
    cuts = read(benchmarks / "transfer_cuts.json")
    for part in ("push", "pull"):
        killed = sum(cut["killed"] for cut in cuts[part]["cuts"])
        half = sum(bool(cut["wrong"]) for cut in cuts[part]["cuts"])
        yield f"`ranks {part}`, cut at random", f"{killed} cuts; something half in the place of a whole: {half}", cuts
    slurm = read(benchmarks / "slurm_requeue.json")
    same = slurm["fingerprint"]["requeued"] == slurm["fingerprint"]["uninterrupted"]
    equal = "the fingerprint of a run that nobody stopped" if same else "**another fingerprint**"
    yield "Slurm, two nodes, time limits", f"{slurm['starts']} starts; {equal}", slurm
    moved = read(benchmarks / "moved_run.json")
    for run in moved["moved"]:
        there = run["machine"]
        what = f"killed, continued on {there['system']}, Python {there['python']}, torch {there['torch']}"
        bits = "equal fingerprint" if run["equal fingerprint"] else "finished, with another fingerprint"
        yield f"a run with `--exact`, {what}", f"{bits}; {moved['ranks here']} and {run['ranks']} ranks", moved
    ends = read(benchmarks / "machine_end.json")
    yield "`ranks autodown`, providers that lie or fail", f"{ends['right']} of {len(ends['cases'])} cases right", ends
    files = read(benchmarks / "submitted_files.json")
    yield "files of SkyPilot and Modal, executed without a cloud", _files(files), files
    wrong = read(benchmarks / "wrong_requests.json")
    yield "wrong requests of `ranks submit`", f"{wrong['right']} of {len(wrong['requests'])} refused", wrong
    image = read(benchmarks / "container_image.json")
    kept = "torch of the base kept" if image["base with torch"]["kept"] else "**torch of the base replaced**"
    yield "`Dockerfile`, built by buildah on Debian, used for a run and as a pod", kept, image
    secrets = read(benchmarks / "secrets_nowhere.json")
    number = sum(secrets["secrets"].values())
    found = len(secrets["files_with_a_secret"])
    yield f"{number} secrets", f"in {found} of {secrets['files_searched']} files; {secrets['verdict']}", secrets


def _files(result: Result) -> str:
    said = {True: "the run came home", False: "**failed**, see the file"}
    return f"SkyPilot: {said[result['sky']['right']]}; Modal: {said[result['modal']['right']]}"
