"""A traceback says from where the same command resumes."""

from __future__ import annotations

from pathlib import Path

from ranks.cli.commands.train import add_resume_note
from ranks.engine.config import RunConfig


def test_a_traceback_says_from_where_the_same_command_resumes(tmp_path: Path) -> None:
    engine = RunConfig(runs_dir=tmp_path, name="x")
    early, late = ValueError("bad sample"), ValueError("bad sample")
    add_resume_note(early, engine)
    (tmp_path / "x" / "checkpoints" / "00000010").mkdir(parents=True)
    add_resume_note(late, engine)
    assert early.__notes__ == ["no iteration was saved: the same command starts from the beginning"]
    assert late.__notes__ == [f"the same command resumes from iteration 10 ({tmp_path}/x/checkpoints/00000010)"]
