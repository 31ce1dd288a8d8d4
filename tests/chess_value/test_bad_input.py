"""Bad files and programs given to the commands of chess-value: one error each, with the file and the line. (Bad games:
test_analyse.py; a bad repository, card or hash, and no network: tests/hub.)"""

from __future__ import annotations

from pathlib import Path

import pytest

from ranks.cli.main import main
from ranks.errors import UserError
from ranks.workloads.chess_value.config import RatingConfig
from tests.chess_value.labels.label_engine import engine_command

FEN = "8/8/8/4k3/8/4K3/4P3/8 w - - 0 1"
CASES: dict[str, tuple[str, str, list[str]]] = {
    "FEN of a CSV file": ("p.csv", f"{FEN},35\n8/8,1\n", ["p.csv, line 2", "found: "]),
    "FEN of an EPD file": ("p.epd", f"{FEN}\n\n8/8/8/8 w - -\n", ["p.epd, line 3", "found: "]),
    "scores in pawns": ("p.csv", f"{FEN},0.35\n", ["p.csv, line 1", "a decimal number: pawns or a probability"]),
    "codes for mates": ("p.csv", f"{FEN},32000\n", ["p.csv, line 1", "a code for a mate"]),
    "small scores": ("p.csv", f"{FEN},1\n" * 60, ["p.csv", "these are pawns or results"]),
    "another kind of file": ("p.txt", "x", ["p.txt"]),
}


@pytest.mark.parametrize("case", CASES)
def test_files_of_positions(case: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    name, content, found = CASES[case]
    (tmp_path / name).write_text(content)
    argv = ["chess-value", "label", str(tmp_path / name), "--to", str(tmp_path / "out"), "--engines", "1"]
    assert main([*argv, "--engine", engine_command(tmp_path), "--cache", str(tmp_path / "cache")]) == 2
    said = capsys.readouterr().err
    assert all(part in said for part in found), said
    assert len(said.splitlines()) == 3


@pytest.mark.parametrize(
    ("content", "flags", "found"),
    [
        ("", [], "no position to label in "),
        (f"{FEN}\n", ["--cache-mib", "0"], "--cache-mib 0"),
        (f"{FEN}\n", ["--to", "/proc/positions"], "the folder cannot be made"),
        (f"{FEN}\n", ["--limit", "static", "--noisy"], "a position in check has no static evaluation"),
        (f"{FEN}\n", ["--limit", "mate:3"], "it is nodes:N, depth:D or static"),
    ],
)
def test_what_cannot_be_labelled(
    content: str, flags: list[str], found: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "p.epd").write_text(content)
    argv = ["chess-value", "label", str(tmp_path / "p.epd"), "--to", str(tmp_path / "out"), "--engines", "1", *flags]
    assert main([*argv, "--engine", engine_command(tmp_path), "--cache", str(tmp_path / "cache")]) == 2
    assert found in capsys.readouterr().err


@pytest.mark.parametrize(
    ("content", "found"),
    [(b"damaged", "labels"), (b"", "labels"), (b"\x08\0\0\0\0\0\0\0{}      ", "no file of labels")],
)
def test_files_of_labels(content: bytes, found: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "labels").write_bytes(content)
    argv = ["chess-value", "cache", "import", str(tmp_path / "labels"), "--cache", str(tmp_path / "cache")]
    assert main(argv) == 2
    said = capsys.readouterr().err
    assert found in said
    assert len(said.splitlines()) == 3


def test_a_match_without_a_move_of_the_net() -> None:
    with pytest.raises(UserError, match="have 8 plies, so no move would be played"):
        RatingConfig(max_plies=8)


def test_an_engine_that_is_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "p.epd").write_text(f"{FEN}\n")
    argv = ["chess-value", "label", str(tmp_path / "p.epd"), "--to", str(tmp_path / "out"), "--engine", "/bin/true"]
    assert main([*argv, "--cache", str(tmp_path / "cache"), "--engines", "1"]) == 2
    assert "/bin/true" in capsys.readouterr().err
