"""Files of positions: written, read by id, damaged; and the commands that make and copy them."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ranks.cli.main import main
from ranks.errors import UserError
from ranks.workloads.chess_value.labels.label import Labelled
from ranks.workloads.chess_value.parts import LabelledParts
from ranks.workloads.chess_value.positions.part_files import PartWriter, open_parts, part_files
from ranks.workloads.chess_value.positions.part_folder import files_of, writing_parts
from tests.chess_value.boards import random_boards
from tests.chess_value.labels.label_engine import engine_command

BOARDS = random_boards(250, seed=2)
ROWS = np.arange(250)
LABELLED = Labelled(BOARDS, ROWS.astype(np.int16), (ROWS % 3 - 1).astype(np.int8), (ROWS % 5).astype(np.int8))


def write(folder: Path) -> list[Path]:
    writer = PartWriter(folder, "train", size=60)
    for start, end in ((0, 7), (7, 7), (7, 150), (150, 250)):
        writer.add(LABELLED.rows(start, end))
    return writer.end()


def test_positions_are_read_by_id(tmp_path: Path) -> None:
    files = write(tmp_path)
    assert files == part_files(tmp_path, "train")
    parts = open_parts(files)
    assert (len(files), len(parts)) == (5, 250)
    ids_B = np.array([249, 0, 60, 59, 3, 0])
    found = parts.read(ids_B)
    assert found.cp_N.tolist() == ids_B.tolist()
    assert np.array_equal(found.boards_N13, BOARDS[ids_B])


@pytest.mark.parametrize("sizes", [(250,), (60, 1, 89, 100), (1,) * 250 + (1,) * 50])
def test_many_positions_are_read_in_their_order(sizes: tuple[int, ...]) -> None:
    """Of one part, of unequal parts, of more parts than a byte can number; repeated, and with parts that none is of."""
    starts = np.cumsum([0, *sizes])[:-1]
    columns: list[Any] = [np.resize(column, (sum(sizes), *column.shape[1:])) for column in LABELLED]
    source = Labelled(*columns)
    parts = LabelledParts([source.rows(int(start), int(start) + n) for start, n in zip(starts, sizes, strict=True)])
    for ids_B in (np.random.default_rng(0).integers(0, len(parts), 1000), np.array([len(parts) - 1, 0]), np.arange(0)):
        for column, expected in zip(parts.read(ids_B), source, strict=True):
            assert column.dtype == expected.dtype
            assert np.array_equal(column, expected[ids_B])


def test_a_position_after_the_last_one_is_refused() -> None:
    with pytest.raises((IndexError, ValueError)):
        LabelledParts([LABELLED]).read(np.array([0, len(ROWS)]))


def test_damaged_files_and_used_folders_are_refused(tmp_path: Path) -> None:
    files = write(tmp_path)
    with pytest.raises(UserError, match="holds files of positions already"):
        PartWriter(tmp_path, "train")
    content = bytearray(files[2].read_bytes())
    content[-1] ^= 1
    files[2].write_bytes(content)
    with pytest.raises(UserError, match="its sha256 is not the one in its name"):
        part_files(tmp_path, "train")
    files[2].write_bytes(content[:100])
    with pytest.raises(UserError, match=str(files[2])):
        open_parts(files)
    with pytest.raises(UserError, match="no files of positions"):
        part_files(tmp_path, "validation")


def test_the_commands_label_files_and_copy_the_cache(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    epd, cache = tmp_path / "a.epd", str(tmp_path / "cache")
    from ranks.chess.fen import format_fen

    epd.write_text("".join(f"{format_fen(board_13)}\n" for board_13 in BOARDS[:40]))
    engine = engine_command(tmp_path)
    flags = ["--limit", "nodes:7", "--engine", engine, "--engines", "2", "--cache", cache, "--noisy"]
    out = [tmp_path / name for name in ("one", "two", "three")]
    assert main(["chess-value", "label", str(epd), "--to", str(out[0]), *flags]) == 0
    assert "40 positions: 40 labels computed" in capsys.readouterr().out
    assert main(["chess-value", "label", str(epd), "--to", str(out[1]), *flags]) == 0
    assert "40 positions: 0 labels computed, 40 from the cache" in capsys.readouterr().out
    assert [path.name for path in part_files(out[0], "train")] == [path.name for path in part_files(out[1], "train")]
    assert main(["chess-value", "cache", "list", "--cache", cache]) == 0
    assert re.search("40 labels, 0.0 MiB: Small 1.0, arguments [0-9a-f]{8}, nodes:7", capsys.readouterr().out)
    exported = str(tmp_path / "labels.safetensors")
    assert main(["chess-value", "cache", "export", exported, "--cache", cache]) == 0
    assert main(["chess-value", "cache", "import", exported, "--cache", str(tmp_path / "other")]) == 0
    assert "40 labels of Small 1.0, arguments" in capsys.readouterr().out
    assert main(["chess-value", "cache", "export", exported, "--cache", cache, "--engine", "Large"]) == 2
    assert "0 caches fit" in capsys.readouterr().err


def test_a_folder_that_was_copied_in_part_is_refused(tmp_path: Path) -> None:
    with writing_parts(tmp_path / "whole") as writers:
        for writer in writers.values():
            writer.add(LABELLED)
    assert {name: len(files) for name, files in files_of(tmp_path / "whole", verify=True).items()} == {
        "train": 1,
        "validation": 1,
    }
    for missing in ("train", "validation"):
        folder = tmp_path / missing
        shutil.copytree(tmp_path / "whole", folder, ignore=shutil.ignore_patterns(missing))
        with pytest.raises(UserError, match=f"{missing} has 0 files, complete.json says 1"):
            files_of(folder, verify=False)


def test_what_a_killed_command_left_is_removed(tmp_path: Path) -> None:
    (tmp_path / "train").mkdir()
    left = tmp_path / "train" / ".tmp-00000003-4000000"
    left.write_bytes(b"half a file")
    with writing_parts(tmp_path) as writers:
        writers["train"].add(LABELLED)
    assert not left.exists()


def test_a_link_to_a_folder_on_another_disk_stays(tmp_path: Path) -> None:
    disk, link = tmp_path / "disk", tmp_path / "link"
    link.symlink_to(disk)
    with writing_parts(link) as writers:
        writers["train"].add(LABELLED)
    assert link.is_symlink()
    assert [path.parent.parent for path in files_of(link, verify=True)["train"]] == [disk]
    with pytest.raises(UserError, match="holds files of positions already"), writing_parts(link):
        pass
