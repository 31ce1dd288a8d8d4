"""Files of users: nothing endless, and nothing compressed, fills the memory; each refusal is one clear error."""

from __future__ import annotations

import gzip
import io
import os
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from ranks.bounded_file import VARIABLE, FileLimits, open_file, open_stdin, read_text
from ranks.chess.match.opening_files import read_openings
from ranks.chess.pgn.reader import read_games
from ranks.engine.config_file import read_object
from ranks.engine.user_file import load_file
from ranks.errors import UserError
from ranks.workloads.graph_coloring.graphs.checker import check_sol
from ranks.workloads.graph_coloring.graphs.read import read_graph
from ranks.workloads.graph_coloring.solving.bench.best_known import read_best_known
from ranks.workloads.stock_trading.data.read_csv import read_csv

READERS: dict[str, Callable[[Path], object]] = {
    "g.col": read_graph,
    "g.edges": read_graph,
    "g.mtx": read_graph,
    "g.graphml": read_graph,
    "graph": read_graph,
    "g.sol": lambda path: check_sol(path, path),
    "best.csv": read_best_known,
    "prices.csv": read_csv,
    "games.pgn": lambda path: list(read_games(path, lambda skipped: None)),
    "openings.epd": read_openings,
    "openings.pgn": read_openings,
    "config.json": lambda path: read_object(path, "--config"),
    "mine.py": lambda path: load_file(path, "the workload in mine.py"),
}
FILLERS = {
    "g.edges": (b"", b"# a comment\n"),
    "g.mtx": (b"%%MatrixMarket matrix coordinate pattern symmetric\n", b"% a comment\n"),
    "g.graphml": (b"<graphml>\n", b"<!-- a comment -->\n"),
    "best.csv": (b"instance,nodes,edges,best_known,proven\n", b"\n"),
    "prices.csv": (b"date,KO\n", b"\n"),
    "openings.epd": (b"", b"\n"),
}
"""The start of a valid file of this name, and a line that says nothing."""
MIB = 1 << 20


def refused(read: Callable[[Path], object], path: Path) -> str:
    with pytest.raises(UserError) as error:
        read(path)
    assert path.name in str(error.value)
    return str(error.value)


@pytest.fixture
def one_mib(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files may hold 1 MiB, lines 1 KiB."""
    monkeypatch.setenv(VARIABLE, "1")


@pytest.mark.parametrize("name", READERS)
def test_pipes_devices_and_folders_are_refused_before_they_are_opened(name: str, tmp_path: Path) -> None:
    """Opening a pipe for reading would wait for a writer, and /dev/zero never ends."""
    path = tmp_path / name
    os.mkfifo(path)
    assert "a named pipe, not a regular file" in refused(READERS[name], path)
    path.unlink()
    path.symlink_to("/dev/zero")
    assert "a device, not a regular file" in refused(READERS[name], path)
    path.unlink()
    path.mkdir()
    assert "a folder, not a regular file" in refused(READERS[name], path)


@pytest.mark.parametrize("name", READERS)
def test_a_large_sparse_file_is_refused_by_its_size(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    with path.open("wb") as file:
        file.truncate(3 << 30)
    message = refused(READERS[name], path)
    assert "3,072 MiB, and the limit of a file is 1,024 MiB" in message
    assert f"raise the limit: {VARIABLE}=3073" in message


@pytest.mark.parametrize("name", [name for name in READERS if name not in ("g.graphml",)])
def test_a_line_without_end_is_refused(name: str, tmp_path: Path, one_mib: None) -> None:
    path = tmp_path / name
    path.write_bytes(b"# " + b"1" * 5000)
    message = refused(READERS[name], path)
    assert "a line of more than 0.000976562 MiB" in message
    assert f"{VARIABLE}=2" in message


@pytest.mark.parametrize("name", READERS)
def test_a_gzip_file_that_unpacks_to_too_much_is_refused(name: str, tmp_path: Path, one_mib: None) -> None:
    path = tmp_path / name
    head, line = FILLERS.get(name, (b"", b"c a comment\n"))
    path.write_bytes(gzip.compress(head + line * (600_000 // len(line))))
    message = refused(READERS[name], path)
    assert "unpack to more than 100 times as many" in message
    assert "give the unpacked file (gunzip)" in message


MEMORY = """
import resource, sys
from ranks.workloads.graph_coloring.graphs.read import read_graph
from ranks.errors import UserError
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (100 << 20),) * 2)
try:
    read_graph(sys.argv[1])
except UserError as error:
    print(error)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="it limits the address space")
def test_a_megabyte_that_unpacks_to_a_gigabyte_stays_within_100_mib(tmp_path: Path) -> None:
    """A graph of 170 million edge lines in a file of 1 MiB; 1/16 of 32 MiB may be unpacked."""
    path = tmp_path / "bomb.col.gz"
    block = gzip.compress(b"e 1 2\n" * (4 * MIB // 6))
    path.write_bytes(gzip.compress(b"p edge 2 1\n") + block * 256)
    assert path.stat().st_size < 3 * MIB
    command, environment = [sys.executable, "-c", MEMORY, str(path)], {**os.environ, VARIABLE: "32"}
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert "unpack to more than 100 times as many" in ended.stdout, ended.stderr[-2000:]


def test_the_limits_grow_together(tmp_path: Path) -> None:
    limits = FileLimits.of_this_process({VARIABLE: "2048"})
    assert (limits.total_bytes, limits.line_bytes, limits.unpacked_bytes) == (2 << 30, 2 * MIB, 128 * MIB)
    for wrong in ("", "0", "-1", "abc", "9" * 5000, "1.5", "\u0663"):
        with pytest.raises(UserError, match="not a size"):
            FileLimits.of_this_process({VARIABLE: wrong})


def test_what_is_read_is_the_content(tmp_path: Path) -> None:
    content = b"".join(b"%d line\n" % number for number in range(30_000))
    for name, data in {"plain": content, "packed": gzip.compress(content), "two": gzip.compress(content) * 2}.items():
        path = tmp_path / name
        path.write_bytes(data)
        with open_file(path, "a text") as file:
            assert file.read() == content * (2 if name == "two" else 1)
    path.write_bytes(b"\xef\xbb\xbfa")
    assert read_text(path, "a text") == "a"
    path.write_bytes(b"\xff")
    assert "not UTF-8" in refused(lambda path: read_text(path, "a text"), path)


def test_standard_input_has_the_same_limits(monkeypatch: pytest.MonkeyPatch, one_mib: None) -> None:
    def given(data: bytes) -> bytes:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
        with open_stdin("a graph") as file:
            return file.read()

    assert given(b"e 1 2\n" * 9) == b"e 1 2\n" * 9
    assert given(gzip.compress(b"e 1 2\n")) == b"e 1 2\n"
    with pytest.raises(UserError, match="more than 1 MiB, the limit of a file"):
        given(b"e 1 2\n" * 200_000)
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(UserError, match="standard input is closed"):
        open_stdin("a graph")


def test_names_that_no_file_can_have(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="a name that no file can have"):
        open_file("a\0b", "a text")
    with pytest.raises(UserError, match="No such file"):
        open_file(tmp_path / "none", "a text")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "s"))
        assert "a socket" in refused(lambda path: open_file(path, "a text"), tmp_path / "s")
