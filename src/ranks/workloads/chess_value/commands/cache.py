"""`ranks chess-value cache`: what the label cache holds; copies to and from other machines.

Imports torch and Numba inside the function only, so that `--help` answers at once.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

from ranks.errors import UserError

if TYPE_CHECKING:
    from ranks.workloads.chess_value.labels.label_cache import LabelCache


def cache(
    action: Literal["list", "export", "import"],
    file: Path | None = None,
    /,
    *,
    cache: Path | None = None,
    engine: str | None = None,
    limit: str | None = None,
    cache_mib: int | None = None,
) -> int:
    """List the labels that were computed before, or copy them to a file and from a file.

    Args:
        action: list, export or import.
        file: The file that export writes and import reads.
        cache: The folder of the label cache; by default in your cache folder.
        engine: Export the labels of engines whose name begins so.
        limit: Export the labels of this limit: nodes:N, depth:D or static.
        cache_mib: Import: the most that the labels of one engine and limit may take; the oldest are dropped. By default
            what was given last, or 1,024.
    """
    from ranks.workloads.chess_value.labels.cache_export import caches_in, export_labels, import_labels
    from ranks.workloads.chess_value.labels.label_cache import default_root

    cache_bytes = bytes_of(cache_mib)
    root = cache if cache is not None else default_root()
    if action != "list" and file is None:
        raise UserError(f"ranks chess-value cache {action}", "no file", f"write ranks chess-value cache {action} FILE")
    if action == "import":
        assert file is not None
        about, count = import_labels(root, file, cache_bytes)
        print(f"{count:,} labels of {about}: {root}")
        return 0
    caches = caches_in(root)
    if action == "list":
        for one in caches:
            print(f"{len(one):>12,} labels, {one.size_bytes / 2**20:,.1f} MiB: {one.about}")
        print(f"{root}: {sum(map(len, caches)):,} labels")
        return 0
    assert file is not None
    one = the_only(caches, engine, limit, root)
    print(f"{export_labels(one, file):,} labels of {one.about}: {file}")
    return 0


def bytes_of(cache_mib: int | None) -> int | None:
    """Raises UserError for a cache that could hold nothing."""
    if cache_mib is not None and cache_mib < 1:
        raise UserError(f"--cache-mib {cache_mib}", "a cache takes 1 MiB or more", "give --cache-mib 1024")
    return None if cache_mib is None else cache_mib << 20


def the_only(caches: list[LabelCache], engine: str | None, limit: str | None, root: Path) -> LabelCache:
    """The cache that the flags mean. Raises UserError where it is none or not one."""
    fitting = [
        cache for cache in caches if cache.about.engine.startswith(engine or "") and limit in (None, cache.about.limit)
    ]
    if len(fitting) == 1:
        return fitting[0]
    listed = "; ".join(str(cache.about) for cache in caches) or "nothing"
    found = f"{len(fitting)} caches fit; {root} holds {listed}"
    raise UserError("ranks chess-value cache export", found, "choose one with --engine and --limit")
