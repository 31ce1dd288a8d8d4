"""TensorBoard reads from the folder what metrics.jsonl holds."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tensorboard.backend.event_processing.event_file_loader import EventFileLoader

from ranks.watch.records import crc32c
from ranks.watch.tensorboard import TensorBoardWriter


def scalars(folder: Path) -> list[tuple[int, str, Any]]:
    found: list[tuple[int, str, Any]] = []
    for path in sorted(folder.iterdir()):
        for event in EventFileLoader(str(path)).Load():
            for value in event.summary.value:
                number = value.tensor.float_val[0] if value.HasField("tensor") else value.simple_value
                found.append((event.step, value.tag, pytest.approx(number, rel=1e-6)))
    return found


def append(run: Path, *rows: dict[str, Any]) -> None:
    with (run / "metrics.jsonl").open("a") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)


def test_the_folder_holds_each_number_at_its_iteration(tmp_path: Path) -> None:
    append(tmp_path, {"iteration": 0, "time_s": 0.1, "train/loss": 2.0, "val/loss": None})
    writer = TensorBoardWriter(tmp_path)
    assert writer.refresh()
    append(tmp_path, {"iteration": 1, "time_s": 0.2, "train/loss": 1.5, "val/loss": 1.25})
    assert writer.refresh()
    assert not writer.refresh()
    writer.close()
    assert scalars(tmp_path / "tensorboard") == [(0, "train/loss", 2.0), (1, "train/loss", 1.5), (1, "val/loss", 1.25)]


def test_the_checksum_has_the_values_of_rfc_3720() -> None:
    assert crc32c(b"123456789") == 0xE3069283
    assert crc32c(bytes(32)) == 0x8A9136AA
    assert crc32c(bytes(range(32))) == 0x46DD794E


def test_the_folder_of_a_resumed_run_is_written_again(tmp_path: Path) -> None:
    append(tmp_path, *({"iteration": i, "train/loss": 1.0 * i} for i in range(4)))
    with TensorBoardWriter(tmp_path):
        pass
    assert len(scalars(tmp_path / "tensorboard")) == 4
    writer = TensorBoardWriter(tmp_path)
    writer.refresh()
    lines = (tmp_path / "metrics.jsonl").read_text().splitlines(keepends=True)
    (tmp_path / "metrics.jsonl").write_text("".join(lines[:2]))
    append(tmp_path, {"iteration": 2, "train/loss": 7.0})
    writer.refresh()
    writer.close()
    assert scalars(tmp_path / "tensorboard") == [(0, "train/loss", 0.0), (1, "train/loss", 1.0), (2, "train/loss", 7.0)]


def test_a_folder_that_cannot_be_written_does_not_end_the_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    append(tmp_path, {"iteration": 0, "train/loss": 2.0})
    (tmp_path / "tensorboard").write_text("in the way")
    with TensorBoardWriter(tmp_path):
        pass
    assert "tensorboard/ is no longer written" in capsys.readouterr().err


def test_writing_needs_neither_torch_nor_tensorflow(tmp_path: Path) -> None:
    append(tmp_path, {"iteration": 0, "train/loss": 2.0})
    code = (
        "import sys; from pathlib import Path; from ranks.watch.tensorboard import TensorBoardWriter\n"
        "writer = TensorBoardWriter(Path(sys.argv[1])); writer.refresh(); writer.close()\n"
        "print(sorted({'torch', 'tensorflow'} & sys.modules.keys()))"
    )
    done = subprocess.run([sys.executable, "-W", "error", "-c", code, str(tmp_path)], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "[]\n", "")
