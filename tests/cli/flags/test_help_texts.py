"""The help text of a field: the string after it, or a comment."""

from __future__ import annotations

from pathlib import Path

import pytest

from ranks.cli.flags.settings import resolve

HEAD = "from __future__ import annotations\nfrom dataclasses import dataclass\nbuild = train = evaluate = len\n\n"
BY_STRINGS = '''
@dataclass(frozen=True)
class Base:
    layers: int = 2
    """Hidden
    layers."""


@dataclass(frozen=True)
class Config(Base):
    width: int | None = None
    """Of a layer."""
'''
BY_COMMENTS = """
@dataclass(frozen=True)
class Config:
    layers: int = 2  # Hidden layers.
    # Of a layer.
    width: int | None = None
"""


@pytest.mark.parametrize("source", [BY_STRINGS, BY_COMMENTS], ids=["strings", "comments"])
def test_help_texts(source: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / f"help_texts_{len(source)}.py"
    path.write_text(HEAD + source)
    config = resolve(str(path), ["--width", "none", "--layers", "3"]).config
    assert (config.layers, config.width) == (3, None)
    with pytest.raises(SystemExit):
        resolve(str(path), ["--help"])
    text = " ".join(capsys.readouterr().out.replace("│", " ").split())
    assert "--layers N Hidden layers. (default: 2)" in text
    assert "--width N|none Of a layer. (default: none)" in text
