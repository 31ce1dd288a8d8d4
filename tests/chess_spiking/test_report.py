"""The report of a run: what it draws, and what it says where rows or games are missing."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from ranks.cli.main import main
from ranks.watch.report.metric_rows import MetricRows
from tests.chess_spiking import tiny

PICTURES = {"games.png", "learning.png", "spikes.png"}
RATING = {"match/rating": 1010.0, "match/rating_low": 950.0, "match/rating_high": 1060.0}


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run."""
    return tiny.train(tmp_path_factory.mktemp("report")).folder


@pytest.fixture
def run(trained: Path, tmp_path: Path) -> Path:
    """A copy that a test may change."""
    return Path(shutil.copytree(trained, tmp_path / "r"))


def report(run: Path) -> tuple[str, set[str]]:
    """The page and the names of the pictures."""
    assert main(["chess-spiking", "report", str(run)]) == 0
    page = (run / "report" / "report.md").read_text()
    pictures = {path.name for path in (run / "report").glob("*.png")}
    assert set(re.findall(r"\]\((\S+)\)", page)) == pictures
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in (run / "report").glob("*.png"))
    return page, pictures


def add_to_rows(run: Path, **metrics: Any) -> None:
    """Give every row more metrics; None takes a metric away."""
    rows = [{**row, **metrics} for row in rows_of(run)]
    rows = [{name: value for name, value in row.items() if value is not None} for row in rows]
    (run / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def rows_of(run: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]


def test_a_run_without_matches_has_no_rating_and_the_page_says_so(run: Path) -> None:
    add_to_rows(run, **{name: None for row in rows_of(run) for name in row if name.startswith("match/")})
    (run / "report").mkdir()
    (run / "report" / "rating.png").write_bytes(b"of an earlier report")
    page, pictures = report(run)
    assert "Not drawn: no row has match/rating" in page
    assert "Not drawn: no row has match/score_" in page
    assert pictures == PICTURES
    assert f"iterations: 3, games: {sum(row['rollout/games'] for row in rows_of(run)):.0f}" in page
    assert '[Iteration "3"]' in page
    assert "a  b  c  d  e  f  g  h" in page


def test_ratings_and_scores_are_drawn(run: Path) -> None:
    add_to_rows(run, **RATING, **{"match/score_random": 0.8, "match/score_greedy": 0.2, "match/games": 40})
    page, pictures = report(run)
    assert pictures == PICTURES | {"rating.png", "scores.png"}
    assert "| rating | 1,010 | `match/rating` |" in page


def test_damaged_rows_a_net_without_spikes_and_no_games(run: Path) -> None:
    spikes = [name for name in rows_of(run)[0] if name.startswith("spikes/")]
    add_to_rows(run, **dict.fromkeys(spikes), **{"rollout/distinct_openings": None})
    with (run / "metrics.jsonl").open("a") as file:
        file.write('{"iteration": 4, "rollout/games": "many"}\n{"iteration": 5, "rollout/ga')
    shutil.rmtree(run / "kept")
    page, pictures = report(run)
    assert "spikes.png" not in pictures
    assert "Not drawn: no row has spikes/spike_rate/" in page
    assert "None: " in page.split("## A sample game")[1]


def test_bad_input_is_one_error(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def says(*argv: str) -> str:
        assert main(["chess-spiking", "report", *argv]) == 2
        return capsys.readouterr().err

    assert "no run q in" in says("q", "--runs-dir", str(tmp_path))
    (tmp_path / "file").write_text("")
    assert "give a writable folder with --out" in says(str(run), "--out", str(tmp_path / "file"))
    (run / "metrics.jsonl").write_text("")
    assert "has no rows" in says(str(run))
    for name in ("run_config.json", "run.json"):
        path = run / name
        path.write_text(path.read_text().replace('"chess-spiking"', '"graph-coloring"'))
    assert "a run of graph-coloring" in says(str(run))


def test_series_have_the_rows_with_all_their_numbers() -> None:
    rows = MetricRows(
        [
            {"iteration": 1, "time_s": 360.0, "rollout/games": 4.0, "a": 1.0, "b": 2.0},
            {"iteration": 2, "time_s": 720.0, "rollout/games": 6.0, "a": 3.0},
            {"no": "iteration"},
            {"iteration": 3, "time_s": 1800.0, "rollout/games": 5.0, "a": 5.0, "b": float("nan")},
            {"iteration": 4, "time_s": 3600.0, "rollout/games": 5.0, "a": 7.0, "b": 8.0},
        ]
    )
    both = rows.series("a", "b")
    assert both.iterations.tolist() == [1, 4]
    assert both.games.tolist() == [4, 20]
    assert both.hours.tolist() == [0.1, 1.0]
    assert both.values.tolist() == [[1, 2], [7, 8]]
    assert len(rows.series("none")) == 0
    assert (rows.games, rows.hours, rows.newest("a"), rows.newest("c")) == (20, 1.0, 7.0, None)
    assert rows.names("rollout/") == ["rollout/games"]
