"""`ranks report`: one page that needs nothing but itself."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from ranks.cli.main import main


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
