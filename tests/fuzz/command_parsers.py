"""Settings, flags, source files, and what runs write."""

from __future__ import annotations

import hashlib
import json
from contextlib import suppress
from pathlib import Path

import numpy as np
import safetensors.numpy

from ranks.cli.commands.launch import LaunchFlags
from ranks.cli.flags.parse import parse
from ranks.cli.flags.settings import with_file
from ranks.engine.config import RunConfig, SaveInterval, seconds
from ranks.engine.config_file import encode
from ranks.engine.files.mapped import map_arrays
from ranks.engine.files.regular import DamagedFile
from ranks.engine.files.strict_json import parse_object
from ranks.engine.runs.checkpoints import checkpoint
from ranks.engine.runs.checkpoints.manifest import FORMAT, sealed
from ranks.engine.runs.kept.kept_file import KeptFile
from ranks.engine.state import canonical_json, fingerprint
from ranks.errors import UserError
from ranks.launch.failures.explain import explain_exit
from ranks.launch.gpus import Gpus
from ranks.launch.placement import place
from ranks.watch.tail import JsonlTail
from ranks.workloads.graph_coloring.config import Config
from tests.fuzz.registry import parser, texts, written


def settings() -> list[bytes]:
    """What --print-config prints, whole and in parts."""
    whole = {"workload": "graph-coloring", "engine": encode(RunConfig()), "config": encode(Config())}
    part = {"engine": {"seed": 3, "shares": [1, 2], "save_every": "5m"}, "config": {"optim": {"lr": 1e-3}}}
    return [json.dumps(whole, indent=2).encode(), json.dumps(part).encode()]


@parser("config", settings)
def config(content: bytes, folder: Path) -> None:
    with_file(written(folder, "config.json", content), "graph-coloring", RunConfig(), Config())


@parser("durations", texts("90s", "5m", "500", "1.5h"))
def durations(content: bytes, folder: Path) -> None:
    text = content.decode("utf-8", "replace")
    SaveInterval.parse(text, "--save-every")
    seconds(text, "--max-time")


@parser("flags", texts("--ranks\n2\n--gpus\n0,2\n--max-restarts\n3", "--gpus=none\n--ranks=4", "--ranks\n1\n--gpus\n2"))
def flags(content: bytes, folder: Path) -> None:
    argv = [word for word in content.decode("utf-8", "replace").split("\n") if word not in ("-h", "--help")]
    given = parse(LaunchFlags, argv, prog="ranks launch")
    place(given.gpus, given.ranks, shards=64, found=Gpus(4), cores=4)


KEPT = KeptFile.named("replay", 2, "0" * 64, 1000)
STATE = canonical_json({"learner": {"updates": 3}, "window": {"files": [KEPT.as_json()]}})
MANIFEST = {
    "format": FORMAT,
    "iteration": 3,
    "fingerprint": fingerprint({}, json.loads(STATE)),
    "finite": True,
    "files": {"state.json": {"bytes": len(STATE), "sha256": hashlib.sha256(STATE).hexdigest()}},
    "time_s": 1.5,
    "score": 0.25,
    "metrics_bytes": 10,
    "events_bytes": 20,
    "measured": {"assignment": [[0, 8]], "learner": {"max_cost": None}},
    "kept": {KEPT.path: KEPT.size},
}


@parser("checkpoint", lambda: [sealed(MANIFEST)], UserError, checkpoint.DamagedCheckpoint)
def checkpoint_manifest(content: bytes, folder: Path) -> None:
    """The damaged manifest, and where it is still JSON, the same one with a right checksum of itself."""
    path = folder / "checkpoints" / "00000003"
    path.mkdir(parents=True, exist_ok=True)
    written(path, "state.json", STATE)
    written(path, "manifest.json", content)
    checkpoint.manifests(path.parent)
    with suppress(ValueError):
        written(path, "manifest.json", sealed(parse_object(content)))
    checkpoint.manifests(path.parent)
    checkpoint.read(path)


@parser("kept-file", lambda: [safetensors.numpy.save({"x": np.ones((2, 3)), "y": np.arange(4)})], DamagedFile)
def kept_file(content: bytes, folder: Path) -> None:
    map_arrays(written(folder, "part.safetensors", content), size=len(content))


ROWS = '{"iteration": 1, "train/loss": 0.5, "time_s": 3.0}\n{"event": "saved", "iteration": 2}\n'


@parser("journal", texts(ROWS))
def journal(content: bytes, folder: Path) -> None:
    tail = JsonlTail(written(folder, "metrics.jsonl", content))
    tail.read()
    written(folder, "metrics.jsonl", content[: len(content) // 2])
    tail.read()


FAILED = '{"time_s": 1.0, "rank": 0, "type": "ValueError", "message": "x", "where": "a.py:3", "kind": "user"}'
TRACE = 'Traceback (most recent call last):\n  File "a.py", line 3, in f\n    g()\nValueError: x\n'


@parser("failure", texts(FAILED, TRACE, f"[rank0]: {TRACE}", f"Fatal Python error\nCurrent thread\n{TRACE}"))
def failure(content: bytes, folder: Path) -> None:
    for code in (1, -6, -11):
        explain_exit(0, code, written(folder, "error.json", content), content.decode("utf-8", "replace")).lines(
            full=True
        )
