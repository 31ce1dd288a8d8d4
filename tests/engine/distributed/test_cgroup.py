"""What a cgroup leaves, from files like those of the kernel."""

from __future__ import annotations

from pathlib import Path

import pytest

from ranks.engine.distributed.rendezvous.cgroup import cpu_quota, memory_left, tasks_left

GIB = 2**30


@pytest.mark.parametrize(
    ("line", "files", "expected"),
    [
        ("0::/box", {"box/memory.max": "8589934592", "box/memory.current": "2147483648"}, 6 * GIB),
        ("0::/box", {"box/memory.max": "max", "box/memory.current": "2147483648"}, 100 * GIB),
        ("0::/box", {"box/memory.max": "1073741824", "box/memory.current": "2147483648"}, 0),
        (
            "4:memory:/box",
            {"memory/box/memory.limit_in_bytes": "4294967296", "memory/box/memory.usage_in_bytes": "1073741824"},
            3 * GIB,
        ),
        (
            "4:memory:/box",
            {"memory/box/memory.limit_in_bytes": "9223372036854771712", "memory/box/memory.usage_in_bytes": "1"},
            100 * GIB,
        ),
        (
            "0::/box",
            {
                "box/memory.max": "8589934592",
                "box/memory.current": "8589934592",
                "box/memory.stat": "anon 2147483648\ninactive_file 5368709120\nactive_file 1073741824",
            },
            6 * GIB,
        ),
        (
            "4:memory:/box",
            {
                "memory/box/memory.limit_in_bytes": "4294967296",
                "memory/box/memory.usage_in_bytes": "4294967296",
                "memory/box/memory.stat": "inactive_file 0\nactive_file 0\ntotal_inactive_file 1073741824",
            },
            GIB,
        ),
        ("0::/seen/from/outside", {"memory.max": "8589934592", "memory.current": "0"}, 8 * GIB),
        ("nonsense", {}, 100 * GIB),
    ],
)
def test_the_limit_of_the_container_counts(line: str, files: dict[str, str], expected: int, tmp_path: Path) -> None:
    (tmp_path / "cgroup").write_text(f"{line}\n")
    for name, text in files.items():
        (tmp_path / "root" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "root" / name).write_text(f"{text}\n")
    assert memory_left(100 * GIB, tmp_path / "cgroup", tmp_path / "root") == expected


@pytest.mark.parametrize(
    ("line", "folder", "most", "expected"),
    [
        ("0::/box", "box", "100", 58),
        ("0::/box", "box", "max", None),
        ("8:pids:/box", "pids/box", "40", 0),
        ("8:pids:/seen/from/outside", "pids", "50", 8),
        ("0::/none", "other", "50", None),
    ],
)
def test_processes_that_may_be_started(line: str, folder: str, most: str, expected: int | None, tmp_path: Path) -> None:
    (tmp_path / "cgroup").write_text(f"{line}\n")
    (tmp_path / "root" / folder).mkdir(parents=True)
    (tmp_path / "root" / folder / "pids.max").write_text(f"{most}\n")
    (tmp_path / "root" / folder / "pids.current").write_text("42\n")
    assert tasks_left(tmp_path / "cgroup", tmp_path / "root") == expected


@pytest.mark.parametrize(
    ("line", "files", "expected"),
    [
        ("0::/box", {"box/cpu.max": "50000 100000"}, 0.5),
        ("0::/box", {"box/cpu.max": "max 100000"}, None),
        ("0::/outer/box", {"outer/box/cpu.max": "max 100000", "outer/cpu.max": "300000 100000"}, 3.0),
        ("1:cpu,cpuacct:/box", {"cpu/box/cpu.cfs_quota_us": "25000", "cpu/box/cpu.cfs_period_us": "100000"}, 0.25),
        ("1:cpu:/box", {"cpu/box/cpu.cfs_quota_us": "-1", "cpu/box/cpu.cfs_period_us": "100000"}, None),
    ],
)
def test_cores_that_a_container_may_use(
    line: str, files: dict[str, str], expected: float | None, tmp_path: Path
) -> None:
    (tmp_path / "cgroup").write_text(f"{line}\n")
    for name, text in files.items():
        (tmp_path / "root" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "root" / name).write_text(f"{text}\n")
    assert cpu_quota(tmp_path / "cgroup", tmp_path / "root") == expected
