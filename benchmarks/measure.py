"""What every benchmark here needs: ranks as processes, ways that take turns, spreads, a result file with its origin."""

from __future__ import annotations

import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results"
SOURCE = str(ROOT / "src")
sys.path.insert(0, SOURCE)
THREADS = 1
"""CPU threads of each rank, so that 1 and 4 ranks compute alike and a CPU's figures can be repeated."""


def spread(values: Sequence[float], digits: int = 4) -> dict[str, float]:
    """Median, quartiles, and how many values there were."""
    low, middle, high = statistics.quantiles(values, n=4) if len(values) > 1 else (values[0],) * 3
    return {"median": round(middle, digits), "p25": round(low, digits), "p75": round(high, digits), "n": len(values)}


def shown(found: Mapping[str, float], digits: int = 3) -> str:
    """'1.012 (1.006 to 1.019, 40 pairs)'."""
    return (
        f"{found['median']:.{digits}f} ({found['p25']:.{digits}f} to {found['p75']:.{digits}f}, {found['n']:.0f} pairs)"
    )


def alternate(
    ways: Mapping[str, Callable[[int], None]],
    *,
    rounds: int,
    steps: int,
    clock: Callable[[], float],
    between: Callable[[], None] = lambda: None,
) -> dict[str, list[float]]:
    """Seconds per step of each way, one value a round. Ways take turns (A B A B ...); the first round is thrown away.

    A way is called with the number of steps to do. `between` runs before each block and is not measured.
    """
    found: dict[str, list[float]] = {name: [] for name in ways}
    for turn in range(rounds + 1):
        for name, do in ways.items():
            between()
            start = clock()
            do(steps)
            if turn:
                found[name].append((clock() - start) / steps)
    return found


def ratios(values: Sequence[float], base: Sequence[float]) -> dict[str, float]:
    """The spread of pairwise ratios."""
    return spread([a / b for a, b in zip(values, base, strict=True)])


def differences(values: Sequence[float], base: Sequence[float], unit_s: float) -> dict[str, float]:
    """The spread of pairwise differences, in units of `unit_s` seconds."""
    return spread([(a - b) / unit_s for a, b in zip(values, base, strict=True)], 2)


def undisturbed_difference(values: Sequence[float], base: Sequence[float], unit_s: float) -> float:
    """The difference of the lower deciles, in units of `unit_s` seconds: other programs on the machine make only the
    slower blocks slower."""
    return round((statistics.quantiles(values, n=10)[0] - statistics.quantiles(base, n=10)[0]) / unit_s, 2)


def environment(**more: str) -> dict[str, str]:
    """This process's variables: our source and this repository on the path, only loopback, no place among ranks."""
    places = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
    kept = {k: v for k, v in os.environ.items() if k not in places and not k.startswith(("RANKS_", "TORCHELASTIC_"))}
    path = os.pathsep.join(filter(None, [SOURCE, str(ROOT), os.environ.get("PYTHONPATH", "")]))
    loopback = "lo0" if sys.platform == "darwin" else "lo"
    return {**kept, "PYTHONPATH": path, "GLOO_SOCKET_IFNAME": loopback, "NCCL_SOCKET_IFNAME": loopback, **more}


def run_ranks(argv: Sequence[str], num_ranks: int, *, threads: int = 1, timeout_s: float = 600.0) -> None:
    """Run `python ARGV` as `num_ranks` ranks that meet in a file. RuntimeError: what the first to fail said."""
    with tempfile.TemporaryDirectory(prefix="ranks-benchmark-") as folder:
        ranks: list[subprocess.Popen[str]] = []
        for rank in range(num_ranks):
            place = {"RANK": str(rank), "LOCAL_RANK": str(rank), "RANKS_STORE": f"{folder}/store"}
            place |= {"WORLD_SIZE": str(num_ranks), "LOCAL_WORLD_SIZE": str(num_ranks), "OMP_NUM_THREADS": str(threads)}
            with open(f"{folder}/rank{rank}.log", "w", encoding="utf-8") as log:
                env = environment(**place)
                command = [sys.executable, *argv]
                ranks.append(subprocess.Popen(command, env=env, stdout=log, stderr=subprocess.STDOUT, text=True))
        try:
            deadline = time.monotonic() + timeout_s
            while any(p.poll() is None for p in ranks):
                if any(p.poll() for p in ranks) or time.monotonic() > deadline:
                    break
                time.sleep(0.05)
        finally:
            for process in ranks:
                process.kill()
            codes = [process.wait() for process in ranks]
        if any(codes):
            first = next(rank for rank, code in enumerate(codes) if code)
            output = Path(f"{folder}/rank{first}.log").read_text(encoding="utf-8")
            raise RuntimeError(f"{' '.join(argv)}: exit codes {codes}; rank {first} said:\n{output[-3000:]}")


def origin() -> dict[str, Any]:
    """Date, command, commit, versions and hardware: the origin of every figure."""
    import torch

    from ranks.engine.runs import provenance

    device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
    return {
        "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "command": " ".join(["python", "-m", program(), *arguments()]),
        "commit": provenance.git_commit(),
        "versions": provenance.versions(),
        "hardware": provenance.hardware(device),
        "load_average": list(os.getloadavg()),
    }


def program() -> str:
    """The module that `python -m` runs: `benchmarks.engine.overhead`."""
    path = Path(sys.argv[0]).resolve()
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__main__")


def arguments() -> list[str]:
    """Of this program. Places that differ between machines have a name: a peer's interpreter is PYTHON.

    An absolute path outside of the repository is its last name.
    """
    given, names = sys.argv[1:], {"--peer": "PYTHON", "--finrl": "FOLDER"}
    shown = [Path(one).name if is_outside(Path(one)) else one for one in given]
    return [names.get(before, one) for before, one in zip(["", *given], shown, strict=False)]


def is_outside(path: Path) -> bool:
    return path.is_absolute() and ROOT not in path.parents


def write_result(name: str, content: Mapping[str, Any], folder: Path = RESULTS) -> Path:
    """One JSON file: the origin, then the figures; paths in it begin at the root of the repository, and a temporary
    folder is FOLDER."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.json"
    text = json.dumps(content, indent=2).replace(f"{ROOT}/", "")
    text = re.sub(rf"{re.escape(tempfile.gettempdir())}/[a-z-]+-[a-z0-9_]{{8}}\b", "FOLDER", text)
    temporary = path.with_suffix(".tmp")
    temporary.write_text(text + "\n", encoding="utf-8")
    temporary.replace(path)
    return path
