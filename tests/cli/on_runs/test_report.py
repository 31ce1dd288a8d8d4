"""`ranks report`: one page that needs nothing but itself."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from ranks.cli.main import main
from ranks.cli.scaling.table import as_json
from ranks.hardware.scale.law import ScalabilityLaw
from ranks.hardware.scale.loss import Point
from ranks.hardware.scale.split import Parts


def test_the_page_of_a_run(trained: Path, capsys: pytest.CaptureFixture[str]) -> None:
    events = trained / "runs" / "spirals" / "events.jsonl"
    warning = {"event": "warning", "iteration": 3, "time": 1e9, "text": "<script>alert(1)</script> & more"}
    events.write_text(events.read_text() + json.dumps(warning) + "\n{torn")
    use = [{"time": 1e9 + 5 * n, "iteration": n, "use/rank0/cpu_percent": 90.0 + n} for n in range(3)]
    (trained / "runs" / "spirals" / "telemetry.jsonl").write_text("".join(json.dumps(row) + "\n" for row in use))
    sessions = trained / "runs" / "spirals" / "sessions.jsonl"
    straggler = {"event": "straggler", "time": 2e9, "rank": 1, "cause": "data", "text": "rank 1 is <slow>"}
    sessions.write_text(sessions.read_text() + json.dumps(straggler) + "\n")
    assert main(["report", "spirals", "--price", "3.6"]) == 0
    assert "report.html" in capsys.readouterr().out
    page = (trained / "runs" / "spirals" / "report" / "report.html").read_text()
    for part in ("<title>spirals</title>", "20 of 20", "finished", "at 3.60 an hour", "&lt;script&gt;", "torch 2."):
        assert part in page, part
    assert "<script" not in page
    assert not re.findall(r'(?:src|href)="(?!data:)', page), "everything is in the page"
    headings = re.findall(r"<h2>([^<]+)</h2>", page)
    assert headings[:2] == ["Training", "Evaluation"]
    last = ["Time of an iteration", "Speed and memory", "By rank", "Starts, ends and faults", "Settings"]
    assert headings[-5:] == last
    assert "rank 1 is &lt;slow&gt;" in page
    pictures = sorted(path.name for path in (trained / "runs" / "spirals" / "report").glob("*.png"))
    assert pictures == ["ranks.png", "speed.png", "time.png", "train.png", "val.png"]
    assert page.count("data:image/png;base64,") == len(pictures)


def test_a_run_without_metrics_and_a_bad_place(trained: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (trained / "file").touch()
    assert main(["report", "spirals", "--out", "file/inside"]) == 2
    assert "give a writable folder with --out" in capsys.readouterr().err
    (trained / "runs" / "spirals" / "metrics.jsonl").write_text("")
    assert main(["report", "spirals"]) == 2
    assert "no metrics yet" in capsys.readouterr().err
    assert main(["report", "spirals", "--price", "0"]) == 2
    assert "a number above 0" in capsys.readouterr().err


# Scaling, and the price of the run ------------------------------------------------------------------------------------


def measured(workload: str = "./spirals.py") -> dict[str, Any]:
    """What `ranks scale` writes: one GPU takes 1 s an iteration, two take 0.6 s, of which 0.1 s are communication."""
    common = {"peak_bytes": 2**30, "iterations": 9, "collectives": 9}
    one = Point("strong", 1, Parts(1.0), {"samples": 64.0}, 1.0, 1.0, 0.99, 1.01, Parts(), **common)
    two = Point("strong", 2, Parts(0.5, 0.1), {"samples": 107.0}, 1.67, 0.83, 0.8, 0.86, Parts(0.0, 0.17), **common)
    facts = {"workload": workload, "device": "NVIDIA L4", "unit": "GPUs"}
    return {**facts, **as_json([one, two], {"strong": ScalabilityLaw(0.1, 0.01)})}


@pytest.mark.parametrize("place", ["scaling", "scaling/scale.json", "runs/spirals"])
def test_what_ranks_scale_measured_is_in_the_page(place: str, trained: Path) -> None:
    folder = trained / place.removesuffix("/scale.json")
    folder.mkdir(exist_ok=True)
    (folder / "scale.json").write_text(json.dumps(measured()))
    flags = ["--scale", place] if place.startswith("scaling") else []  # in the folder of the run it is found
    assert main(["report", "spirals", *flags]) == 0
    page = (trained / "runs" / "spirals" / "report" / "report.html").read_text()
    assert re.findall(r"<h2>([^<]+)</h2>", page)[0] == "Scaling"
    for part in ("measured on NVIDIA L4", "107", "83% (80% to 86%)", "limited by communication (17% of the time)"):
        assert part in page, part
    assert "Universal Scalability Law: contention 0.1, coherency 0.01; peak at 9 GPUs" in page
    assert 'alt="Scaling" src="data:image/png;base64,' in page


def test_a_run_without_a_measurement_has_no_scaling(trained: Path) -> None:
    assert main(["report", "spirals"]) == 0
    assert "Scaling" not in (trained / "runs" / "spirals" / "report" / "report.html").read_text()


@pytest.mark.parametrize(
    ("content", "found"),
    [
        (None, "missing"),
        ("[]", "not a JSON object"),
        ("{}", "it has no 'points'"),
        (json.dumps(measured() | {"points": measured()["points"][:1]}), "fewer than two points"),
        (json.dumps(measured() | {"points": [{"batch": 64, "iteration_s": 0.1}] * 2}), "it has no 'scaling'"),
        (json.dumps(measured()).replace("0.83", '"fast"'), "efficiency is no number"),
        (json.dumps(measured()).replace("0.83", "0"), "must be above 0"),
        (json.dumps(measured("graph-coloring")), "it is of graph-coloring, and the run is of ./spirals.py"),
    ],
)
def test_a_file_that_is_no_measurement_of_the_workload(
    content: str | None, found: str, trained: Path, refused: Callable[[Sequence[str]], str]
) -> None:
    if content is not None:
        (trained / "scale.json").write_text(content)
    assert found in refused(["report", "spirals", "--scale", "scale.json"])


def test_the_price_of_ranks_train_counts(trained: Path) -> None:
    sessions = trained / "runs" / "spirals" / "sessions.jsonl"
    sessions.write_text(sessions.read_text().replace('"ranks": 1', '"ranks": 1, "price": 2.5', 1))
    assert main(["report", "spirals"]) == 0
    page = (trained / "runs" / "spirals" / "report" / "report.html").read_text()
    assert "at 2.50 an hour, for all sessions" in page
