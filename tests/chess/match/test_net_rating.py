"""Ratings on the committed ladder, and the version of Stockfish that it was played with."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from ranks.chess.match.net_rating import LADDER, RATED_WITH, Pair, rate_nets

WORDS = [word for word in LADDER if word.startswith("uci:stockfish")]
ENGINE = """#!{python} -S
for line in iter(input, "quit"):
    if line == "uci":
        print("id name {name}\\nuciok", flush=True)
"""


@pytest.mark.parametrize(
    ("name", "opponents", "local_rank", "lines"),
    [
        ("Stockfish 17", WORDS, None, 1),
        ("Stockfish 17", WORDS, "1", 0),
        ("Stockfish 17", ["greedy"], None, 0),
        (RATED_WITH, WORDS, None, 0),
        (None, WORDS, None, 0),
    ],
)
def test_another_version_of_stockfish_is_named_once(
    name: str | None,
    opponents: list[str],
    local_rank: str | None,
    lines: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("ranks.chess.uci.player.FOLDERS", ())
    if name is not None:
        engine = tmp_path / "stockfish"
        engine.write_text(ENGINE.format(python=sys.executable, name=name))
        engine.chmod(0o755)
    if local_rank is not None:
        monkeypatch.setenv("LOCAL_RANK", local_rank)
    pairs = [Pair(word, 2, 0) for word in [*opponents, "random"]]
    for _ in range(2):
        assert rate_nets(pairs, pairs, LADDER) is not None
    said = capsys.readouterr().err.splitlines()
    assert len(said) == lines
    assert all(f"rated with {RATED_WITH}, this is Stockfish 17: ratings may be off" in line for line in said)
