"""Stored graphs: a folder of parts, each some hundreds of graphs laid end to end, and a manifest that vouches for them.

    part-0000.safetensors ...   arrays, see `Arrays`
    plan.json                   which graphs the parts hold, see `build`
    manifest.json               families, how many graphs of each, sha256 of each file; its own sha256

Legend: G graphs, N nodes of all graphs, E undirected edges of all graphs, F features.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import safetensors.numpy

from ranks.errors import UserError
from ranks.workloads.graph_coloring.data.labels import Labels
from ranks.workloads.graph_coloring.graphs.graph import Graph, Ints

FORMAT = 1
MANIFEST, PART = "manifest.json", "part-"
Array = npt.NDArray[Any]


class Damaged(Exception):
    """Files that are not what their manifest says. `names`: theirs."""

    def __init__(self, folder: Path, names: Sequence[str], found: str) -> None:
        super().__init__(f"{folder}: {found}")
        self.folder, self.names, self.found = folder, list(names), found


@dataclass(frozen=True)
class Arrays:
    """Graphs laid end to end: those of graph g follow those of graph g - 1."""

    node_counts_G: Array
    """int32[G]"""
    edge_counts_G: Array
    """int32[G]"""
    edges_E2: Array
    """uint16[E, 2] (int32 where a graph has more than 65,536 nodes): u < v, numbered within their graph."""
    features_NF: Array
    """int32[N, 4]: see `graphs.features`."""
    colours_N: Array
    """uint16[N]: a proper colouring with the colours 0..high-1."""
    low_G: Array
    """uint16[G]: the chromatic number is at least this."""
    high_G: Array
    """uint16[G]: and at most this; equal where it is proven."""
    family_G: Array
    """uint8[G]: place in the list of families."""
    difficulty_G: Array
    """float32[G]: see `Labels`."""
    hash_G: Array
    """uint64[G]: see `weisfeiler_lehman_hash`."""


@dataclass(frozen=True)
class Stored(Arrays):
    """All graphs of a folder. `sha256`: of the manifest, which holds that of each part."""

    families: tuple[str, ...]
    sha256: str

    def __len__(self) -> int:
        return len(self.node_counts_G)

    @cached_property
    def first_node_G(self) -> Ints:
        """int64[G]"""
        return np.cumsum(self.node_counts_G, dtype=np.int64) - self.node_counts_G

    @cached_property
    def first_edge_G(self) -> Ints:
        """int64[G]"""
        return np.cumsum(self.edge_counts_G, dtype=np.int64) - self.edge_counts_G

    def graph(self, g: int) -> Graph:
        """Graph g."""
        first, count = int(self.first_edge_G[g]), int(self.edge_counts_G[g])
        return Graph(int(self.node_counts_G[g]), self.edges_E2[first : first + count].astype(np.int64))

    def labels(self, g: int) -> Labels:
        """What is known of graph g."""
        first, count = int(self.first_node_G[g]), int(self.node_counts_G[g])
        colours_N = self.colours_N[first : first + count].astype(np.int64)
        return Labels(int(self.low_G[g]), int(self.high_G[g]), colours_N, float(self.difficulty_G[g]))


@dataclass(frozen=True)
class Row:
    """One graph of a part."""

    graph: Graph
    features_NF: Array
    labels: Labels
    family: int
    hash: int


def part_name(number: int) -> str:
    """'part-0007.safetensors'"""
    return f"{PART}{number:04d}.safetensors"


def pack(rows: Sequence[Row]) -> bytes:
    """The bytes of a part."""
    most_nodes = max(row.graph.n for row in rows)
    arrays = Arrays(
        node_counts_G=np.array([row.graph.n for row in rows], dtype=np.int32),
        edge_counts_G=np.array([row.graph.num_edges for row in rows], dtype=np.int32),
        edges_E2=np.concatenate([row.graph.edges_E2 for row in rows]).astype(
            np.uint16 if most_nodes <= 1 << 16 else np.int32
        ),
        features_NF=np.concatenate([row.features_NF for row in rows]).astype(np.int32),
        colours_N=np.concatenate([row.labels.colours_N for row in rows]).astype(np.uint16),
        low_G=np.array([row.labels.low for row in rows], dtype=np.uint16),
        high_G=np.array([row.labels.high for row in rows], dtype=np.uint16),
        family_G=np.array([row.family for row in rows], dtype=np.uint8),
        difficulty_G=np.array([row.labels.difficulty for row in rows], dtype=np.float32),
        hash_G=np.array([row.hash for row in rows], dtype=np.uint64),
    )
    return safetensors.numpy.save(vars(arrays))


def unpack(content: bytes) -> Arrays:
    """The arrays of a part."""
    return Arrays(**safetensors.numpy.load(content))


def write_durably(path: Path, content: bytes) -> None:
    """The whole file or none: written beside, synced, renamed."""
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    with beside.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    beside.rename(path)


def write_manifest(folder: Path, facts: Mapping[str, Any], families: Sequence[str]) -> None:
    """Vouch for the files that lie in the folder; how many graphs each family has is counted from the parts."""
    contents = {path.name: path.read_bytes() for path in sorted(folder.iterdir()) if not path.name.startswith(".")}
    parts = [unpack(content) for name, content in contents.items() if name.startswith(PART)]
    family_G, low_G, high_G = (
        np.concatenate([vars(p)[name] for p in parts]) for name in ("family_G", "low_G", "high_G")
    )
    counts = np.bincount(family_G, minlength=len(families)).tolist()
    manifest = {
        "format": FORMAT,
        **facts,
        "graphs": len(family_G),
        "chromatic_number_proven": int((low_G == high_G).sum()),
        "families": dict(zip(families, counts, strict=True)),
        "files": {
            name: {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
            for name, content in contents.items()
        },
    }
    write_durably(folder / MANIFEST, _sealed(manifest))


def read_manifest(folder: Path) -> dict[str, Any]:
    """The manifest alone. Raises Damaged."""
    try:
        content = (folder / MANIFEST).read_bytes()
        manifest = cast(dict[str, Any], json.loads(content))
        whole = content == _sealed(manifest)
    except (OSError, ValueError, AttributeError):
        whole, manifest = False, {}
    if not whole or manifest.get("format") != FORMAT:
        raise Damaged(folder, [MANIFEST], f"{MANIFEST} is missing, damaged or of another version")
    return manifest


def verified(folder: Path) -> tuple[dict[str, Any], list[bytes]]:
    """(manifest, content of each part), every byte checked. Raises Damaged, which names all files that are."""
    manifest = read_manifest(folder)
    contents, damaged = list[bytes](), list[str]()
    for name, facts in manifest["files"].items():
        try:
            content = (folder / name).read_bytes()
        except OSError:
            content = b""
        if hashlib.sha256(content).hexdigest() != facts["sha256"]:
            damaged.append(name)
        elif name.startswith(PART):
            contents.append(content)
    if damaged:
        raise Damaged(folder, damaged, f"{', '.join(damaged)}: missing, or not what the manifest says")
    return manifest, contents


def load(folder: Path) -> Stored:
    """All graphs of a folder that `build.prepare` made. Raises UserError where a file is damaged, and names it."""
    try:
        manifest, contents = verified(folder)
    except Damaged as damage:
        do = "run the same command again, which makes them anew, or delete the folder"
        raise UserError(f"the graphs in {folder}", damage.found, do) from None
    parts = [unpack(content) for content in contents]
    arrays = {f.name: np.concatenate([vars(part)[f.name] for part in parts]) for f in fields(Arrays)}
    return Stored(**arrays, families=tuple(manifest["families"]), sha256=str(manifest["sha256"]))


def _sealed(manifest: Mapping[str, Any]) -> bytes:
    body = {name: value for name, value in manifest.items() if name != "sha256"}
    digest = hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()
    return (json.dumps({**body, "sha256": digest}, indent=1) + "\n").encode()
